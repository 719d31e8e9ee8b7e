package gateway

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/agent"
	"sluice/fault"
)

// QuestionInfo is what was asked, on the wire. It never holds rows.
type QuestionInfo struct {
	ID         string     `json:"id"`
	AskedAt    time.Time  `json:"asked_at"`
	User       string     `json:"user"`
	KeyID      string     `json:"key_id"` // the key or login that it was asked with
	Database   string     `json:"database"`
	Question   string     `json:"question"`
	Outcome    string     `json:"outcome"` // answered, declined, failed, copy_requested, cancelled, error
	Reason     string     `json:"reason,omitempty"`
	SQL        string     `json:"sql,omitempty"` // that answered it
	Model      string     `json:"model"`
	ModelCalls int        `json:"model_calls"`
	Attempts   int        `json:"attempts"`
	Agreed     bool       `json:"agreed"` // all statements that found something found the same
	DurationMS int64      `json:"duration_ms"`
	VerifiedID string     `json:"verified_id,omitempty"` // the verified question that answered it
	Follows    bool       `json:"follows,omitempty"`     // asked within a conversation, or with a definition
	Mark       string     `json:"mark"`                  // "", right, wrong
	MarkedBy   string     `json:"marked_by,omitempty"`
	MarkedAt   *time.Time `json:"marked_at,omitempty"`
	Note       string     `json:"note,omitempty"`
	Hidden     string     `json:"hidden,omitempty"` // why parts of it are not shown
}

// QuestionDetail is all that is kept of it.
type QuestionDetail struct {
	QuestionInfo
	Tables     []string         `json:"tables"`            // that it was taken to be about, the best first
	Written    string           `json:"written,omitempty"` // SQL, as the model wrote it
	Candidates []CandidateInfo  `json:"candidates"`
	Timings    map[string]int64 `json:"timings_ms"` // by step; model is all the waiting for it
}

// CandidateInfo is a statement that the model wrote, and what came of it.
type CandidateInfo struct {
	Written string `json:"written"`
	Mended  string `json:"mended,omitempty"`
	SQL     string `json:"sql,omitempty"` // as the gate let it through
	Round   string `json:"round"`
	Verdict string `json:"verdict"` // ran, empty, refused, broken, cannot
	Reason  string `json:"reason,omitempty"`
	Rows    int    `json:"rows"`
	Votes   int    `json:"votes"`
	TookMS  int64  `json:"took_ms"`
}

// info shows an ask to the caller: whole when he may read all that its asker could, else its SQL while that passes the gate
// for him. The question is the asker's own, and stays.
func (r *reader) info(a agent.Asked) (info QuestionInfo, whole bool, err error) {
	info = QuestionInfo{ID: a.ID, AskedAt: a.CreatedAt, User: a.Owner, KeyID: a.KeyID, Database: a.Database, Question: a.Question, Outcome: a.Outcome, Reason: a.Reason,
		SQL: a.ExecutedSQL, Model: a.Model, ModelCalls: a.ModelCalls, Attempts: a.Attempts, Agreed: a.Agreed, DurationMS: a.Duration.Milliseconds(),
		VerifiedID: a.VerifiedID, Follows: a.Follows, Mark: a.Mark, MarkedBy: a.MarkedBy, MarkedAt: orNil(a.MarkedAt), Note: a.Note}
	if whole, err = r.all(a); err != nil || whole {
		return info, whole, err
	}
	shown, err := r.passes(a.Database, a.ExecutedSQL)
	info.Reason = ""
	info.Hidden = "you may not read all that could be read when this was asked: how it was answered is not shown"
	if !shown {
		info.SQL = ""
	} else {
		info.Hidden += ", but for SQL that you may run"
	}
	return info, false, err
}

func (r *reader) detail(a agent.Asked) (QuestionDetail, error) {
	info, whole, err := r.info(a)
	d := QuestionDetail{QuestionInfo: info, Tables: []string{}, Candidates: []CandidateInfo{}, Timings: map[string]int64{}}
	for step, took := range a.Timings {
		d.Timings[step] = took.Milliseconds()
	}
	if err != nil || !whole {
		return d, err
	}
	d.Written = a.WrittenSQL
	for _, t := range a.Tables {
		d.Tables = append(d.Tables, t.Schema+"."+t.Name)
	}
	for _, c := range a.Candidates {
		d.Candidates = append(d.Candidates, CandidateInfo(c))
	}
	return d, nil
}

