package gateway

import (
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

// allow lets a request pass that its route's class permits.
func (s *server) allow(cl class) gin.HandlerFunc {
	return func(c *gin.Context) {
		if cl == public {
			return
		}
		who, err := s.authenticate(c)
		if err == nil {
			c.Set(principalKey, who)
			err = permit(cl, who, s.open(c.Request), s.cfg.OpenAdmin)
		}
		if err != nil {
			s.fail(c, err)
		}
	}
}

// authenticate finds the principal of the bearer. No Authorization header is nobody, which is no error here; anything
// else in it that is not a known key is one, so that a mistyped key never works as nobody's.
func (s *server) authenticate(c *gin.Context) (access.Principal, error) {
	headers := c.Request.Header.Values("Authorization")
	if len(headers) == 0 {
		return access.Principal{}, nil
	}
	scheme, bearer, _ := strings.Cut(strings.TrimSpace(headers[0]), " ")
	bearer = strings.TrimSpace(bearer)
	if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") || bearer == "" {
		return access.Principal{}, &fault.Error{Code: fault.Unauthenticated, Op: "gateway.authenticate",
			Msg: "the Authorization header does not hold one API key", Hint: "send Authorization: Bearer slc_…, or leave the header out"}
	}
	who, err := s.cfg.Keys.Principal(c.Request.Context(), bearer)
	switch {
	case err == nil && (who.KeyID == "" || who.Role == access.NoRole):
		return access.Principal{}, fault.Bug("a key without id or role")
	case err != nil && fault.CodeOf(err) == fault.Unauthenticated:
		return access.Principal{}, &fault.Error{Code: fault.Unauthenticated, Op: "gateway.authenticate", Err: err,
			Msg: "this API key is not known here", Hint: "a client that was given a made-up key must be given none, or one of this server's"}
	}
	return who, err
}

// permit decides whether a principal may call a route of a class. open is whether nobody's requests to Ollama's routes
// are served, openAdmin whether that goes for those that change models too.
func permit(cl class, who access.Principal, open, openAdmin bool) error {
	known := who.KeyID != "" && who.Role.AtLeast(access.Restricted)
	nobody := &fault.Error{Code: fault.Unauthenticated, Op: "gateway.permit", Msg: "this needs an API key", Hint: "send Authorization: Bearer slc_…"}
	switch {
	case cl == public, cl == inference && open, cl == manage && open && openAdmin:
		return nil
	case !known:
		return nobody
	case cl == inference, cl == member:
		return nil
	case cl == manage:
		return access.MayManage(who)
	case cl == adminOnly:
		// A narrowed key could otherwise make itself a key with more rights than its own.
		if err := access.MayManage(who); err != nil {
			return err
		}
		if who.Databases != nil || who.Tables != nil || who.Models != nil {
			return fault.New(fault.Denied, "gateway.permit", "this needs an admin key that is not narrowed to some databases, tables or models")
		}
		return nil
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

// mayUse tells whether the caller may use a model; name is its full short form, with its tag. Nobody has no rights of
// their own and gets here only where the routes are open, which is to all models.
func mayUse(who access.Principal, name string) bool {
	return who.KeyID == "" || access.MayModel(who, name)
}
