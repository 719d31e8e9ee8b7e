package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"sluice/fault"
	"sluice/store/db"
)

// Ask is what the agent was asked and what came of it. It never holds rows.
type Ask struct {
	ID          string
	KeyID       string
	Owner       string
	Database    string
	Question    string
	WrittenSQL  string // as the model wrote it
	ExecutedSQL string // as the gate let it through; "" when it did not
	Outcome     string // answered, declined, failed, copy_requested, cancelled, error
	Reason      string
	Model       string
	ModelCalls  int
	Duration    time.Duration // kept in whole milliseconds
	CreatedAt   time.Time

	Attempts   int
	Agreed     bool       // all candidates that found something found the same
	Tables     []Relation // that the question was taken to be about, the best first
	Candidates []Candidate
	Timings    map[string]time.Duration // by step, kept in whole milliseconds
	VerifiedID string                   // the pair that answered it; "" none
	Follows    bool                     // it was asked within a conversation or with a definition: the question alone is not all of it

	// Readable are the relations that the asker could read then; nil when that is not known. Lists do not fill it.
	Readable []Relation
	Scope    string // stands for Readable: asks with the same have the same; "" not known

	Mark     string // "", right, wrong
	MarkedBy string // user
	MarkedAt time.Time
	Note     string
}

// Relation is a table or view of a source.
type Relation struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

