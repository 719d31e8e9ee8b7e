package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/agent"
	"sluice/fault"
	"sluice/lakecopy"
	"sluice/sqlguard"
)

// copyRequested is what became of a COPY that an agent sent.
type copyRequested struct {
	Outcome agent.Outcome   `json:"outcome"` // copy_requested
	Request copyRequestInfo `json:"copy_request"`
}

// asksForCopy says whether a statement becomes a copy request: a COPY that an agent sends.
func (s *server) asksForCopy(who access.Principal, stmt sqlguard.Statement) bool {
	return s.cfg.CopyRequests != nil && who.Agent && stmt.Copy != nil && !stmt.Copy.Explain
}

// replyCopyRequest makes the copy request of a COPY that an agent sent, and answers with it: accepted, and nothing copied.
func (s *server) replyCopyRequest(c *gin.Context, src lakecopy.Source, text string) {
	r, err := s.requestCopy(c.Request.Context(), c, src, text, "")
	s.meters.statement(copyKind, err)
	if err != nil {
		s.fail(c, err)
		return
	}
	writeJSON(c, http.StatusAccepted, gin.H{"data": copyRequested{Outcome: agent.CopyRequested, Request: s.wireCopyRequest(r)}, "meta": gin.H{"request_id": requestIDOf(c)}})
}

// requestCopy makes a copy request of the caller's. What could not run if it were approved now is refused with the error that
// it would end with.
func (s *server) requestCopy(ctx context.Context, c *gin.Context, src lakecopy.Source, text, ask string) (access.CopyRequest, error) {
	kept, err := s.requests()
	if err != nil {
		return access.CopyRequest{}, err
	}
	text = strings.TrimSpace(text)
	stmt, err := copyOf(text)
	if err != nil {
		return access.CopyRequest{}, err
	}
	who := principal(c)
	plan, err := s.cfg.Lake.Foresee(ctx, who, src, stmt)
	if err != nil {
		return access.CopyRequest{}, err
	}
	now := s.now().UTC().Truncate(time.Microsecond)
	r := access.CopyRequest{ID: "copyreq_" + rand.Text(), State: access.CopyPending, Statement: text, Database: src.Name(), Folder: access.Folder{Connection: plan.Connection, Path: plan.Path},
		SQL: plan.SQL, Asker: access.CopyAsker{Key: who.KeyID, Owner: who.Owner, Login: who.Login}, KeyName: who.Name, Ask: ask, CreatedAt: now,
		ExpiresAt: now.Add(access.CopyRequestLife), Sum: access.CopyRequestSum(text, src.Name(), plan.Path)}
	for _, col := range plan.Columns {
		r.Columns = append(r.Columns, access.CopyRequestColumn(col))
	}
	if same, found, err := kept.SameCopyRequest(ctx, r); err != nil || found {
		return same, err // an agent that asks again gets no second one
	}
	err = s.audited(c, "copy.request", detailsOfCopyRequest(r), func() (err error) {
		r, _, err = kept.InsertCopyRequest(ctx, r)
		return err
	})
	return r, err
}

// copyOf reads a COPY TO LAKE.
func copyOf(text string) (sqlguard.Copy, error) {
	stmt, err := sqlguard.Classify(text)
	if err == nil && (stmt.Copy == nil || stmt.Copy.Explain) {
		err = &fault.Error{Code: fault.Invalid, Op: "gateway.copyOf", Kind: "syntax", Msg: "the statement is not COPY (…) TO LAKE '…' WITH (…)"}
	}
	if err != nil {
		return sqlguard.Copy{}, err
	}
	return *stmt.Copy, nil
}

// detailsOfCopyRequest is a request for the ledger, with who asked.
func detailsOfCopyRequest(r access.CopyRequest) map[string]any {
	details := map[string]any{"copy_request": r.ID, "sha256": hex.EncodeToString(r.Sum[:]), "statement": r.Statement, "database": r.Database,
		"connection": r.Folder.Connection, "path": r.Folder.Path, "asked_by": r.Asker.Owner, "asked_with": r.Asker.Key}
	if r.Ask != "" {
		details["ask"] = r.Ask
	}
	return details
}

// copyDoor is how an ask makes copy requests: nil where there are none.
func (s *server) copyDoor(c *gin.Context, src agent.Source) agent.CopyDoor {
	if _, err := s.requests(); err != nil {
		return nil
	}
	if recorded, ok := src.(auditedSource); ok {
		src = recorded.Source // a look at the columns reads no row and is no statement of the ask
	}
	return &copyDoor{s: s, c: c, src: src}
}

type copyDoor struct {
	s   *server
	c   *gin.Context
	src agent.Source
}

// Places gives the connections to whose folder the asker may ask for a copy.
func (d *copyDoor) Places(path string) ([]string, error) {
	clean, err := access.Path(path)
	if err != nil {
		return nil, err
	}
	var names []string
	why := error(&fault.Error{Code: fault.Denied, Op: "gateway.copyDoor", Kind: "auth", Msg: "there is no lake to copy to"})
	for _, conn := range d.s.cfg.Lake.Connections() {
		if err := access.MayAskForCopy(principal(d.c), d.src.Name(), access.Folder{Connection: conn.Name, Path: clean}); err != nil {
			why = err
			if !access.MaySeeConnection(principal(d.c), conn.Name) {
				why = &fault.Error{Code: fault.Denied, Op: "gateway.copyDoor", Kind: "auth", Msg: "you have no right to copy to '" + clean + "' of any lake"}
			}
			continue
		}
		names = append(names, conn.Name)
	}
	if len(names) == 0 {
		return nil, why
	}
	return names, nil
}

// Request makes the request of a statement that the agent put together.
func (d *copyDoor) Request(ctx context.Context, ask, statement string) (access.CopyRequest, error) {
	r, err := d.s.requestCopy(ctx, d.c, d.src, statement, ask)
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = errors.Join(err, context.Cause(ctx))
	}
	return r, err
}
