package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"sluice/fault"
	"sluice/store/db"
)

// Verified is a question with the SQL that somebody confirmed for it. There is one for each question, database, owner and key.
type Verified struct {
	ID         string
	Database   string
	Owner      string // the user whom it serves; "" everybody who may read what it reads
	KeyID      string // the one key of the owner that it serves; "" all
	Name       string // of an imported one
	Question   string
	SQL        string
	VerifiedBy string
	VerifiedAt time.Time
	FromAsk    string // the ask that was marked right; "" none
	Note       string
}

// MaxVerified is how many pairs one owner may have for a database, and how many everybody's there may be: each ask looks
// through them.
const MaxVerified = 10_000

// Mark is what somebody says of an ask, and what becomes of the pairs that came from it, as one change.
type Mark struct {
	Mark     string    // "", right, wrong
	By       string    // user; "" with no mark
	At       time.Time // zero with no mark
	Note     string
	Put      *Verified // nil: none
	Withdraw []string  // ids; those that are gone are no error
}

// MarkAsk marks an ask, and gives the pair as it is kept. No such ask is NotFound; more than MaxVerified pairs are TooLarge.
func (s *Store) MarkAsk(ctx context.Context, id string, m Mark) (put *Verified, err error) {
	err = s.change(ctx, func(q *db.Queries) error {
		n, err := q.MarkAsk(ctx, db.MarkAskParams{Mark: m.Mark, MarkedBy: m.By, MarkedAt: orNull(m.At), Note: m.Note, ID: id})
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "store.MarkAsk", "no such question")
		}
		if err != nil {
			return err
		}
		for _, pair := range m.Withdraw {
			if _, err := q.DeleteVerified(ctx, pair); err != nil {
				return err
			}
		}
		if m.Put == nil {
			return nil
		}
		kept, err := putVerified(ctx, q, *m.Put)
		put = &kept
		return err
	})
	if err != nil {
		return nil, wrap("mark an ask", err)
	}
	return put, nil
}

// PutVerified stores pairs, all or none, and gives them as they are kept: one of the same question, database, owner and key
// is changed and keeps its id. More than MaxVerified of an owner are TooLarge.
func (s *Store) PutVerified(ctx context.Context, pairs []Verified) (kept []Verified, err error) {
	err = s.change(ctx, func(q *db.Queries) error {
		for _, p := range pairs {
			v, err := putVerified(ctx, q, p)
			if err != nil {
				return err
			}
			kept = append(kept, v)
		}
		return nil
	})
	if err != nil {
		return nil, wrap("store verified pairs", err)
	}
	return kept, nil
}

func putVerified(ctx context.Context, q *db.Queries, v Verified) (Verified, error) {
	if v.ID == "" || v.Database == "" || v.Question == "" || v.SQL == "" || v.VerifiedBy == "" || v.Owner == "" && v.KeyID != "" {
		return Verified{}, fault.Bug("store: a verified pair lacks something")
	}
	row, err := q.PutVerified(ctx, db.PutVerifiedParams{ID: v.ID, Database: v.Database, Owner: v.Owner, KeyID: v.KeyID, Name: v.Name, Question: v.Question,
		Sql: v.SQL, VerifiedBy: v.VerifiedBy, VerifiedAt: micros(v.VerifiedAt), FromAsk: v.FromAsk, Note: v.Note})
	if err != nil {
		return Verified{}, err
	}
	n, err := q.CountVerified(ctx, db.CountVerifiedParams{Database: v.Database, Owner: v.Owner})
	if err == nil && n > MaxVerified {
		err = fault.New(fault.TooLarge, "store.PutVerified", "there are %d verified questions of one owner for a database at most: remove some", MaxVerified)
	}
	return verified(row), err
}

// VerifiedFilter chooses pairs: everybody's, or those that serve a caller.
type VerifiedFilter struct {
	Everybodys bool
	Owner      string // with those that serve all
	Whole      bool   // all of the owner's; else those that serve the key KeyID
	KeyID      string
	Database   string // "" all
	Before     Place
	Limit      int // at most; required
}

// Verified lists pairs, the newest first.
func (s *Store) Verified(ctx context.Context, f VerifiedFilter) ([]Verified, error) {
	before, id := f.Before.before()
	rows, err := s.reader.Verified(ctx, db.VerifiedParams{Everybodys: bit(f.Everybodys), Owner: f.Owner, Whole: bit(f.Whole), KeyID: f.KeyID, Database: f.Database,
		Before: before, BeforeID: id, Most: int64(f.Limit)})
	return verifieds(rows), wrap("list verified pairs", err)
}

// VerifiedByID finds a pair. No such pair is NotFound.
func (s *Store) VerifiedByID(ctx context.Context, id string) (Verified, error) {
	row, err := s.reader.VerifiedByID(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return Verified{}, fault.New(fault.NotFound, "store.VerifiedByID", "no such verified question")
	}
	return verified(row), wrap("find a verified pair", err)
}

// VerifiedAs finds the pair of a question, database, owner and key. No such pair is NotFound.
func (s *Store) VerifiedAs(ctx context.Context, database, owner, key, question string) (Verified, error) {
	row, err := s.reader.VerifiedAs(ctx, db.VerifiedAsParams{Database: database, Owner: owner, KeyID: key, Question: question})
	if errors.Is(err, sql.ErrNoRows) {
		return Verified{}, fault.New(fault.NotFound, "store.VerifiedAs", "no such verified question")
	}
	return verified(row), wrap("find a verified pair", err)
}

// VerifiedFromAsk lists the pairs that came from an ask.
func (s *Store) VerifiedFromAsk(ctx context.Context, ask string) ([]Verified, error) {
	if ask == "" {
		return nil, nil
	}
	rows, err := s.reader.VerifiedFromAsk(ctx, ask)
	return verifieds(rows), wrap("list the pairs of an ask", err)
}

// VerifiedFor gives the pairs of a database that serve an owner's key, chosen by their questions: choose gets all of them, the
// owner's before everybody's and the newest first, and gives the places of those that are wanted.
func (s *Store) VerifiedFor(ctx context.Context, database, owner, key string, choose func(questions []string) []int) (out []Verified, err error) {
	err = s.look(ctx, func(q *db.Queries) error {
		rows, err := q.VerifiedQuestions(ctx, db.VerifiedQuestionsParams{Database: database, Owner: owner, KeyID: key})
		if err != nil || len(rows) == 0 {
			return err
		}
		questions := make([]string, len(rows))
		for i, r := range rows {
			questions[i] = r.Question
		}
		for _, at := range choose(questions) {
			row, err := q.VerifiedByID(ctx, rows[at].ID)
			if err != nil {
				return err
			}
			out = append(out, verified(row))
		}
		return nil
	})
	return out, wrap("find verified pairs", err)
}

// DeleteVerified withdraws a pair. No such pair is NotFound.
func (s *Store) DeleteVerified(ctx context.Context, id string) error {
	n, err := s.writer.DeleteVerified(ctx, id)
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "store.DeleteVerified", "no such verified question")
	}
	return wrap("withdraw a verified pair", err)
}

func verified(row db.Verified) Verified {
	return Verified{ID: row.ID, Database: row.Database, Owner: row.Owner, KeyID: row.KeyID, Name: row.Name, Question: row.Question, SQL: row.Sql,
		VerifiedBy: row.VerifiedBy, VerifiedAt: moment(row.VerifiedAt), FromAsk: row.FromAsk, Note: row.Note}
}

func verifieds(rows []db.Verified) []Verified {
	out := make([]Verified, len(rows))
	for i, r := range rows {
		out[i] = verified(r)
	}
	return out
}
