package gateway

import (
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
)

// CopyRequests keeps the COPYs that agents ask for; *store.Store does. Who may do what is checked here, before it is asked.
type CopyRequests interface {
	// InsertCopyRequest stores a pending request, or gives the one that the same key made for the same and that still waits.
	InsertCopyRequest(ctx context.Context, r access.CopyRequest) (kept access.CopyRequest, made bool, err error)
	// SameCopyRequest finds that one.
	SameCopyRequest(ctx context.Context, r access.CopyRequest) (same access.CopyRequest, found bool, err error)
	CopyRequest(ctx context.Context, id string) (access.CopyRequest, error) // NotFound
	// CopyRequests lists them, newest first, behind the one that before names; "" all.
	CopyRequests(ctx context.Context, before string, limit int) ([]access.CopyRequest, error)
	// DecideCopyRequest approves, denies or withdraws: once. A Conflict when the request is not pending any more.
	DecideCopyRequest(ctx context.Context, r access.CopyRequest) error
	// StartCopyRequest lets an approved one run: once.
	StartCopyRequest(ctx context.Context, id string, now time.Time) error
	EndCopyRequest(ctx context.Context, r access.CopyRequest) error
}

// copyRequestInfo is a copy request on the wire.
type copyRequestInfo struct {
	ID         string                     `json:"id"`
	State      access.CopyRequestState    `json:"state"`
	Statement  string                     `json:"statement"`
	SQL        string                     `json:"sql"` // its query, as the gate let it through
	Database   string                     `json:"database"`
	Connection string                     `json:"connection"`
	Path       string                     `json:"path"`
	SHA256     string                     `json:"sha256"` // of statement, database and path
	Columns    []access.CopyRequestColumn `json:"columns"`
	Owner      string                     `json:"owner"` // the user for whom it was asked
	Key        string                     `json:"key"`   // with which; of a login its id
	KeyName    string                     `json:"key_name"`
	AskID      string                     `json:"ask_id,omitempty"`
	CreatedAt  time.Time                  `json:"created_at"`
	ExpiresAt  time.Time                  `json:"expires_at"`
	DecidedBy  string                     `json:"decided_by,omitempty"` // the user who approved, denied or withdrew it
	DecidedAt  *time.Time                 `json:"decided_at,omitempty"`
	Reason     string                     `json:"reason,omitempty"`
	StartedAt  *time.Time                 `json:"started_at,omitempty"`
	EndedAt    *time.Time                 `json:"ended_at,omitempty"`
	JobID      string                     `json:"job_id,omitempty"`
	RunID      string                     `json:"run_id,omitempty"`
	Kind       string                     `json:"kind,omitempty"`
	Error      string                     `json:"error,omitempty"`
}

func (s *server) wireCopyRequest(r access.CopyRequest) copyRequestInfo {
	return copyRequestAt(r, s.now())
}

func copyRequestAt(r access.CopyRequest, now time.Time) copyRequestInfo {
	info := copyRequestInfo{ID: r.ID, State: r.At(now), Statement: r.Statement, SQL: r.SQL, Database: r.Database, Connection: r.Folder.Connection,
		Path: r.Folder.Path, SHA256: hex.EncodeToString(r.Sum[:]), Columns: r.Columns, Owner: r.Asker.Owner, Key: r.Asker.Key, KeyName: r.KeyName, AskID: r.Ask,
		CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, DecidedBy: r.DecidedBy, DecidedAt: orNil(r.DecidedAt), Reason: r.Reason, StartedAt: orNil(r.StartedAt),
		EndedAt: orNil(r.EndedAt), RunID: r.RunID, Kind: r.Kind, Error: r.Error}
	if info.Columns == nil {
		info.Columns = []access.CopyRequestColumn{}
	}
	if !r.StartedAt.IsZero() {
		info.JobID = r.ID
	}
	return info
}

// requests is where copy requests are kept, or a sentence when they are not.
func (s *server) requests() (CopyRequests, error) {
	if s.cfg.CopyRequests == nil || s.cfg.Lake == nil {
		return nil, fault.New(fault.Unimplemented, "gateway.copyRequests", "this server has no lake configured, and so no copy requests")
	}
	return s.cfg.CopyRequests, nil
}

// copyRequestOf finds the request that a path names, if the caller may know of it. All others do not exist.
func (s *server) copyRequestOf(c *gin.Context) (access.CopyRequest, error) {
	kept, err := s.requests()
	if err != nil {
		return access.CopyRequest{}, err
	}
	missing := fault.New(fault.NotFound, "gateway.copyRequestOf", "copy request '%s' not found", printable(c.Param("id"), 100))
	r, err := kept.CopyRequest(c.Request.Context(), c.Param("id"))
	if fault.CodeOf(err) == fault.NotFound || err == nil && !access.MaySeeCopyRequest(principal(c), r) {
		return access.CopyRequest{}, missing
	}
	return r, err
}

// getCopyRequest is GET /v1/lake/copy/requests/{id}.
func (s *server) getCopyRequest(c *gin.Context) {
	r, err := s.copyRequestOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, s.wireCopyRequest(r))
}

// usualCopyRequests is how many are listed without a limit.
const usualCopyRequests = 100

// copyRequestPage is how many requests are looked at together for those that the caller may see.
const copyRequestPage = 200

// listCopyRequests is GET /v1/lake/copy/requests: those that the caller may know of, newest first. state chooses; cursor is
// the next_cursor of the page before.
func (s *server) listCopyRequests(c *gin.Context) {
	found, next, err := s.copyRequests(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	infos := make([]copyRequestInfo, 0, len(found))
	for _, r := range found {
		infos = append(infos, s.wireCopyRequest(r))
	}
	meta := gin.H{}
	if next != "" {
		meta["next_cursor"] = next
	}
	reply(c, infos, meta)
}

func (s *server) copyRequests(c *gin.Context) (found []access.CopyRequest, next string, err error) {
	const op = "gateway.listCopyRequests"
	kept, err := s.requests()
	if err != nil {
		return nil, "", err
	}
	limit := usualCopyRequests
	if text, given := c.GetQuery("limit"); given {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxList {
			return nil, "", fault.New(fault.Invalid, op, "limit must be a number from 1 to %d", maxList)
		}
	}
	state, filtered := c.GetQuery("state")
	if filtered && !slices.Contains(access.CopyRequestStates(), access.CopyRequestState(state)) {
		return nil, "", fault.New(fault.Invalid, op, "state must be one of %v", access.CopyRequestStates())
	}
	ctx, who, now := c.Request.Context(), principal(c), s.now()
	before, given := c.GetQuery("cursor")
	if given {
		if r, err := kept.CopyRequest(ctx, before); err != nil || !access.MaySeeCopyRequest(who, r) {
			if err != nil && fault.CodeOf(err) != fault.NotFound {
				return nil, "", err
			}
			return nil, "", fault.New(fault.Invalid, op, "cursor must be the next_cursor of another answer")
		}
	}
	for {
		page, err := kept.CopyRequests(ctx, before, copyRequestPage)
		if err != nil {
			return nil, "", err
		}
		for _, r := range page {
			before = r.ID
			if !access.MaySeeCopyRequest(who, r) || filtered && r.At(now) != access.CopyRequestState(state) {
				continue
			}
			if len(found) == limit {
				return found, found[len(found)-1].ID, nil
			}
			found = append(found, r)
		}
		if len(page) < copyRequestPage {
			return found, "", nil
		}
	}
}
