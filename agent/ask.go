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

// Source is what the agent needs of a database; *database.Source is one. One that records what runs for an ask has a method
// Unrecorded() Source besides, for looks at the tables that are not for this ask alone.
type Source interface {
	Name() string
	DefaultSchema() string
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

	// RepeatPenalty is Ollama's repeat_penalty; 0 is the model's own, which is 1.1 for most. SQL repeats names, commas and
	// dots by its nature: 1 lets it.
	RepeatPenalty float64

	Grammar string // GBNF that binds each answer; "" none
	N       int    // answers from one reading of the prompt; 0 is 1
	Expect  bool   // the answer will repeat much of the prompt, as a corrected statement does
}

// Completer is all that the agent needs of a model. cmd/sluice wires it to the scheduler.
type Completer interface {
	// Complete gives N answers, or fewer where the model's runner cannot give several; at least one when err is nil. A
	// runner that has no grammars, or that cannot keep this one, fails with Invalid or Unimplemented.
	Complete(ctx context.Context, c Completion) ([]string, error)
}

// Outcome of an ask.
type Outcome string

// The outcomes.
const (
	Answered Outcome = "answered" // the text and the table come from rows that were read
	Declined Outcome = "declined" // it may not or cannot be done, and Reason says why
	Failed   Outcome = "failed"   // it was tried and did not work, and Reason says how

	// Of records alone, not of answers: the caller left, or something came in the way that is not the question's fault.
	Cancelled Outcome = "cancelled"
	Errored   Outcome = "error"
)

// Ask is a question about a database.
type Ask struct {
	Who      access.Principal
	Question string
	Evidence string // a definition that the asker supplies, "" none
	Model    string // "" the configured one
	MaxRows  int    // 0 the configured cap; a larger number is cut to it
	OnEvent  func(Event)

	// Copy makes copy requests of what the question wishes to have copied; nil: such a wish is declined.
	Copy CopyDoor

	// Earlier are the turns of the conversation before this question, the oldest first. Only the last three are looked at.
	Earlier []Turn

	// Schema replaces the schema card in the prompt. Only agent/eval sets it, to measure the plain prompt on a question
	// set's own schema file; it must never carry text from a caller, who could show the model tables beyond the rights.
	Schema string
}

// Turn is an earlier question of a conversation with the SQL that answered it, as Answer.SQL gave it. Both come from the
// caller, so the SQL passes the gate again, and its result is read again, before the model sees any of it.
type Turn struct {
	Question string
	SQL      string
}

// Event tells of progress. Stage is schema, candidate, gate, rows or answer: one schema, then for each statement its
// candidate, gate and rows, then one answer.
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
	Written    string // as the model wrote it, with what was mended
	Table      *Table // nil unless Answered
	Attempts   int    // different statements that the model wrote
	ModelCalls int
	Model      string
	Verified   bool      // the SQL is one that a person confirmed for this question
	VerifiedBy string    // who confirmed it
	VerifiedAt time.Time // when
	VerifiedID string    // the pair
	Candidates []Candidate

	Copy *access.CopyRequest // what was requested; nil unless CopyRequested
}

// Candidate is a statement that the model wrote, and what came of it.
type Candidate struct {
	Written string  // by the model
	Mended  string  // by code, "" when it was not
	SQL     string  // as the gate let it through, "" when it did not
	Round   string  // which way of asking made it: plain, focus, whole or repair
	Verdict Verdict // what came of it
	Reason  string  // why not, "" when it ran
	Rows    int     // of its result, capped
	Votes   int     // candidates of the same result, with this one
	Took    time.Duration
}

// Verdict is what came of a candidate.
type Verdict string

// The verdicts.
const (
	Ran     Verdict = "ran"     // it gave rows
	Empty   Verdict = "empty"   // it ran and found nothing
	Refused Verdict = "refused" // by the gate
	Broken  Verdict = "broken"  // the database could not run it, or not in time
	Cannot  Verdict = "cannot"  // the model wrote that it cannot be answered
)

// Pair is a question with the SQL that a person confirmed for it.
type Pair struct {
	Question string
	SQL      string

	ID string    // under which it is kept; "" none
	By string    // who confirmed it; "" not known
	At time.Time // when
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
	Attempts   int
	Candidates []Candidate
	Tables     []sqlguard.Relation      // that the question was taken to be about, the best first
	Agreed     bool                     // all candidates that ran gave the same result
	Timings    map[string]time.Duration // of the steps, by their stages; model is all the waiting for it
	Readable   []sqlguard.Relation      // all that the asker could read; nil when that was not found out
	VerifiedID string                   // the pair that answered it; "" none
	Follows    bool                     // the question came with evidence or earlier turns: alone it is another
}
