package registrytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Login makes a registry ask for bearer tokens, which it gives at /token: for pulls to anyone, for pushes to the user.
type Login struct {
	User, Password string
	Realm          string // where tokens are; "": /token of the registry itself
	Basic          bool   // asks for the password itself instead of a token
	Lives          int    // requests that a token is good for; 0: any number

	mu     sync.Mutex
	tokens map[string]*token
	issued int
}

type token struct {
	push bool
	left int
}

// Issued tells how many tokens were given.
func (l *Login) Issued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.issued
}

// refuses answers what is not allowed, and the requests for tokens.
func (l *Login) refuses(w http.ResponseWriter, q *http.Request) bool {
	if q.URL.Path == "/token" {
		l.give(w, q)
		return true
	}
	needsPush := q.Method != http.MethodGet && q.Method != http.MethodHead
	if l.Basic {
		if user, password, ok := q.BasicAuth(); ok && user == l.User && password == l.Password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	bearer, _ := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	if l.valid(bearer, needsPush) {
		return false
	}
	realm := l.Realm
	if realm == "" {
		scheme := "http"
		if q.TLS != nil {
			scheme = "https"
		}
		realm = scheme + "://" + q.Host + "/token"
	}
	scope := "repository:x:pull"
	if needsPush {
		scope = "repository:x:pull,push"
	}
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s",service="registry, \"ours\"",scope="%s"`, realm, scope))
	w.WriteHeader(http.StatusUnauthorized)
	return true
}

func (l *Login) valid(bearer string, push bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tokens[bearer]
	if t == nil || push && !t.push || l.Lives > 0 && t.left == 0 {
		return false
	}
	t.left--
	return true
}

func (l *Login) give(w http.ResponseWriter, q *http.Request) {
	user, password, _ := q.BasicAuth()
	known := user == l.User && password == l.Password
	push := strings.Contains(q.URL.Query().Get("scope"), "push")
	if q.URL.Query().Get("service") != `registry, "ours"` || push && !known {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.issued++
	name := fmt.Sprintf("token-%d", l.issued)
	if l.tokens == nil {
		l.tokens = map[string]*token{}
	}
	l.tokens[name] = &token{push: push, left: l.Lives}
	_ = json.NewEncoder(w).Encode(map[string]any{"token": name, "expires_in": 300}) // a client that left needs no token
}
