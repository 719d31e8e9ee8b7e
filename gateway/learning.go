package gateway

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/agent"
	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// Learning keeps what was asked, and what people confirmed; *store.Store is it. Who may see and do what is checked here, before
// it is asked.
type Learning interface {
	Asks(ctx context.Context, f agent.AskedFilter) ([]agent.Asked, error)
	Ask(ctx context.Context, id string) (agent.Asked, error) // NotFound
	// AskScope gives the relations that an Asked.Scope stands for; nil when it is not known.
	AskScope(ctx context.Context, scope string) ([]agent.KeptRelation, error)
	MarkAsk(ctx context.Context, id string, m agent.Mark) (*agent.Verified, error)

	Verified(ctx context.Context, f agent.VerifiedFilter) ([]agent.Verified, error)
	VerifiedByID(ctx context.Context, id string) (agent.Verified, error) // NotFound
	VerifiedAs(ctx context.Context, database, owner, key, question string) (agent.Verified, error)
	VerifiedFromAsk(ctx context.Context, ask string) ([]agent.Verified, error)
	// PutVerified stores all or none. One of the same question, database, owner and key is changed.
	PutVerified(ctx context.Context, pairs []agent.Verified) ([]agent.Verified, error)
	DeleteVerified(ctx context.Context, id string) error // NotFound
}

// usualQuestions is how many entries are listed without a limit.
const usualQuestions = 100

// learning gives what keeps questions, or says that there is none.
func (s *server) learning() (Learning, error) {
	if s.cfg.Learning == nil {
		return nil, fault.New(fault.Unimplemented, "gateway.learning", "this server keeps no questions")
	}
	return s.cfg.Learning, nil
}

// wholly says whether the caller has in hand all that its owner may: a person who logged in, or a key that takes nothing away and
// is no program's. Any other key may be in other hands than its owner's: it sees what it asked itself, and what it confirms
// serves it alone.
func wholly(who access.Principal) bool {
	return who.Known() && !who.Agent && !who.Narrowed() && !slices.ContainsFunc(who.Holders, func(h access.Holder) bool { return h.Role > who.Ceiling() })
}

// sees says whether the caller may see what was asked with a key of an owner.
func sees(who access.Principal, owner, key string) bool {
	switch {
	case !who.Known() || owner == "":
		return false
	case access.MayAdminister(who) == nil:
		return true
	}
	return who.Owner == owner && (who.KeyID == key || wholly(who))
}

// mayConfirm refuses programs: what is confirmed is answered under a person's name.
func mayConfirm(who access.Principal) error {
	if !who.Known() || who.Agent {
		return &fault.Error{Code: fault.Denied, Op: "gateway.learning", Kind: "auth", Msg: "a question is marked, and its SQL confirmed, by a person: agent keys and keys that act for others do not",
			Hint: "log in: sluice login, or POST /v1/auth/login"}
	}
	return nil
}

// mayShare refuses whoever is no admin: what serves others may answer all of them wrongly.
func mayShare(who access.Principal, shared bool) error {
	if !shared || access.MayAdminister(who) == nil {
		return nil
	}
	return &fault.Error{Code: fault.Denied, Op: "gateway.learning", Kind: "auth", Msg: "only an admin confirms a question for everybody", Hint: "leave shared out: then it serves you"}
}

// reader says what of statements the caller may still read. It is of one request.
type reader struct {
	s      *server
	c      *gin.Context
	admin  bool
	scopes map[string]bool // by database and scope: whether all of it may be read
}

func (s *server) reader(c *gin.Context) *reader {
	return &reader{s: s, c: c, admin: access.MayAdminister(principal(c)) == nil, scopes: map[string]bool{}}
}

// passes says whether a statement passes the gate for the caller now. An error is that of a request that ended.
func (r *reader) passes(from, sql string) (bool, error) {
	if r.admin {
		return true, nil
	}
	src := r.source(from)
	if src == nil || sql == "" {
		return false, nil
	}
	_, err := src.Approve(r.c.Request.Context(), sql, agent.ProfileOf(principal(r.c)), mayRead(r.c, src))
	if ctx := r.c.Request.Context(); ctx.Err() != nil {
		return false, fault.Wrap(context.Cause(ctx), fault.Canceled, "gateway.learning", "the request was cancelled")
	}
	return err == nil, nil
}

func (r *reader) source(name string) *database.Source {
	if src := r.s.cfg.Sources[name]; src != nil && access.MayDatabase(principal(r.c), name) {
		return src
	}
	return nil
}

// all says whether the caller may read everything that the asker could read then: then no word of the ask is hidden.
func (r *reader) all(a agent.Asked) (bool, error) {
	src := r.source(a.Database)
	switch {
	case r.admin:
		return true, nil
	case src == nil || a.Scope == "":
		return false, nil
	}
	key := a.Database + "\x00" + a.Scope
	if known, ok := r.scopes[key]; ok {
		return known, nil
	}
	relations, err := r.s.cfg.Learning.AskScope(r.c.Request.Context(), a.Scope)
	if err != nil {
		return false, err
	}
	may := mayRead(r.c, src)
	r.scopes[key] = relations != nil && !slices.ContainsFunc(relations, func(t agent.KeptRelation) bool {
		return !may(sqlguard.Relation{Schema: t.Schema, Name: t.Name})
	})
	return r.scopes[key], nil
}

// page reads limit and cursor of a list that is sorted by time and id.
func page(c *gin.Context) (limit int, before agent.Place, err error) {
	const op = "gateway.page"
	limit = usualQuestions
	if text, given := c.GetQuery("limit"); given {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxList {
			return 0, before, fault.New(fault.Invalid, op, "limit must be a number from 1 to %d", maxList)
		}
	}
	text, given := c.GetQuery("cursor")
	if !given {
		return limit, before, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(raw), " ")
	micros, err2 := strconv.ParseInt(at, 10, 64)
	if err != nil || err2 != nil || !ok || id == "" {
		return 0, before, fault.New(fault.Invalid, op, "cursor must be the next_cursor of another answer")
	}
	return limit, agent.Place{At: time.UnixMicro(micros), ID: id}, nil
}

func cursorOf(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(at.UnixMicro(), 10) + " " + id))
}

// cutPage takes the one entry more away that tells that there is another page, and gives the list's meta.
func cutPage[T any](all []T, limit int, place func(T) (time.Time, string)) ([]T, gin.H) {
	if len(all) <= limit {
		return all, gin.H{}
	}
	return all[:limit], gin.H{"next_cursor": cursorOf(place(all[limit-1]))}
}
