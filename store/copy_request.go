package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/store/db"
)

// maxPendingCopyRequests bounds what waits in one user's name: a program in a loop must not bury what people are to read.
const maxPendingCopyRequests = 100

// InsertCopyRequest stores a new request, which is pending. When the same key asked for the same before and that still waits,
// it gives the earlier one and stores nothing: made is false then. Too many that wait in a user's name are a Conflict.
func (s *Store) InsertCopyRequest(ctx context.Context, r access.CopyRequest) (kept access.CopyRequest, made bool, err error) {
	columns, err := json.Marshal(r.Columns)
	if err != nil {
		return access.CopyRequest{}, false, wrap("insert a copy request", err)
	}
	if !r.Bound() {
		return access.CopyRequest{}, false, fault.Bug("store: a copy request whose sum is not of what it holds")
	}
	err = s.change(ctx, func(q *db.Queries) error {
		same, err := q.SameCopyRequest(ctx, db.SameCopyRequestParams{Owner: r.Asker.Owner, KeyID: r.Asker.Key, Sha256: r.Sum[:], Now: micros(r.CreatedAt)})
		if err == nil {
			kept, err = copyRequest(same)
			return err
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		n, err := q.CountPendingCopyRequests(ctx, db.CountPendingCopyRequestsParams{Owner: r.Asker.Owner, Now: micros(r.CreatedAt)})
		if err != nil {
			return err
		}
		if n >= maxPendingCopyRequests {
			return &fault.Error{Code: fault.Conflict, Op: "store.InsertCopyRequest", Msg: fmt.Sprintf("%d copy requests of '%s' wait already", n, r.Asker.Owner),
				Hint: "have some approved, denied or withdrawn first"}
		}
		kept, made = r, true
		kept.State = access.CopyPending
		return q.InsertCopyRequest(ctx, db.InsertCopyRequestParams{
			ID: r.ID, Sha256: r.Sum[:], Statement: r.Statement, Database: r.Database, Connection: r.Folder.Connection, Path: r.Folder.Path, CheckedSql: r.SQL,
			Columns: string(columns), KeyID: r.Asker.Key, KeyName: r.KeyName, Owner: r.Asker.Owner, Login: bit(r.Asker.Login), Ask: r.Ask,
			CreatedAt: micros(r.CreatedAt), ExpiresAt: micros(r.ExpiresAt),
		})
	})
	return kept, made, wrap("insert a copy request", err)
}

// SameCopyRequest finds the request that waits already for what r asks for, by the same key; found is false when there is none.
func (s *Store) SameCopyRequest(ctx context.Context, r access.CopyRequest) (same access.CopyRequest, found bool, err error) {
	row, err := s.reader.SameCopyRequest(ctx, db.SameCopyRequestParams{Owner: r.Asker.Owner, KeyID: r.Asker.Key, Sha256: r.Sum[:], Now: micros(r.CreatedAt)})
	if errors.Is(err, sql.ErrNoRows) {
		return access.CopyRequest{}, false, nil
	}
	if err == nil {
		same, err = copyRequest(row)
	}
	return same, err == nil, wrap("find a copy request", err)
}

// CopyRequest finds a request. No such one is NotFound.
func (s *Store) CopyRequest(ctx context.Context, id string) (access.CopyRequest, error) {
	row, err := s.reader.CopyRequestByID(ctx, id)
	return found(row, err, copyRequest, "no such copy request")
}

// CopyRequests lists requests, newest first, limit at most: all, or those behind the one that before names. When there is no
// such one, it is Invalid.
func (s *Store) CopyRequests(ctx context.Context, before string, limit int) ([]access.CopyRequest, error) {
	at := db.CopyRequestsBeforeParams{CreatedAt: math.MaxInt64, Most: int64(limit)}
	if before != "" {
		row, err := s.reader.CopyRequestByID(ctx, before)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, fault.New(fault.Invalid, "store.CopyRequests", "cursor must be the next_cursor of another answer")
		}
		if err != nil {
			return nil, wrap("list copy requests", err)
		}
		at.CreatedAt, at.ID = row.CreatedAt, row.ID
	}
	rows, err := s.reader.CopyRequestsBefore(ctx, at)
	if err != nil {
		return nil, wrap("list copy requests", err)
	}
	return each(rows, copyRequest)
}

