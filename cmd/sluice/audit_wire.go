package main

import (
	"context"
	"encoding/hex"
	"path/filepath"
	"slices"

	"sluice/gateway"
	"sluice/lakecopy"
	"sluice/store"
)

// openLedger opens the audit ledger and puts the start into it.
func (s *server) openLedger(ctx context.Context) error {
	key, err := store.LedgerKey(s.cfg.Audit.Key, filepath.Join(s.cfg.Home, "audit.key"))
	if err != nil {
		return err
	}
	if s.ledger, err = s.store.OpenLedger(ctx, store.LedgerConfig{Head: s.cfg.Audit.Head, Key: key}); err != nil {
		return err
	}
	if found := s.ledger.Settled(); found != "" {
		s.log.Warn("the audit ledger was not as its head says; `sluice audit verify` tells more", "reason", found)
	}
	return s.ledger.Append(ctx, store.Event{Kind: "server.start", Details: map[string]any{"version": version}})
}

// auditLedger is the gateway's view of the ledger.
type auditLedger struct{ ledger *store.Ledger }

func (a auditLedger) Append(ctx context.Context, e gateway.AuditEvent) error {
	return a.ledger.Append(ctx, store.Event{Kind: e.Kind, Principal: e.Principal, RequestID: e.RequestID, Details: e.Details})
}

func (a auditLedger) Entries(ctx context.Context, f gateway.AuditFilter) ([]gateway.AuditEntry, error) {
	entries, err := a.ledger.Entries(ctx, store.EntryFilter{Kind: f.Kind, Principal: f.Principal, Since: f.Since, Before: f.Before, Limit: f.Limit})
	out := make([]gateway.AuditEntry, 0, len(entries))
	for _, e := range entries {
		out = append(out, gateway.AuditEntry{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Principal: e.Principal, RequestID: e.RequestID, Details: e.Details,
			Prev: hex.EncodeToString(e.Prev[:]), Hash: hex.EncodeToString(e.Hash[:])})
	}
	return out, err
}

func (a auditLedger) Verify(ctx context.Context) (gateway.AuditVerdict, error) {
	v, err := a.ledger.Verify(ctx)
	if err != nil {
		return gateway.AuditVerdict{}, err
	}
	return gateway.AuditVerdict{Status: string(v.Status), Entries: v.Entries, FirstBad: v.FirstBad, Reason: v.Reason,
		Seq: v.Last, Hash: hex.EncodeToString(v.LastHash[:])}, nil
}

// auditedJournal puts into the ledger what becomes of COPY and of external tables, before the journal has it: a run that
// cannot be recorded does not begin, and does not publish. It is here and not in the gateway because a run outlives its
// request, and may be settled by the next start.
type auditedJournal struct {
	lakecopy.Journal
	ledger *store.Ledger
}

func (j auditedJournal) append(ctx context.Context, kind, principal string, details map[string]any) error {
	for name, v := range details {
		details[name] = gateway.Presentable(ctx, v)
	}
	return j.ledger.Append(ctx, store.Event{Kind: kind, Principal: principal, RequestID: gateway.RequestIDOf(ctx), Details: details})
}

func (j auditedJournal) InsertRun(ctx context.Context, r store.Run) error {
	err := j.append(ctx, "copy.start", r.Principal, map[string]any{"run": r.ID, "job": r.JobID, "owner": r.Owner, "database": r.Database,
		"statement": r.Statement, "connection": r.Connection, "path": r.Path})
	if err != nil {
		return err
	}
	return j.Journal.InsertRun(ctx, r)
}

// UpdateRun records the end of a run: committed before its files count as published, aborted before that is final. A run that
// ended is updated again when files are put away: that is no other end.
func (j auditedJournal) UpdateRun(ctx context.Context, r store.Run) error {
	ends, err := j.ends(ctx, r)
	if err != nil {
		return err
	}
	if ends {
		details := map[string]any{"run": r.ID, "job": r.JobID, "owner": r.Owner, "database": r.Database, "connection": r.Connection, "path": r.Path,
			"outcome": string(r.State), "rows": r.Rows, "files": r.Files, "bytes": r.Bytes, "partitions": r.Partitions}
		if r.Kind != "" {
			details["kind"] = r.Kind
		}
		if err := j.append(ctx, "copy.end", r.Principal, details); err != nil {
			return err
		}
	}
	return j.Journal.UpdateRun(ctx, r)
}

// ends says whether r is another end than the journal has.
func (j auditedJournal) ends(ctx context.Context, r store.Run) (bool, error) {
	if r.State == store.Running {
		return false, nil
	}
	unsettled, err := j.UnsettledRuns(ctx)
	i := slices.IndexFunc(unsettled, func(u store.Run) bool { return u.ID == r.ID })
	return err == nil && i >= 0 && unsettled[i].State != r.State, err
}

func (j auditedJournal) InsertExternal(ctx context.Context, e store.External) error {
	err := j.append(ctx, "external.create", e.CreatedBy, map[string]any{"owner": e.Owner, "database": e.Database, "table": e.Schema + "." + e.Name,
		"connection": e.Connection, "path": e.Location})
	if err != nil {
		return err
	}
	return j.Journal.InsertExternal(ctx, e)
}

func (j auditedJournal) DeleteExternal(ctx context.Context, database, name string) (bool, error) {
	who := gateway.CallerOf(ctx)
	err := j.append(ctx, "external.drop", who.KeyID, map[string]any{"owner": who.Owner, "database": database, "table": name})
	if err != nil {
		return false, err
	}
	return j.Journal.DeleteExternal(ctx, database, name)
}
