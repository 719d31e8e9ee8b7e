package store

import (
	"context"
	"strings"
	"time"

	"sluice/fault"
)

// EntryFilter chooses entries of the ledger. Zero values choose all.
type EntryFilter struct {
	Kind      string // exactly; with a point at the end, all kinds that begin so: "key."
	Principal string
	Since     time.Time
	Before    int64 // entries with lower numbers only
	Limit     int   // at most; at least 1
}

// Entries lists entries, newest first.
func (l *Ledger) Entries(ctx context.Context, f EntryFilter) ([]Entry, error) {
	if f.Limit < 1 {
		return nil, fault.Bug("store: a list of the ledger without a limit")
	}
	query := "SELECT seq, time, kind, principal, request_id, details, prev, hash FROM ledger"
	var where []string
	var args []any
	add := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	switch {
	case strings.HasSuffix(f.Kind, "."):
		add("kind >= ? AND kind < ?", f.Kind, strings.TrimSuffix(f.Kind, ".")+"/") // "/" comes after "."
	case f.Kind != "":
		add("kind = ?", f.Kind)
	}
	if f.Principal != "" {
		add("principal = ?", f.Principal)
	}
	if !f.Since.IsZero() {
		add("time >= ?", micros(f.Since))
	}
	if f.Before != 0 {
		add("seq < ?", f.Before)
	}
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	rows, err := l.store.read.QueryContext(ctx, query+" ORDER BY seq DESC LIMIT ?", append(args, f.Limit)...)
	if err != nil {
		return nil, wrap("list the ledger", err)
	}
	defer rows.Close()
	var out []Entry
	for rows.Next() {
		var e Entry
		var at int64
		var details string
		var prev, hash []byte
		if err := rows.Scan(&e.Seq, &at, &e.Kind, &e.Principal, &e.RequestID, &details, &prev, &hash); err != nil {
			return nil, wrap("list the ledger", err)
		}
		e.Time, e.Details = moment(at), []byte(details)
		copy(e.Prev[:], prev)
		copy(e.Hash[:], hash)
		out = append(out, e)
	}
	return out, wrap("list the ledger", rows.Err())
}
