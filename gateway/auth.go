package gateway

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
)

// principalKey is where gin's context keeps who is calling.
const principalKey = "sluice.principal"

// principal is who is calling; the zero Principal when nobody said.
func principal(c *gin.Context) access.Principal {
	who, _ := c.Value(principalKey).(access.Principal)
	return who
}

// wordOf is for whom a prompt is computed, as a word that tells a runner nothing else: what one has had computed must not
// show in the counts and times of another. It stands for the key, not only its owner: one owner's keys are narrowed for
// different people and programs. "" is nobody, who share theirs.
func wordOf(who access.Principal) string {
	if who.KeyID == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(who.Owner+"\x00"+who.KeyID)))
}

// allow lets a request pass that its route's class permits.
func (s *server) allow(cl class) gin.HandlerFunc {
	return func(c *gin.Context) {
		if cl == public {
			return
		}
		who, err := s.authenticate(c)
		if fault.CodeOf(err) == fault.Unauthenticated && (cl == inference || cl == manage) && s.open(c.Request) && placeholder(c.Request.Header) {
			who, err = access.Principal{}, nil
		}
		if err == nil {
			c.Set(principalKey, who)
			traceOf(c.Request.Context()).who = who
			err = permit(cl, who, s.open(c.Request), s.cfg.OpenAdmin)
		}
		s.meters.checked(err)
		if err != nil {
			s.fail(c, err)
		}
	}
}

// authenticate finds the principal of the bearer. No credential is nobody, which is no error here; anything that is sent as
// one and is not a known key is one, so that a mistyped key never works as nobody's.
func (s *server) authenticate(c *gin.Context) (access.Principal, error) {
	bearer, err := bearerOf(c.Request.Header)
	if err != nil || bearer == "" {
		return access.Principal{}, err
	}
	who, err := s.cfg.Accounts.Principal(c.Request.Context(), bearer, c.Request.Header.Values)
	switch {
	case err == nil && !who.Known():
		return access.Principal{}, fault.Bug("key or login %s has no role", who.KeyID)
	case err != nil && fault.CodeOf(err) == fault.Unauthenticated:
		hint := "a client that must be given a key and has none of this server's is given the word ollama"
		if strings.HasPrefix(bearer, "slt_") {
			hint = "log in again: POST /v1/auth/login, or sluice login"
		}
		return access.Principal{}, &fault.Error{Code: fault.Unauthenticated, Op: "gateway.authenticate", Err: err, Msg: fault.Public(err).Msg, Hint: hint}
	}
	return who, err
}

// placeholders are words that clients are given where their program demands a key and the server has none: in the manuals of
// Ollama, vLLM, llama.cpp and LM Studio, and in OpenAI's SDKs, which do not start without one. They are nobody's key: they
// count as none where nobody needs one. Anything else that is not a key of ours may be a mistyped one, and is refused.
var placeholders = map[string]bool{
	"ollama": true, "unused": true, "none": true, "empty": true, "not-needed": true, "no-key": true, "sk-no-key-required": true, "lm-studio": true,
}

func placeholder(h http.Header) bool {
	bearer, err := bearerOf(h)
	return err == nil && placeholders[strings.ToLower(bearer)]
}

// bearerOf finds the one key of a request, "" when it has none: in Authorization, or in x-api-key, where Anthropic's SDKs
// put it. Who sends both must mean one key; an empty x-api-key beside Authorization is how Claude Code is told not to use it.
func bearerOf(h http.Header) (string, error) {
	auths, keys := h.Values("Authorization"), h.Values("X-Api-Key")
	wrong := func(what string) (string, error) {
		return "", &fault.Error{Code: fault.Unauthenticated, Op: "gateway.authenticate", Msg: what,
			Hint: "send Authorization: Bearer slc_…, or leave the header out"}
	}
	bearer := ""
	if len(auths) > 0 {
		var scheme string
		scheme, bearer, _ = strings.Cut(strings.TrimSpace(auths[0]), " ")
		bearer = strings.TrimSpace(bearer)
		if len(auths) > 1 || !strings.EqualFold(scheme, "Bearer") || bearer == "" {
			return wrong("the Authorization header does not hold one API key")
		}
	}
	if len(keys) == 0 {
		return bearer, nil
	}
	key := strings.TrimSpace(keys[0])
	switch {
	case len(keys) > 1, key == "" && bearer == "":
		return wrong("the x-api-key header does not hold one API key")
	case key != "" && bearer != "" && key != bearer:
		return wrong("the Authorization and x-api-key headers hold two different keys")
	case bearer == "":
		return key, nil
	}
	return bearer, nil
}

// permit decides whether a principal may call a route of a class. open is whether nobody's requests to Ollama's routes
// are served, openAdmin whether that goes for those that change models too.
func permit(cl class, who access.Principal, open, openAdmin bool) error {
	nobody := &fault.Error{Code: fault.Unauthenticated, Op: "gateway.permit", Msg: "this needs an API key or a login", Hint: "send Authorization: Bearer slc_…, or slt_… of a login"}
	switch {
	case cl == public, cl == inference && open, cl == manage && open && openAdmin:
		return nil
	case !who.Known():
		return nobody
	case cl == inference, cl == member:
		return nil
	case cl == manage:
		return access.MayManage(who)
	case cl == person:
		return access.MayHaveKeys(who)
	case cl == adminOnly:
		return access.MayAdminister(who)
	}
	return fault.New(fault.Denied, "gateway.permit", "this route is closed")
}

// open tells whether Ollama's routes are open to nobody in this request: while the server listens on loopback, and no
// proxy stands between. A proxy would make the whole net look like this machine.
func (s *server) open(r *http.Request) bool {
	return s.cfg.OpenOllama && s.cfg.Loopback && !forwarded(r.Header)
}

func forwarded(h http.Header) bool {
	for name := range h {
		if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded") {
			return true
		}
	}
	return false
}

// moment is now, for what access asks.
func (s *server) moment() access.Moment {
	return access.Moment{Now: s.now(), FreshFor: s.cfg.FreshFor}
}

// freshly refuses a login whose password was given too long ago: what changes accounts, keys or grants could otherwise make
// a way around the password.
func (s *server) freshly(c *gin.Context) error { return access.Fresh(principal(c), s.moment()) }

// mayUse tells whether the caller may use a model; name is its full short form, with its tag. Nobody has no rights of
// their own and gets here only where the routes are open, which is to all models.
func mayUse(who access.Principal, name string) bool {
	return who.KeyID == "" || access.MayModel(who, name)
}