// learningQuestions is GET /v1/learning/questions: what was asked, newest first. database, outcome, mark (right, wrong, none)
// choose, and an admin's user; cursor is the next_cursor of the page before.
func (s *server) learningQuestions(c *gin.Context) {
	f, err := questionFilter(c)
	var keeps Learning
	if err == nil {
		keeps, err = s.learning()
	}
	var asks []agent.Asked
	if err == nil {
		f.Limit++ // one more tells whether there is a next page
		asks, err = keeps.Asks(c.Request.Context(), f)
		f.Limit--
	}
	asks, meta := cutPage(asks, f.Limit, func(a agent.Asked) (time.Time, string) { return a.CreatedAt, a.ID })
	all, r := make([]QuestionInfo, len(asks)), s.reader(c)
	for i, a := range asks {
		if err == nil {
			all[i], _, err = r.info(a)
		}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, all, meta)
}

func questionFilter(c *gin.Context) (f agent.AskedFilter, err error) {
	const op = "gateway.learning"
	who := principal(c)
	f = agent.AskedFilter{Owner: who.Owner, Database: c.Query("database"), Outcome: c.Query("outcome")}
	f.Limit, f.Before, err = page(c)
	if err != nil {
		return f, err
	}
	switch user, given := c.GetQuery("user"); {
	case access.MayAdminister(who) == nil:
		f.Everybodys = !given
		if given {
			f.Owner = user
		}
	case given && user != who.Owner:
		return f, &fault.Error{Code: fault.Denied, Op: op, Kind: "auth", Msg: "only an admin sees what others asked"}
	case !wholly(who):
		f.KeyID = who.KeyID
	}
	if mark, given := c.GetQuery("mark"); given {
		if !slices.Contains([]string{"right", "wrong", "none"}, mark) {
			return f, fault.New(fault.Invalid, op, "mark must be right, wrong or none")
		}
		if mark == "none" {
			mark = ""
		}
		f.Mark = &mark
	}
	outcomes := []string{"answered", "declined", "failed", "copy_requested", "cancelled", "error"}
	if _, given := c.GetQuery("outcome"); given && !slices.Contains(outcomes, f.Outcome) {
		return f, fault.New(fault.Invalid, op, "outcome must be one of answered, declined, failed, copy_requested, cancelled, error")
	}
	return f, nil
}

// askOf finds the ask that a path names. One of somebody else is not there.
func (s *server) askOf(c *gin.Context) (agent.Asked, error) {
	keeps, err := s.learning()
	if err != nil {
		return agent.Asked{}, err
	}
	a, err := keeps.Ask(c.Request.Context(), c.Param("id"))
	if fault.CodeOf(err) == fault.NotFound || err == nil && !sees(principal(c), a.Owner, a.KeyID) {
		return agent.Asked{}, fault.New(fault.NotFound, "gateway.learning", "question '%s' not found", printable(c.Param("id"), 100))
	}
	return a, err
}

func (s *server) learningQuestion(c *gin.Context) {
	a, err := s.askOf(c)
	var d QuestionDetail
	if err == nil {
		d, err = s.reader(c).detail(a)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, d)
}

// MarkRequest says whether an answer was right. An empty mark takes one away.
type MarkRequest struct {
	Mark     *string `json:"mark"`
	SQL      string  `json:"sql,omitempty"`      // the right one, when the answer's was not
	Question string  `json:"question,omitempty"` // as it is to be asked on its own; needed where the ask went on from another
	Note     string  `json:"note,omitempty"`
	Shared   bool    `json:"shared,omitempty"` // for everybody: admins only
}

// Marked is what a mark did.
type Marked struct {
	ID        string        `json:"id"`
	Mark      string        `json:"mark"`
	MarkedBy  string        `json:"marked_by,omitempty"`
	MarkedAt  *time.Time    `json:"marked_at,omitempty"`
	Note      string        `json:"note,omitempty"`
	Verified  *VerifiedInfo `json:"verified,omitempty"` // what answers the question from now on
	Withdrawn []string      `json:"withdrawn"`          // verified questions that came from this one and are gone now
	Kept      []string      `json:"kept"`               // those that only an admin withdraws, as they serve everybody
	Why       string        `json:"why,omitempty"`      // why nothing answers it from now on, though it is right
}

