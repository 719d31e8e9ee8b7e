package rag

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/sqlguard"
)

// Config is what a Profiler needs; the zero value will do.
type Config struct {
	// HideValues says of which databases no data value may be shown to a model; nil hides none. Their tables are counted,
	// but no value is read.
	HideValues func(database string) bool
	Wait       time.Duration // how long an ask waits for what is not known yet; default 3 s, negative: not at all
	Refresh    time.Duration // after what time a table is looked at again; default 15 min
	Statement  time.Duration // limit of one statement; default 10 s
	Rows       int           // how many rows of a table are looked at; default 50,000
	Values     int           // how many values of a text column are kept at most; default 5,000
	Total      int           // how many values are kept of one database; default 200,000: about 120 MB
	Now        func() time.Time

	// Failed is told what could not be looked at: a name in quotes and the cause, for a log. It is tried again later. nil
	// tells nobody.
	Failed func(database, what string, err error)
}

func (c Config) withDefaults() Config {
	if c.HideValues == nil {
		c.HideValues = func(string) bool { return false }
	}
	if c.Wait == 0 {
		c.Wait = 3 * time.Second
	}
	if c.Refresh <= 0 {
		c.Refresh = 15 * time.Minute
	}
	if c.Statement <= 0 {
		c.Statement = 10 * time.Second
	}
	if c.Rows <= 0 {
		c.Rows = 50_000
	}
	if c.Values <= 0 {
		c.Values = 5_000
	}
	if c.Total <= 0 {
		c.Total = 200_000
	}
	if c.Failed == nil {
		c.Failed = func(string, string, error) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Profiler knows the databases. It may be used by any goroutine. Close ends what it does in the background.
type Profiler struct {
	cfg  Config
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	databases map[string]*known
}

// NewProfiler makes a Profiler that knows nothing yet.
func NewProfiler(cfg Config) *Profiler {
	ctx, stop := context.WithCancel(context.Background())
	return &Profiler{cfg: cfg.withDefaults(), ctx: ctx, stop: stop, databases: map[string]*known{}}
}

// Close ends all work in the background and waits for it. It may be called twice.
func (p *Profiler) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.work.Wait()
}

// Knowledge gives what an asker may be told about a database: of the relations that may says yes to, and of no other.
// Tables that nobody asked about before are looked at first, for Config.Wait at most; what is not ready by then comes
// without facts, and the work goes on. Its error is that of the catalogue, or of a caller who left.
func (p *Profiler) Knowledge(ctx context.Context, src Source, may func(sqlguard.Relation) bool) (*Knowledge, error) {
	catalog, err := src.Catalog(ctx)
	if err != nil {
		return nil, fmt.Errorf("rag: %w", err)
	}
	p.forget(src.Name(), catalog)
	tables := readable(catalog, may)
	limit, cancel := context.WithTimeout(ctx, max(0, p.cfg.Wait))
	defer cancel()
	s := sampler{cfg: p.cfg, src: src, may: may}
	hide := p.cfg.HideValues(src.Name())

	looks := make([]*thing, len(tables))
	for i, t := range tables {
		looks[i] = p.ask(src.Name(), "table "+key(t.Relation), version(t, hide), []sqlguard.Relation{t.Relation}, func(ctx context.Context, budget int) (thing, error) {
			facts, err := s.table(ctx, t, hide, budget)
			return thing{facts: facts}, err
		})
	}
	facts := make([]*tableFacts, len(tables))
	complete := true
	for i, l := range looks {
		found, err := p.answer(ctx, l, limit.Done())
		if err != nil {
			return nil, err
		}
		facts[i] = found.facts
		complete = complete && found.facts != nil
	}

	words := p.lexicon(src.Name(), tables)
	candidates := p.candidates(src.Name(), words, tables, facts)
	tests := make([]*thing, len(candidates))
	for i, c := range candidates {
		if c.of > 0 {
			continue
		}
		name := "join " + key(c.From.Relation) + "." + quoted(c.From.Column) + " " + key(c.To.Relation) + "." + quoted(c.To.Column)
		tests[i] = p.ask(src.Name(), name, c.version, []sqlguard.Relation{c.From.Relation, c.To.Relation}, func(ctx context.Context, _ int) (thing, error) {
			of, in, err := s.contained(ctx, c.From, c.To)
			return thing{of: of, in: in}, err
		})
	}
	for i, t := range tests {
		if t == nil {
			continue
		}
		found, err := p.answer(ctx, t, limit.Done())
		if err != nil {
			return nil, err
		}
		candidates[i].of, candidates[i].in = found.of, found.in
		complete = complete && !found.at.IsZero()
	}
	return newKnowledge(Knowledge{dialect: src.Dialect(), schema: catalog.DefaultSchema, words: words, tables: tables, facts: facts,
		joins: joins(tables, candidates), complete: complete, hidden: hide}), nil
}

// readable gives the tables that may says yes to, sorted, without references to any other.
func readable(catalog *sqlguard.Catalog, may func(sqlguard.Relation) bool) []sqlguard.Table {
	known := map[sqlguard.Relation]bool{}
	for _, t := range catalog.Tables {
		known[t.Relation] = may != nil && may(t.Relation)
	}
	var out []sqlguard.Table
	for _, t := range catalog.Tables {
		if !known[t.Relation] {
			continue
		}
		var foreign []sqlguard.ForeignKey
		for _, f := range t.Foreign {
			if known[f.References] {
				foreign = append(foreign, f)
			}
		}
		t.Foreign = foreign
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b sqlguard.Table) int { return compareRelations(a.Relation, b.Relation) })
	return out
}

func compareRelations(a, b sqlguard.Relation) int {
	if c := strings.Compare(a.Schema, b.Schema); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func key(r sqlguard.Relation) string { return relation(r) }

// version is what the facts of a table depend on: its columns, and whether values may be read.
func version(t sqlguard.Table, hide bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%t", hide)
	for _, c := range t.Columns {
		fmt.Fprintf(&b, " %s %q", quoted(c.Name), c.Type)
	}
	return b.String()
}
