package gateway

import (
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
)

// maxCredentials bounds the body of a login, which strangers may send.
const maxCredentials = 16 << 10

// loginInfo is a login on the wire.
type loginInfo struct {
	Token           string    `json:"token"`
	ExpiresAt       time.Time `json:"expires_at"`
	AuthenticatedAt time.Time `json:"authenticated_at"`
}

// login is POST /v1/auth/login.
func (s *server) login(c *gin.Context) {
	var req struct {
		User     string `json:"user"`
		Password string `json:"password"`
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxCredentials)
	err := decodeStrict(c, &req)
	if err == nil && (req.User == "" || req.Password == "") {
		err = fault.New(fault.Invalid, "gateway.login", "user and password are required")
	}
	var made access.NewLogin
	if err == nil {
		err = s.attempt(c, req.User, func() (err error) {
			made, err = s.cfg.Accounts.Login(c.Request.Context(), req.User, req.Password)
			return err
		})
	}
	who := access.Principal{KeyID: made.ID, Owner: made.User}
	switch code := fault.CodeOf(err); {
	case err == nil:
		// Nobody has the token yet: what is not in the ledger does not begin.
		if err = s.recordAs(c, who, "auth.login", map[string]any{"address": addressOf(c)}); err != nil {
			who.Login = true
			if late := s.cfg.Accounts.Logout(c.Request.Context(), who); late != nil {
				s.cfg.Log.Error("a login that is not in the ledger could not be ended", "request_id", requestIDOf(c), "error", logged(late))
			}
		}
	case code == fault.Unauthenticated:
		if late := s.recordAs(c, access.Principal{}, "auth.login", map[string]any{"user": s.nameOf(c, req.User), "address": addressOf(c), "failed": code.String()}); late != nil {
			err = late
		}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	reply(c, loginInfo{made.Token, made.ExpiresAt, made.AuthenticatedAt})
}

// nameOf is the name of a user for the ledger, "" for what is none: people type their password into the wrong field.
func (s *server) nameOf(c *gin.Context, typed string) string {
	name, err := access.UserName(typed)
	if err != nil {
		return ""
	}
	if _, err := s.cfg.Accounts.User(c.Request.Context(), name); err != nil {
		return ""
	}
	return name
}

// reauth is POST /v1/auth/reauth: the password again, which makes the login fresh. The token stays as it is.
func (s *server) reauth(c *gin.Context) {
	var req struct {
		User     string `json:"user"`
		Password string `json:"password"`
	}
	who := principal(c)
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxCredentials)
	err := decodeStrict(c, &req)
	switch {
	case err != nil:
	case !who.Login:
		err = fault.New(fault.Invalid, "gateway.reauth", "this is an API key, which has no password")
	case req.Password == "":
		err = fault.New(fault.Invalid, "gateway.reauth", "password is required")
	case req.User != "" && req.User != who.Owner:
		err = fault.New(fault.Invalid, "gateway.reauth", "this is another user's login: leave user out, or log in")
	}
	var renewed access.NewLogin
	if err == nil {
		err = s.audited(c, "auth.reauth", map[string]any{"address": addressOf(c)}, func() error {
			return s.attempt(c, who.Owner, func() (err error) {
				renewed, err = s.cfg.Accounts.Reauth(c.Request.Context(), who, req.Password)
				if fault.CodeOf(err) == fault.Unauthenticated { // the login is valid: a client must not take this for its end
					err = fault.Wrap(err, fault.Denied, "gateway.reauth", "the password is wrong")
				}
				return err
			})
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	token, _ := bearerOf(c.Request.Header)
	c.Header("Cache-Control", "no-store")
	reply(c, loginInfo{token, renewed.ExpiresAt, renewed.AuthenticatedAt})
}

// logout is POST /v1/auth/logout.
func (s *server) logout(c *gin.Context) {
	who := principal(c)
	var err error
	if !who.Login {
		err = fault.New(fault.Invalid, "gateway.logout", "this is an API key, which no logout ends: delete it")
	}
	if err == nil {
		err = s.audited(c, "auth.logout", nil, func() error { return s.cfg.Accounts.Logout(c.Request.Context(), who) })
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"ended": who.KeyID})
}

// me tells a caller whom the server takes them for.
func (s *server) me(c *gin.Context) {
	who := principal(c)
	kind := "key"
	if who.Login {
		kind = "login"
	}
	grants := []GrantInfo{}
	if i := slices.IndexFunc(who.Holders, func(h access.Holder) bool { return h.User == who.Owner }); i >= 0 {
		for _, g := range who.Holders[i].Grants {
			grants = append(grants, wireGrant(g))
		}
	}
	for _, g := range who.Own {
		grants = append(grants, wireGrant(g))
	}
	reply(c, gin.H{"kind": kind, "key_id": who.KeyID, "user": who.Owner, "owner": who.Owner, "name": who.Name, "role": who.Ceiling().String(), "agent": who.Agent,
		"databases": who.Databases, "tables": who.Tables, "models": who.Models, "grants": grants,
		"authenticated_at": orNil(who.AuthenticatedAt), "expires_at": orNil(who.ExpiresAt), "fresh": access.Fresh(who, s.moment()) == nil})
}
