package gateway

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/database"
	"sluice/fault"
	"sluice/lakecopy"
	"sluice/sqlguard"
)

// copyApproved is the answer to an approval: the copy's result, and its request as it is now.
type copyApproved struct {
	lakecopy.Result
	Request copyRequestInfo `json:"copy_request"`
}

// maxReason bounds the reason of a denial, in bytes.
const maxReason = 1000

// approveCopyRequest is POST /v1/lake/copy/requests/{id}/approve: the request runs, once, with what both the asker and the
// approver may, and the answer comes when that is done. A request that is refused here for want of a right stays pending.
func (s *server) approveCopyRequest(c *gin.Context) {
	var req struct {
		Wait   *bool  `json:"wait"`
		SHA256 string `json:"sha256"` // of the request that the approver looked at
	}
	err := decodeOptional(c, &req)
	if err == nil && req.Wait != nil && !*req.Wait {
		err = &fault.Error{Code: fault.Unimplemented, Op: "gateway.approveCopyRequest", Msg: "COPY as a job is not part of this version of Sluice", Hint: "leave wait out: the answer comes when the copy is done"}
	}
	var r access.CopyRequest
	if err == nil {
		r, err = s.copyRequestOf(c)
	}
	var out copyApproved
	if err == nil {
		out.Result, err = s.approveCopy(c, &r, req.SHA256)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	out.Request = s.wireCopyRequest(r)
	reply(c, out)
}

// approveCopy checks, decides and runs. After it r is as it was kept last.
func (s *server) approveCopy(c *gin.Context, r *access.CopyRequest, sum string) (lakecopy.Result, error) {
	who, ctx := principal(c), c.Request.Context()
	if err := s.waits(*r); err != nil {
		return lakecopy.Result{}, err
	}
	src, stmt, err := s.boundCopy(*r, sum)
	if err != nil {
		return lakecopy.Result{}, err
	}
	if err := s.cfg.Lake.AdmitRequested(ctx, who, r.Asker, src, stmt); err != nil {
		return lakecopy.Result{}, err
	}
	if err := s.decide(c, r, access.CopyApproved, "copy.approve", ""); err != nil {
		return lakecopy.Result{}, err
	}
	return s.runApproved(c, r, src, stmt)
}

// waits is the Conflict of a request that is not pending.
func (s *server) waits(r access.CopyRequest) error {
	state := r.At(s.now())
	if state == access.CopyPending {
		return nil
	}
	how := map[access.CopyRequestState]string{access.CopyExpired: "nobody approved it in time: have it asked for again", access.CopyDone: "it has run already",
		access.CopyFailed: "it has run already, and failed: have it asked for again", access.CopyRunning: "it runs now", access.CopyApproved: "it is about to run",
		access.CopyDenied: "it was denied", access.CopyWithdrawn: "it was withdrawn"}[state]
	return &fault.Error{Code: fault.Conflict, Op: "gateway.copyRequest", Msg: "this copy request is " + string(state) + ": " + how}
}

// boundCopy reads the COPY of a request, when it still is what was asked for and can be found.
func (s *server) boundCopy(r access.CopyRequest, sum string) (*database.Source, sqlguard.Copy, error) {
	const op = "gateway.boundCopy"
	if sum != "" && !strings.EqualFold(sum, hex.EncodeToString(r.Sum[:])) {
		return nil, sqlguard.Copy{}, fault.New(fault.Conflict, op, "sha256 is not that of this copy request: look at it again")
	}
	stmt, err := copyOf(r.Statement)
	path, bad := access.Path(stmt.Path)
	if !r.Bound() || err != nil || bad != nil || path != r.Folder.Path || stmt.Connection != r.Folder.Connection {
		return nil, sqlguard.Copy{}, fault.New(fault.Conflict, op, "this copy request is not what was asked for: it was altered in the store")
	}
	src := s.cfg.Sources[r.Database]
	if src == nil {
		return nil, sqlguard.Copy{}, fault.New(fault.Conflict, op, "the database '%s' is not there any more", r.Database)
	}
	return src, stmt, nil
}

// decide records a decision and makes it. Of many at once, one does; the others are Conflicts.
func (s *server) decide(c *gin.Context, r *access.CopyRequest, state access.CopyRequestState, kind, reason string) error {
	who := principal(c)
	next := *r
	next.State, next.DecidedBy, next.DecidedWith, next.DecidedAt, next.Reason = state, who.Owner, who.KeyID, s.now().UTC().Truncate(time.Microsecond), reason
	details := detailsOfDecision(next)
	err := s.audited(c, kind, details, func() error {
		return s.cfg.CopyRequests.DecideCopyRequest(context.WithoutCancel(c.Request.Context()), next)
	})
	if err == nil {
		*r = next
	}
	return err
}

// detailsOfDecision is a request for the ledger, with who asked and who decided.
func detailsOfDecision(r access.CopyRequest) map[string]any {
	details := detailsOfCopyRequest(r)
	details["decided_by"] = r.DecidedBy
	if r.Reason != "" {
		details["reason"] = r.Reason
	}
	return details
}

// runApproved runs a request that was just approved. It ends done or failed, however this ends: it is not tried twice.
func (s *server) runApproved(c *gin.Context, r *access.CopyRequest, src *database.Source, stmt sqlguard.Copy) (res lakecopy.Result, err error) {
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	_, done := s.begin(c, copyKind, src.Name(), r.Statement, cancel)
	defer done()
	settled := context.WithoutCancel(ctx)
	returned := false
	defer func() {
		if !returned { // it panics
			err = fault.Bug("a copy that panicked")
		}
		if fault.CodeOf(err) == fault.Canceled {
			err = ended(ctx, err)
		}
		s.meters.statement(copyKind, err)
		s.endApproved(settled, r, res, err)
	}()
	err = s.audited(c, "copy.run", detailsOfDecision(*r), func() (err error) {
		r.StartedAt = s.now().UTC().Truncate(time.Microsecond)
		if err := s.cfg.CopyRequests.StartCopyRequest(settled, r.ID, r.StartedAt); err != nil {
			return err
		}
		r.State = access.CopyRunning
		res, err = s.cfg.Lake.CopyRequested(ctx, principal(c), r.Asker, src, stmt, r.Statement, r.ID)
		return err
	})
	returned = true
	return res, err
}

// endApproved keeps how a run ended. Where that fails, the next start finds out from the lake's record.
func (s *server) endApproved(ctx context.Context, r *access.CopyRequest, res lakecopy.Result, err error) {
	r.State, r.EndedAt, r.RunID = access.CopyDone, s.now().UTC().Truncate(time.Microsecond), res.RunID
	if err != nil {
		shown := fault.Public(err)
		r.State, r.Kind, r.Error = access.CopyFailed, shown.Kind, shown.Msg
	}
	if late := s.cfg.CopyRequests.EndCopyRequest(ctx, *r); late != nil {
		s.cfg.Log.Error("the end of a copy request could not be recorded", "copy_request", r.ID, "error", logged(late))
	}
}

// denyCopyRequest is POST /v1/lake/copy/requests/{id}/deny.
func (s *server) denyCopyRequest(c *gin.Context) {
	var req struct {
		Reason string `json:"reason"`
	}
	err := decodeOptional(c, &req)
	if err == nil && len(req.Reason) > maxReason {
		err = fault.New(fault.Invalid, "gateway.denyCopyRequest", "reason is longer than %d bytes", maxReason)
	}
	s.dismiss(c, err, access.CopyDenied, "copy.deny", req.Reason, access.MayDenyCopy)
}

// withdrawCopyRequest is DELETE /v1/lake/copy/requests/{id}: who asked takes it back. It stays in the list.
func (s *server) withdrawCopyRequest(c *gin.Context) {
	s.dismiss(c, nil, access.CopyWithdrawn, "copy.withdraw", "", access.MayWithdrawCopy)
}

func (s *server) dismiss(c *gin.Context, err error, state access.CopyRequestState, kind, reason string, may func(access.Principal, access.CopyRequest) error) {
	var r access.CopyRequest
	if err == nil {
		r, err = s.copyRequestOf(c)
	}
	if err == nil {
		err = may(principal(c), r)
	}
	if err == nil {
		err = s.waits(r)
	}
	if err == nil {
		err = s.decide(c, &r, state, kind, reason)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, s.wireCopyRequest(r))
}

// decodeOptional is decodeStrict for a body that may be left out.
func decodeOptional(c *gin.Context, into any) error {
	if c.Request.Body == nil || c.Request.Body == http.NoBody || c.Request.ContentLength == 0 {
		return nil
	}
	return decodeStrict(c, into)
}