// learningMark is POST /v1/learning/questions/{id}/mark. Right, with SQL that the caller may run and that runs, makes a verified
// question; any other mark takes back those that came from this ask.
func (s *server) learningMark(c *gin.Context) {
	var req MarkRequest
	who, ctx := principal(c), context.WithoutCancel(c.Request.Context())
	err := decodeStrict(c, &req)
	if err == nil {
		err = req.check()
	}
	if err == nil {
		err = mayConfirm(who)
	}
	var a agent.Asked
	if err == nil {
		a, err = s.askOf(c)
	}
	if err == nil {
		err = mayShare(who, req.Shared)
	}
	m, out := agent.Mark{}, Marked{Withdrawn: []string{}, Kept: []string{}}
	if err == nil {
		m = agent.Mark{Mark: *req.Mark, Note: req.Note}
		if m.Mark != "" {
			m.By, m.At = who.Owner, s.now().UTC()
		}
		if m.Mark == "right" {
			m.Put, out.Why, err = s.confirmed(c, a, req)
		}
	}
	if err == nil {
		m.Withdraw, out.Kept, err = s.outdated(ctx, who, a, m.Put)
		out.Withdrawn = append(out.Withdrawn, m.Withdraw...)
	}
	if err == nil {
		kind, details := "learning.mark", map[string]any{"ask": a.ID, "database": a.Database, "mark": m.Mark, "withdrawn": out.Withdrawn}
		if m.Put != nil {
			kind = "learning.verify"
			maps.Copy(details, detailsOfPair(*m.Put))
		}
		err = s.audited(c, kind, details, func() error {
			kept, err := s.cfg.Learning.MarkAsk(ctx, a.ID, m)
			if kept != nil {
				info := wireVerified(*kept)
				out.Verified = &info
			}
			return err
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	out.ID, out.Mark, out.MarkedBy, out.MarkedAt, out.Note = a.ID, m.Mark, m.By, orNil(m.At), m.Note
	reply(c, out)
}

func (m MarkRequest) check() error {
	const op = "gateway.mark"
	switch {
	case m.Mark == nil || !slices.Contains([]string{"right", "wrong", ""}, *m.Mark):
		return fault.New(fault.Invalid, op, `mark must be "right", "wrong", or "" to take a mark away`)
	case *m.Mark != "right" && (m.SQL != "" || m.Question != "" || m.Shared):
		return fault.New(fault.Invalid, op, "sql, question and shared go with the mark right")
	}
	return checkTexts(m.Question, m.SQL, m.Note)
}

// confirmed is the pair that a mark makes; nil and why where it makes none.
func (s *server) confirmed(c *gin.Context, a agent.Asked, req MarkRequest) (pair *agent.Verified, why string, err error) {
	const op = "gateway.mark"
	who := principal(c)
	sql, question := req.SQL, req.Question
	if sql == "" && a.Outcome == string(agent.Answered) {
		sql = a.ExecutedSQL
	}
	switch {
	case question == "" && !a.Follows:
		question = a.Question
	case question == "" && (req.SQL != "" || req.Shared):
		return nil, "", &fault.Error{Code: fault.Invalid, Op: op, Msg: "this was asked within a conversation, or with a definition: alone it is another question", Hint: "give question, as it is to be asked on its own"}
	case question == "":
		return nil, "it was asked within a conversation, or with a definition: give question, as it is to be asked on its own, to have it answered so from now on", nil
	}
	if sql == "" {
		if a.Outcome == string(agent.Declined) && !req.Shared && req.Question == "" {
			return nil, "it was declined: there is no SQL to confirm", nil
		}
		return nil, "", &fault.Error{Code: fault.Invalid, Op: op, Msg: "this question was not answered: there is no SQL to confirm", Hint: "give sql, the right one"}
	}
	shown, err := s.tried(c, a.Database, sql)
	if err != nil {
		return nil, "", err
	}
	v := agent.Verified{ID: "vq_" + rand.Text(), Database: a.Database, Owner: a.Owner, Question: question, SQL: shown, VerifiedBy: who.Owner, VerifiedAt: s.now().UTC(),
		FromAsk: a.ID, Note: req.Note}
	if v.Owner, v.KeyID = serves(who, req.Shared); !req.Shared {
		v.Owner = a.Owner // also when an admin marks what another asked
	}
	return &v, "", s.keepID(c, &v)
}

// outdated are the pairs from an ask that a mark takes back, and those that the caller may not take back. The one that takes
// put's place is none.
func (s *server) outdated(ctx context.Context, who access.Principal, a agent.Asked, put *agent.Verified) (withdraw, kept []string, err error) {
	kept = []string{}
	pairs, err := s.cfg.Learning.VerifiedFromAsk(ctx, a.ID)
	for _, p := range pairs {
		switch {
		case put != nil && p.ID == put.ID:
		case mayWithdraw(who, p) == nil:
			withdraw = append(withdraw, p.ID)
		default:
			kept = append(kept, p.ID)
		}
	}
	return withdraw, kept, err
}