// DecideCopyRequest approves, denies or withdraws a pending request: who, when and why are those of r. Of many who decide at
// once, one does; the others, and all who come too late, get a Conflict.
func (s *Store) DecideCopyRequest(ctx context.Context, r access.CopyRequest) error {
	switch r.State {
	case access.CopyApproved, access.CopyDenied, access.CopyWithdrawn:
	default:
		return fault.Bug("store: %s is no decision on a copy request", r.State)
	}
	if !r.Bound() { // the row's own sum is compared below
		return AlteredCopyRequest()
	}
	n, err := s.writer.DecideCopyRequest(ctx, db.DecideCopyRequestParams{State: string(r.State), DecidedBy: r.DecidedBy, DecidedWith: r.DecidedWith,
		Now: orNull(r.DecidedAt), Reason: r.Reason, ID: r.ID, ExpiresAfter: micros(r.DecidedAt), Sha256: r.Sum[:]})
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "store.DecideCopyRequest", "this copy request does not wait any more: somebody decided it, or its time is over")
	}
	return wrap("decide a copy request", err)
}

// AlteredCopyRequest is the refusal of a request that is not what was asked for any more.
func AlteredCopyRequest() error {
	return fault.New(fault.Conflict, "store.CopyRequest", "this copy request is not what was asked for: it was altered in the store")
}

// StartCopyRequest lets an approved request run, once: a second start is a Conflict.
func (s *Store) StartCopyRequest(ctx context.Context, id string, now time.Time) error {
	n, err := s.writer.StartCopyRequest(ctx, db.StartCopyRequestParams{Now: orNull(now), ID: id})
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "store.StartCopyRequest", "this copy request has run already")
	}
	return wrap("start a copy request", err)
}

// EndCopyRequest records how a request that was approved ended: state, end, run and error are those of r.
func (s *Store) EndCopyRequest(ctx context.Context, r access.CopyRequest) error {
	if r.State != access.CopyDone && r.State != access.CopyFailed {
		return fault.Bug("store: %s is no end of a copy request", r.State)
	}
	n, err := s.writer.EndCopyRequest(ctx, db.EndCopyRequestParams{State: string(r.State), Now: orNull(r.EndedAt), RunID: r.RunID, Kind: r.Kind, Error: r.Error, ID: r.ID})
	if err == nil && n == 0 {
		return fault.Bug("store: copy request %s ended without having run", r.ID)
	}
	return wrap("end a copy request", err)
}

// SettleCopyRequests settles, at a start, what an earlier process left: an approved request never runs a second time, so it
// is done when a run of its was committed, and has failed else. It comes after the lake has settled its runs. Pending
// requests whose time is over are marked as expired.
func (s *Store) SettleCopyRequests(ctx context.Context, now time.Time) error {
	return wrap("settle copy requests", s.change(ctx, func(q *db.Queries) error {
		if err := q.ExpireCopyRequests(ctx, micros(now)); err != nil {
			return err
		}
		left, err := q.UnsettledCopyRequests(ctx)
		if err != nil {
			return err
		}
		for _, r := range left {
			end := db.EndCopyRequestParams{State: string(access.CopyFailed), Now: orNull(now), ID: r.ID,
				Error: "the server ended before the copy did: nothing was published"}
			runs, err := q.RunsOfJob(ctx, r.ID)
			if err != nil {
				return err
			}
			for _, run := range runs {
				end.RunID = run.ID
				if run.State == string(Committed) {
					end.State, end.Error = string(access.CopyDone), ""
					break
				}
			}
			if _, err := q.EndCopyRequest(ctx, end); err != nil {
				return err
			}
		}
		return nil
	}))
}

func copyRequest(row db.CopyRequest) (access.CopyRequest, error) {
	r := access.CopyRequest{
		ID: row.ID, State: access.CopyRequestState(row.State), Statement: row.Statement, Database: row.Database,
		Folder: access.Folder{Connection: row.Connection, Path: row.Path}, SQL: row.CheckedSql,
		Asker: access.CopyAsker{Key: row.KeyID, Owner: row.Owner, Login: row.Login != 0}, KeyName: row.KeyName, Ask: row.Ask,
		CreatedAt: moment(row.CreatedAt), ExpiresAt: moment(row.ExpiresAt), DecidedBy: row.DecidedBy, DecidedWith: row.DecidedWith,
		DecidedAt: orZero(row.DecidedAt), Reason: row.Reason, StartedAt: orZero(row.StartedAt), EndedAt: orZero(row.EndedAt),
		RunID: row.RunID, Kind: row.Kind, Error: row.Error,
	}
	if len(row.Sha256) != copy(r.Sum[:], row.Sha256) || len(row.Sha256) != len(r.Sum) {
		return access.CopyRequest{}, fmt.Errorf("store: copy request %s is damaged: its sum has %d bytes", row.ID, len(row.Sha256))
	}
	if err := json.Unmarshal([]byte(row.Columns), &r.Columns); err != nil {
		return access.CopyRequest{}, fmt.Errorf("store: copy request %s is damaged: %w", row.ID, err)
	}
	return r, nil
}
