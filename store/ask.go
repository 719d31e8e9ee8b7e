package store

import (
	"context"
	"time"

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
	Outcome     string // answered, declined, failed, copy_requested
	Reason      string
	Model       string
	ModelCalls  int
	Duration    time.Duration // kept in whole milliseconds
	CreatedAt   time.Time
}

// InsertAsk stores an ask.
func (s *Store) InsertAsk(ctx context.Context, a Ask) error {
	return wrap("insert an ask", s.writer.InsertAsk(ctx, db.InsertAskParams{
		ID: a.ID, KeyID: a.KeyID, Owner: a.Owner, Database: a.Database, Question: a.Question, WrittenSql: a.WrittenSQL,
		ExecutedSql: a.ExecutedSQL, Outcome: a.Outcome, Reason: a.Reason, Model: a.Model, ModelCalls: int64(a.ModelCalls),
		DurationMs: a.Duration.Milliseconds(), CreatedAt: micros(a.CreatedAt),
	}))
}
