package database

import (
	"slices"
	"sync"

	"sluice/sqlguard"
)

// seen remembers statements that passed, because programs send the same ones again and again: 20 µs in place of some
// milliseconds. What it gives is exactly what the gate would give, for these reasons: the catalogue is the same one, so
// the names mean the same; the gate asks about the caller only whether each relation that the statement reads may be
// read, and so does find; refusals, whose hints depend on more, are not remembered, nor is what reads external tables,
// whose files change.
type seen struct {
	mu      sync.Mutex
	entries map[seenKey]seenEntry
	order   []seenKey // oldest first
}

type seenKey struct {
	sql     string
	profile sqlguard.Profile
}

type seenEntry struct {
	catalog  *sqlguard.Catalog
	approved sqlguard.Approved
}

const (
	maxSeen      = 512     // statements
	maxSeenBytes = 8 << 10 // of one of them
)

func (s *seen) find(sql string, profile sqlguard.Profile, cat *sqlguard.Catalog, may func(sqlguard.Relation) bool) (sqlguard.Approved, bool) {
	s.mu.Lock()
	e, ok := s.entries[seenKey{sql, profile}]
	s.mu.Unlock()
	if !ok || e.catalog != cat || may == nil {
		return sqlguard.Approved{}, false
	}
	// What may not be read gets the gate's own answer.
	if slices.ContainsFunc(e.approved.Relations(), func(r sqlguard.Relation) bool { return !may(r) }) {
		return sqlguard.Approved{}, false
	}
	return e.approved, true
}

func (s *seen) keep(sql string, cat *sqlguard.Catalog, a sqlguard.Approved) {
	if len(sql) > maxSeenBytes || len(a.SQL()) > 4*maxSeenBytes || len(a.Scans()) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = map[seenKey]seenEntry{}
	}
	key := seenKey{sql, a.Profile()}
	if _, again := s.entries[key]; !again {
		if len(s.order) == maxSeen {
			delete(s.entries, s.order[0])
			s.order = s.order[1:]
		}
		s.order = append(s.order, key)
	}
	s.entries[key] = seenEntry{catalog: cat, approved: a}
}
