package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/access"
	"sluice/database"
	"sluice/sqlguard"
)

// Source is what the agent needs of a database; *database.Source is one.
type Source interface {
	Name() string
	Dialect() sqlguard.Dialect
	Catalog(ctx context.Context) (*sqlguard.Catalog, error)
	Approve(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error)
	Run(ctx context.Context, a sqlguard.Approved) (array.RecordReader, error)
}

// Message is one turn of a prompt. When the last one is an assistant's, the model goes on from its text.
type Message struct {
	Role    string // system, user or assistant
	Content string
}

// Completion asks a model to answer.
type Completion struct {
	Model       string
	Messages    []Message
	Temperature float64
	Seed        int
	MaxTokens   int
	NumCtx      int // tokens of context to load the model with; 0 as it comes
	Stop        []string
}

// Completer is all that the agent needs of a model. cmd/sluice wires it to the scheduler.
type Completer interface {
	Complete(ctx context.Context, c Completion) (string, error)
}

// Outcome of an ask.
type Outcome string

// The outcomes.
const (
	Answered Outcome = "answered" // the text and the table come from rows that were read
	Declined Outcome = "declined" // it may not or cannot be done, and Reason says why
	Failed   Outcome = "failed"   // it was tried and did not work, and Reason says how
)

// Ask is a question about a database.
type Ask struct {
	Who      access.Principal
	Question string
	Evidence string // a definition that the asker supplies, "" none
	Model    string // "" the configured one
	MaxRows  int    // 0 the configured cap; a larger number is cut to it
	OnEvent  func(Event)

	// Schema replaces the schema card in the prompt. Only agent/eval sets it, to measure the plain prompt on a question
	// set's own schema file; it must never carry text from a caller, who could show the model tables beyond the rights.
	Schema string
}

// Event tells of progress. Stage is schema, candidate, gate, rows or answer, in this order.
type Event struct {
	Stage string `json:"stage"`
	Text  string `json:"text,omitempty"`
}

// Answer is the whole result.
type Answer struct {
	ID         string // under which it is recorded
	Outcome    Outcome
	Text       string // the sentence for the person, never empty
	Reason     string // why declined or failed
	SQL        string // as the gate checked it (deparsed), external tables under their names; empty when it let nothing through
	Written    string // as the model wrote it
	Table      *Table // nil unless Answered
	Attempts   int    // statements that the model wrote
	ModelCalls int
	Model      string
}

// Table is a result cut at the cap of rows or of bytes. Cells are JSON, in the form of database.JSONValue.
type Table struct {
	Columns   []database.Column
	Rows      [][]json.RawMessage
	Truncated bool
}

// Record is what the Learning Loop keeps of an ask. It holds no rows.
type Record struct {
	ID       string
	At       time.Time
	Took     time.Duration
	KeyID    string
	Owner    string
	Database string
	Question string
	Model    string
	Written  string
	SQL      string
	Outcome  Outcome
	Reason   string

	ModelCalls int
}
