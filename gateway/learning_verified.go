package gateway

import (
	"context"
	"crypto/rand"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/agent"
	"sluice/fault"
)

// VerifiedInfo is a question with the SQL that somebody confirmed for it, on the wire.
type VerifiedInfo struct {
	ID         string    `json:"id"`
	Database   string    `json:"database"`
	Name       string    `json:"name,omitempty"`
	Question   string    `json:"question"`
	SQL        string    `json:"sql,omitempty"`
	Owner      string    `json:"owner,omitempty"`  // the user whom it serves
	KeyID      string    `json:"key_id,omitempty"` // the one key that it serves
	Shared     bool      `json:"shared"`           // it serves everybody who may read what it reads
	VerifiedBy string    `json:"verified_by"`
	VerifiedAt time.Time `json:"verified_at"`
	FromAsk    string    `json:"from_ask,omitempty"`
	Note       string    `json:"note,omitempty"`
	Hidden     string    `json:"hidden,omitempty"` // why the SQL is not shown
}

func wireVerified(v agent.Verified) VerifiedInfo {
	return VerifiedInfo{ID: v.ID, Database: v.Database, Name: v.Name, Question: v.Question, SQL: v.SQL, Owner: v.Owner, KeyID: v.KeyID, Shared: v.Owner == "",
		VerifiedBy: v.VerifiedBy, VerifiedAt: v.VerifiedAt, FromAsk: v.FromAsk, Note: v.Note}
}

// NewVerified is the request of POST /v1/learning/verified.
type NewVerified struct {
	Database string `json:"database"`
	Question string `json:"question"`
	SQL      string `json:"sql"`
	Name     string `json:"name,omitempty"`
	Note     string `json:"note,omitempty"`
	Shared   bool   `json:"shared,omitempty"` // for everybody: admins only
}

// How long the parts of a pair may be, in bytes.
const (
	maxPairQuestion = 4 << 10
	maxPairSQL      = 64 << 10
	maxPairText     = 2 << 10 // name, note
)

// checkPair refuses what no pair can be.
func checkPair(question, sql string, texts ...string) error {
	for _, v := range []struct{ name, text string }{{"question", question}, {"sql", sql}} {
		if strings.TrimSpace(v.text) == "" {
			return fault.New(fault.Invalid, "gateway.learning", "%s is required", v.name)
		}
	}
	return checkTexts(question, sql, texts...)
}

// checkTexts refuses texts that are too long, or are none.
func checkTexts(question, sql string, texts ...string) error {
	const op = "gateway.learning"
	most := []int{maxPairQuestion, maxPairSQL}
	for i, text := range append([]string{question, sql}, texts...) {
		name, bound := "name or note", maxPairText
		if i < len(most) {
			name, bound = []string{"question", "sql"}[i], most[i]
		}
		switch {
		case len(text) > bound:
			return fault.New(fault.TooLarge, op, "%s is longer than %d bytes", name, bound)
		case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
			return fault.New(fault.Invalid, op, "%s is no text", name)
		}
	}
	return nil
}

// approvedPair passes SQL through the gate for the caller, and gives it as it is kept: as people wrote it, since it passes the
// gate again each time that it answers. It must be a query that reads a table: what answers a question comes from the data.
func (s *server) approvedPair(c *gin.Context, from, sql string) (string, error) {
	const op = "gateway.learning"
	src, err := s.source(c, from)
	if err != nil {
		return "", err
	}
	approved, err := src.Approve(c.Request.Context(), sql, agent.ProfileOf(principal(c)), mayRead(c, src))
	switch {
	case err != nil:
		return "", err
	case approved.Explain():
		return "", fault.New(fault.Refused, op, "an EXPLAIN gives a plan and answers nothing")
	case len(approved.Relations()) == 0:
		return "", fault.New(fault.Refused, op, "the statement reads no table: what answers a question comes from the data")
	}
	return strings.TrimSpace(sql), nil
}

// tryRows is how many rows of a statement that is being confirmed are read at most.
const tryRows = 1000

// tried passes SQL through the gate for the caller and runs it, as any statement of his. What it gives is looked at by nobody.
func (s *server) tried(c *gin.Context, from, sql string) (text string, err error) {
	if text, err = s.approvedPair(c, from, sql); err != nil {
		return "", err
	}
	src, err := s.source(c, from)
	if err != nil {
		return "", err
	}
	ctx, cancel := s.statementContext(c.Request.Context())
	defer cancel(nil)
	defer func() { s.meters.statement(queryKind, err) }()
	approved, err := src.Approve(ctx, text, agent.ProfileOf(principal(c)), mayRead(c, src)) // as it is kept, and will be run
	if err != nil {
		return "", ended(ctx, err)
	}
	st, done := s.begin(c, queryKind, src.Name(), shown(approved), cancel)
	defer done()
	rows, err := src.Run(ctx, approved)
	if err != nil {
		return "", ended(ctx, err)
	}
	reader := watch(rows, st, nil)
	defer reader.Release()
	for n := int64(0); n < tryRows && reader.Next(); {
		n += reader.RecordBatch().NumRows()
	}
	if err := reader.Err(); err != nil {
		return "", ended(ctx, err)
	}
	return text, nil
}

// keepID gives a pair the id of the one whose place it takes.
func (s *server) keepID(c *gin.Context, v *agent.Verified) error {
	old, err := s.cfg.Learning.VerifiedAs(c.Request.Context(), v.Database, v.Owner, v.KeyID, v.Question)
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	v.ID = old.ID
	return err
}

// serves says whom what the caller confirms serves.
func serves(who access.Principal, shared bool) (owner, key string) {
	switch {
	case shared:
		return "", ""
	case wholly(who) || access.MayAdminister(who) == nil:
		return who.Owner, ""
	}
	return who.Owner, who.KeyID
}

