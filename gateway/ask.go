package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/agent"
	"sluice/database"
	"sluice/fault"
)

type askRequest struct {
	Database     string          `json:"database"`
	Question     string          `json:"question"`
	Evidence     string          `json:"evidence"` // a definition that the asker supplies
	Model        string          `json:"model"`
	MaxRows      int             `json:"max_rows"`
	Stream       bool            `json:"stream"`
	Conversation json.RawMessage `json:"conversation"`
}

// answer is the result of an ask on the wire.
type answer struct {
	Outcome   agent.Outcome       `json:"outcome"`
	Answer    string              `json:"answer"`
	Reason    string              `json:"reason,omitempty"`
	SQL       string              `json:"sql,omitempty"`
	Columns   []database.Column   `json:"columns,omitempty"`
	Rows      [][]json.RawMessage `json:"rows,omitempty"`
	Truncated bool                `json:"truncated,omitempty"`
	Chart     *chart              `json:"chart,omitempty"`
	Verified  bool                `json:"verified"` // whether a person confirmed this question's SQL
	By        string              `json:"verified_by,omitempty"`
	At        *time.Time          `json:"verified_at,omitempty"`
	Attempts  int                 `json:"attempts"`
	Model     string              `json:"model"`
	AskID     string              `json:"ask_id"`
	Copy      *copyRequestInfo    `json:"copy_request,omitempty"` // what was requested: outcome copy_requested
}

func (s *server) ask(c *gin.Context) {
	const op = "gateway.ask"
	var req askRequest
	err := decodeStrict(c, &req)
	var earlier []agent.Turn
	if err == nil {
		earlier, err = conversation(req.Conversation)
	}
	if err == nil && s.cfg.Agent == nil {
		err = fault.New(fault.Unimplemented, op, "this server answers no questions: it has no agent")
	}
	var src *database.Source
	if err == nil {
		src, err = s.source(c, req.Database)
	}
	if err == nil && req.Model != "" {
		_, err = s.model(c, req.Model) // the same answer for a model that is missing and one that may not be used
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	q := agent.Ask{Who: principal(c), Question: req.Question, Evidence: req.Evidence, Model: req.Model, MaxRows: req.MaxRows, Earlier: earlier}
	if !req.Stream && !strings.Contains(c.Request.Header.Get("Accept"), "text/event-stream") {
		a, err := s.askAudited(c, src, q)
		if err != nil {
			s.fail(c, err)
			return
		}
		reply(c, wireAnswer(a))
		return
	}
	events := newAskStream(sseStream{s: s, c: c})
	defer events.end()
	// When the client left or does not read, the request's context ends the work, so a failed write is only noted.
	send := func(name string, v any) {
		if err := events.send(name, v); err != nil {
			noteFailure(c, err)
		}
	}
	var last *agent.Event
	q.OnEvent = func(e agent.Event) {
		if e.Stage == "answer" {
			last = &e // held back: the ask can still fail, when it cannot be recorded
			return
		}
		send(e.Stage, e)
	}
	a, err := s.askAudited(c, src, q)
	switch {
	case err == nil:
		if last != nil {
			send(last.Stage, *last)
		}
		send("done", gin.H{"data": wireAnswer(a), "meta": gin.H{"request_id": requestIDOf(c)}})
	case !events.started():
		s.fail(c, err)
	default:
		noteFailure(c, err)
		send("error", sluiceError(fault.Public(err), requestIDOf(c)))
	}
}

// conversation reads the earlier turns of a conversation, the oldest first: [{"question": …, "sql": …}], the SQL as an answer
// gave it. Nothing is stored here, so there is no conversation to name by an id.
func conversation(raw json.RawMessage) ([]agent.Turn, error) {
	if !present(raw) {
		return nil, nil
	}
	var turns []struct {
		Question string `json:"question"`
		SQL      string `json:"sql"`
	}
	hint := `send the turns: [{"question": "…", "sql": "…"}]`
	if raw[0] != '[' {
		return nil, &fault.Error{Code: fault.Unimplemented, Op: "gateway.ask", Msg: "conversations are not stored", Hint: hint}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&turns); err != nil {
		return nil, &fault.Error{Code: fault.Invalid, Op: "gateway.ask", Msg: "conversation is not a list of turns", Hint: hint, Err: err}
	}
	out := make([]agent.Turn, len(turns))
	for i, t := range turns {
		out[i] = agent.Turn{Question: t.Question, SQL: t.SQL}
	}
	return out, nil
}

func wireAnswer(a agent.Answer) answer {
	out := answer{Outcome: a.Outcome, Answer: a.Text, Reason: a.Reason, SQL: a.SQL, Verified: a.Verified, Attempts: a.Attempts, Model: a.Model, AskID: a.ID}
	if a.Verified {
		out.By, out.At = a.VerifiedBy, orNil(a.VerifiedAt)
	}
	if a.Table != nil {
		out.Columns, out.Rows, out.Truncated = a.Table.Columns, a.Table.Rows, a.Table.Truncated
		out.Chart = chartOf(a.Table)
	}
	if a.Copy != nil {
		info := copyRequestAt(*a.Copy, a.Copy.CreatedAt)
		out.Copy = &info
	}
	return out
}

// Unrecorded is the door through which the agent looks at tables, for nobody in particular and after the request too: what it
// runs there is generated, and no statement of the ask.
func (a auditedSource) Unrecorded() agent.Source { return a.Source }