// Candidate is a statement that a model wrote for an ask, and what came of it.
type Candidate struct {
	Written string `json:"written"`
	Mended  string `json:"mended,omitempty"`
	SQL     string `json:"sql,omitempty"` // as the gate let it through
	Round   string `json:"round"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	Rows    int    `json:"rows"`
	Votes   int    `json:"votes"`
	TookMS  int64  `json:"took_ms"`
}

// How many asks are kept, and how long. Marked ones stay until their owner is deleted.
const (
	keepAsks      = 100_000
	keepAsksOf    = 10_000 // of one owner, so that a busy program does not push out what others asked
	keepAsksFor   = 400 * 24 * time.Hour
	pruneAsksEach = 100 // inserts
)

// InsertAsk stores an ask. Now and then it deletes what is beyond the bounds: the oldest, and never a marked one.
func (s *Store) InsertAsk(ctx context.Context, a Ask) error {
	tables, err := json.Marshal(relations(a.Tables))
	candidates, err2 := json.Marshal(append([]Candidate{}, a.Candidates...))
	timings := map[string]int64{}
	for step, took := range a.Timings {
		timings[step] = took.Milliseconds()
	}
	times, err3 := json.Marshal(timings)
	if err := errors.Join(err, err2, err3); err != nil {
		return wrap("insert an ask", err)
	}
	hash, readable := "", []byte(nil)
	if a.Readable != nil {
		sorted := slices.Clone(a.Readable)
		slices.SortFunc(sorted, func(a, b Relation) int {
			return strings.Compare(a.Schema+"\x00"+a.Name, b.Schema+"\x00"+b.Name)
		})
		if readable, err = json.Marshal(relations(sorted)); err != nil {
			return wrap("insert an ask", err)
		}
		sum := sha256.Sum256(readable)
		hash = hex.EncodeToString(sum[:])
	}
	prune := s.asks.Add(1)%pruneAsksEach == 0
	return wrap("insert an ask", s.change(ctx, func(q *db.Queries) error {
		if hash != "" {
			if err := q.InsertAskScope(ctx, db.InsertAskScopeParams{Hash: hash, Relations: string(readable)}); err != nil {
				return err
			}
		}
		err := q.InsertAsk(ctx, db.InsertAskParams{
			ID: a.ID, KeyID: a.KeyID, Owner: a.Owner, Database: a.Database, Question: a.Question, WrittenSql: a.WrittenSQL,
			ExecutedSql: a.ExecutedSQL, Outcome: a.Outcome, Reason: a.Reason, Model: a.Model, ModelCalls: int64(a.ModelCalls),
			DurationMs: a.Duration.Milliseconds(), CreatedAt: micros(a.CreatedAt), Attempts: int64(a.Attempts), Agreed: bit(a.Agreed),
			Tables: string(tables), Candidates: string(candidates), Timings: string(times), VerifiedID: a.VerifiedID, Scope: hash,
			Follows: bit(a.Follows),
		})
		if err != nil || !prune {
			return err
		}
		return pruneAsks(ctx, q, a.Owner, a.CreatedAt.Add(-keepAsksFor), keepAsks, keepAsksOf)
	}))
}

func pruneAsks(ctx context.Context, q *db.Queries, owner string, before time.Time, most, mostOf int64) error {
	_, err := q.DeleteOldAsks(ctx, micros(before))
	_, err2 := q.DeleteAsksOfBeyond(ctx, db.DeleteAsksOfBeyondParams{Owner: owner, Most: mostOf})
	_, err3 := q.DeleteAsksBeyond(ctx, most)
	return errors.Join(err, err2, err3, q.DeleteIdleAskScopes(ctx))
}

// AskFilter chooses asks. Zero values choose all, but for the owner.
type AskFilter struct {
	Everybodys bool   // else those of Owner alone
	Owner      string // user
	KeyID      string // only those of this key
	Database   string
	Outcome    string
	Mark       *string // "" are those without one
	Before     Place
	Limit      int // at most; required
}

// Place is a place in a list that is sorted by time and id, the newest first. The zero Place is its beginning.
type Place struct {
	At time.Time
	ID string
}

func (p Place) before() (int64, string) {
	if p.ID == "" {
		return 1<<63 - 1, ""
	}
	return micros(p.At), p.ID
}

// Asks lists asks, the newest first, without what their askers could read.
func (s *Store) Asks(ctx context.Context, f AskFilter) ([]Ask, error) {
	before, id := f.Before.before()
	p := db.AsksParams{Everybodys: bit(f.Everybodys), Owner: f.Owner, KeyID: f.KeyID, Database: f.Database, Outcome: f.Outcome, AnyMark: 1,
		Before: before, BeforeID: id, Most: int64(f.Limit)}
	if f.Mark != nil {
		p.AnyMark, p.Mark = 0, *f.Mark
	}
	rows, err := s.reader.Asks(ctx, p)
	if err != nil {
		return nil, wrap("list asks", err)
	}
	return each(rows, ask)
}

// Ask finds an ask, with what its asker could read. No such ask is NotFound.
func (s *Store) Ask(ctx context.Context, id string) (a Ask, err error) {
	err = s.look(ctx, func(q *db.Queries) error {
		row, err := q.AskByID(ctx, id)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.New(fault.NotFound, "store.Ask", "no such question")
		}
		if err != nil {
			return err
		}
		if a, err = ask(row); err != nil {
			return err
		}
		a.Readable, err = askScope(ctx, q, a.Scope)
		return err
	})
	return a, wrap("find an ask", err)
}

// AskScope gives the relations that a Scope stands for; nil when it is not known.
func (s *Store) AskScope(ctx context.Context, scope string) ([]Relation, error) {
	all, err := askScope(ctx, s.reader, scope)
	return all, wrap("find what an asker could read", err)
}

func askScope(ctx context.Context, q *db.Queries, scope string) ([]Relation, error) {
	if scope == "" {
		return nil, nil
	}
	text, err := q.AskScope(ctx, scope)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := []Relation{}
	return out, json.Unmarshal([]byte(text), &out)
}

func ask(row db.Ask) (Ask, error) {
	a := Ask{
		ID: row.ID, KeyID: row.KeyID, Owner: row.Owner, Database: row.Database, Question: row.Question, WrittenSQL: row.WrittenSql,
		ExecutedSQL: row.ExecutedSql, Outcome: row.Outcome, Reason: row.Reason, Model: row.Model, ModelCalls: int(row.ModelCalls),
		Duration: time.Duration(row.DurationMs) * time.Millisecond, CreatedAt: moment(row.CreatedAt), Attempts: int(row.Attempts), Agreed: row.Agreed != 0,
		VerifiedID: row.VerifiedID, Scope: row.Scope, Follows: row.Follows != 0, Mark: row.Mark, MarkedBy: row.MarkedBy, Note: row.Note, Timings: map[string]time.Duration{},
	}
	a.MarkedAt = orZero(row.MarkedAt)
	timings := map[string]int64{}
	err := errors.Join(json.Unmarshal([]byte(row.Tables), &a.Tables), json.Unmarshal([]byte(row.Candidates), &a.Candidates), json.Unmarshal([]byte(row.Timings), &timings))
	if err != nil {
		return Ask{}, errors.New("store: ask " + row.ID + " is damaged")
	}
	for step, ms := range timings {
		a.Timings[step] = time.Duration(ms) * time.Millisecond
	}
	return a, nil
}

// relations is never null in JSON.
func relations(all []Relation) []Relation { return append([]Relation{}, all...) }
