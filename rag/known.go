package rag

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"sluice/fault"
	"sluice/sqlguard"
)

// retry is how long what could not be looked at is left alone.
const retry = 30 * time.Second

// known is what is known of one database, kept for each relation and for each pair of columns, so that what one asker may
// not read is not needed for what he is told. At most one goroutine looks at a database.
type known struct {
	things map[string]*thing
	queue  []job
	busy   bool
	kept   int // values of all its tables

	lexicons map[[sha256.Size]byte]*lexicon
	plans    map[*lexicon]plan
}

// plan is which joins are to be tried, for tables with those words and those facts.
type plan struct {
	facts      []*tableFacts
	candidates []candidate
}

// thing is one answer of a database: the facts of a table, or whether a column refers to another. The version is what it
// depends on; another version makes it another question.
type thing struct {
	reads   []sqlguard.Relation // what it is about
	version string
	at      time.Time // when it was found out; zero while it never was
	failed  time.Time
	facts   *tableFacts
	of, in  int64
	pending chan struct{} // closed when the job for it ended; nil while there is none
}

// job finds one thing out.
type job struct {
	database, what string
	thing          *thing
	do             func(ctx context.Context, budget int) (thing, error)
}

// forget drops what is known of relations that are gone.
func (p *Profiler) forget(database string, catalog *sqlguard.Catalog) {
	there := map[sqlguard.Relation]bool{}
	for _, t := range catalog.Tables {
		there[t.Relation] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	db := p.database(database)
	for name, t := range db.things {
		if t.pending == nil && slices.ContainsFunc(t.reads, func(r sqlguard.Relation) bool { return !there[r] }) {
			db.kept -= t.facts.size()
			delete(db.things, name)
		}
	}
}

// maxLexicons are kept for a database: one for each set of rights and version of the catalogue.
const maxLexicons = 16

// lexicon gives the words of the tables, which takes long for a large schema and is the same for equal rights.
func (p *Profiler) lexicon(database string, tables []sqlguard.Table) *lexicon {
	h := sha256.New()
	for _, t := range tables {
		fmt.Fprintf(h, "%q %q %q %q\n", []string{t.Schema, t.Name}, t.Comment, t.PrimaryKey, t.Foreign)
		for _, c := range t.Columns {
			fmt.Fprintf(h, "%q %q %q\n", c.Name, c.Type, c.Comment)
		}
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	p.mu.Lock()
	db := p.database(database)
	l := db.lexicons[sum]
	p.mu.Unlock()
	if l != nil {
		return l
	}
	l = newLexicon(tables)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(db.lexicons) >= maxLexicons {
		clear(db.lexicons)
		clear(db.plans)
	}
	db.lexicons[sum] = l
	return l
}

// candidates gives the joins to try, which takes long for a large schema and is the same while the facts are. They are the
// caller's.
func (p *Profiler) candidates(database string, l *lexicon, tables []sqlguard.Table, facts []*tableFacts) []candidate {
	p.mu.Lock()
	old, ok := p.database(database).plans[l]
	p.mu.Unlock()
	if !ok || !slices.Equal(old.facts, facts) {
		old = plan{facts: facts, candidates: candidateJoins(l, tables, facts)}
		p.mu.Lock()
		p.database(database).plans[l] = old
		p.mu.Unlock()
	}
	return slices.Clone(old.candidates)
}

// database gives what is known of a database. The caller holds the lock.
func (p *Profiler) database(name string) *known {
	db := p.databases[name]
	if db == nil {
		db = &known{things: map[string]*thing{}, lexicons: map[[sha256.Size]byte]*lexicon{}, plans: map[*lexicon]plan{}}
		p.databases[name] = db
	}
	return db
}

// ask gives the thing of that name and version, and has it found out when it is not known or too old. An old answer
// serves until the new one is there.
func (p *Profiler) ask(database, name, version string, reads []sqlguard.Relation, do func(context.Context, int) (thing, error)) *thing {
	p.mu.Lock()
	defer p.mu.Unlock()
	db := p.database(database)
	t := db.things[name]
	if t == nil || t.version != version {
		if t != nil {
			db.kept -= t.facts.size()
		}
		t = &thing{version: version, reads: reads}
		db.things[name] = t
	}
	now := p.cfg.Now()
	fresh := !t.at.IsZero() && now.Sub(t.at) < p.cfg.Refresh
	resting := !t.failed.IsZero() && now.Sub(t.failed) < retry
	if fresh || resting || t.pending != nil || p.closed {
		return t
	}
	t.pending = make(chan struct{})
	db.queue = append(db.queue, job{database: database, what: name, thing: t, do: do})
	if !db.busy {
		db.busy = true
		p.work.Go(func() { p.look(db) })
	}
	return t
}

// answer waits for a thing that was never found out, until the limit or the end of ctx. What is not known is zero.
func (p *Profiler) answer(ctx context.Context, t *thing, limit <-chan struct{}) (thing, error) {
	p.mu.Lock()
	found, pending := *t, t.pending
	p.mu.Unlock()
	if !found.at.IsZero() || pending == nil {
		return found, nil
	}
	select {
	case <-pending:
	case <-limit:
	}
	if ctx.Err() != nil {
		return thing{}, fault.Wrap(context.Cause(ctx), fault.Canceled, "rag.Knowledge", "the request was cancelled")
	}
	return p.late(t), nil
}

func (p *Profiler) late(t *thing) thing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *t
}

// look does the jobs of one database, one after the other, until there are none.
func (p *Profiler) look(db *known) {
	for {
		p.mu.Lock()
		if len(db.queue) == 0 {
			db.busy = false
			p.mu.Unlock()
			return
		}
		j := db.queue[0]
		db.queue = db.queue[1:]
		budget := max(0, p.cfg.Total-db.kept+j.thing.facts.size())
		p.mu.Unlock()

		found, err := thing{}, p.ctx.Err()
		if err == nil {
			found, err = j.do(p.ctx, budget)
		}
		stopped := p.ctx.Err() != nil
		if err != nil && !stopped {
			p.cfg.Failed(j.database, j.what, err)
		}

		p.mu.Lock()
		if t := j.thing; err == nil {
			if db.things[j.what] == t { // else another version has taken its place meanwhile
				db.kept += found.facts.size() - t.facts.size()
			}
			t.facts, t.of, t.in = found.facts, found.of, found.in
			t.at, t.failed = p.cfg.Now(), time.Time{}
		} else if !stopped {
			t.failed = p.cfg.Now()
		}
		close(j.thing.pending)
		j.thing.pending = nil
		p.mu.Unlock()
	}
}

// size is how many values are kept of a table.
func (f *tableFacts) size() int {
	if f == nil {
		return 0
	}
	n := 0
	for _, c := range f.columns {
		n += len(c.values)
	}
	return n
}