// detailsOfPair is a pair for the ledger: not the question, which people write and no ledger should keep for ever.
func detailsOfPair(v agent.Verified) map[string]any {
	return map[string]any{"verified": v.ID, "database": v.Database, "for": v.Owner, "shared": v.Owner == "", "sql": v.SQL}
}

// visible says whether the caller may know of a pair, and shows it.
func (r *reader) visible(v agent.Verified) (VerifiedInfo, bool, error) {
	who, info := principal(r.c), wireVerified(v)
	own := v.Owner != "" && v.Owner == who.Owner
	if r.admin {
		return info, true, nil
	}
	if v.Owner != "" && !own || own && v.KeyID != "" && v.KeyID != who.KeyID && !wholly(who) {
		return info, false, nil
	}
	passes, err := r.passes(v.Database, v.SQL)
	switch {
	case err != nil || passes:
		return info, passes, err
	case own && (wholly(who) || v.KeyID == who.KeyID):
		info.SQL, info.Hidden = "", "you may not read all that the SQL reads now"
		return info, true, nil
	}
	return info, false, nil // what others, or another key, confirmed of what he may not read
}

// mayWithdraw says whether the caller may withdraw a pair that he may know of.
func mayWithdraw(who access.Principal, v agent.Verified) error {
	if err := mayConfirm(who); err != nil {
		return err
	}
	switch {
	case access.MayAdminister(who) == nil:
		return nil
	case v.Owner == "":
		return &fault.Error{Code: fault.Denied, Op: "gateway.learning", Kind: "auth", Msg: "this verified question serves everybody: only an admin withdraws it"}
	case v.Owner != who.Owner || !wholly(who) && v.KeyID != who.KeyID:
		return &fault.Error{Code: fault.Denied, Op: "gateway.learning", Kind: "auth", Msg: "this verified question serves all keys of its owner: it is withdrawn with one that has all of the owner's rights, or by login"}
	}
	return nil
}

// learningVerified is GET /v1/learning/verified: verified questions that serve the caller, newest first; all of them for an admin.
func (s *server) learningVerified(c *gin.Context) {
	limit, before, err := page(c)
	var keeps Learning
	if err == nil {
		keeps, err = s.learning()
	}
	var pairs []agent.Verified
	r, who := s.reader(c), principal(c)
	if err == nil {
		pairs, err = keeps.Verified(c.Request.Context(), agent.VerifiedFilter{Everybodys: r.admin, Owner: who.Owner, Whole: wholly(who), KeyID: who.KeyID,
			Database: c.Query("database"), Before: before, Limit: limit + 1})
	}
	pairs, meta := cutPage(pairs, limit, func(v agent.Verified) (time.Time, string) { return v.VerifiedAt, v.ID })
	all := []VerifiedInfo{} // may be fewer than a page has: those that he may not know of are left out
	for _, v := range pairs {
		if err != nil {
			break
		}
		var info VerifiedInfo
		var ok bool
		if info, ok, err = r.visible(v); ok {
			all = append(all, info)
		}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, all, meta)
}

// pairOf finds the verified question that a path names. One that the caller may not know of is not there.
func (s *server) pairOf(c *gin.Context) (v agent.Verified, info VerifiedInfo, err error) {
	keeps, err := s.learning()
	if err != nil {
		return v, info, err
	}
	v, err = keeps.VerifiedByID(c.Request.Context(), c.Param("id"))
	ok := false
	if err == nil {
		info, ok, err = s.reader(c).visible(v)
	}
	if fault.CodeOf(err) == fault.NotFound || err == nil && !ok {
		err = fault.New(fault.NotFound, "gateway.learning", "verified question '%s' not found", printable(c.Param("id"), 100))
	}
	return v, info, err
}

func (s *server) learningVerifiedOne(c *gin.Context) {
	_, info, err := s.pairOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, info)
}

// learningVerify is POST /v1/learning/verified: a question with its SQL, without an ask.
func (s *server) learningVerify(c *gin.Context) {
	var req NewVerified
	who := principal(c)
	err := decodeStrict(c, &req)
	if err == nil {
		err = checkPair(req.Question, req.SQL, req.Name, req.Note)
	}
	if err == nil {
		err = mayConfirm(who)
	}
	if err == nil {
		err = mayShare(who, req.Shared)
	}
	if err == nil {
		_, err = s.learning()
	}
	v := agent.Verified{ID: "vq_" + rand.Text(), Database: req.Database, Owner: who.Owner, Name: req.Name, Question: strings.TrimSpace(req.Question), VerifiedBy: who.Owner,
		VerifiedAt: s.now().UTC(), Note: req.Note}
	if err == nil {
		v.SQL, err = s.tried(c, req.Database, req.SQL)
	}
	if err == nil {
		v.Owner, v.KeyID = serves(who, req.Shared)
		err = s.keepID(c, &v)
	}
	if err == nil {
		err = s.audited(c, "learning.verify", detailsOfPair(v), func() error {
			kept, err := s.cfg.Learning.PutVerified(context.WithoutCancel(c.Request.Context()), []agent.Verified{v})
			if err == nil {
				v = kept[0]
			}
			return err
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, wireVerified(v))
}

func (s *server) learningWithdraw(c *gin.Context) {
	v, _, err := s.pairOf(c)
	if err == nil {
		err = mayWithdraw(principal(c), v)
	}
	if err == nil {
		err = s.audited(c, "learning.withdraw", detailsOfPair(v), func() error { return s.cfg.Learning.DeleteVerified(context.WithoutCancel(c.Request.Context()), v.ID) })
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"deleted": v.ID})
}
