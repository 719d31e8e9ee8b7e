package gateway

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

func TestEveryCodeHasAStatus(t *testing.T) {
	contract := map[string]int{"internal": 500, "invalid": 400, "unauthenticated": 401, "denied": 403, "not_found": 404, "conflict": 409, "too_large": 413,
		"refused": 422, "busy": 503, "canceled": 499, "unimplemented": 501}
	for _, code := range fault.Codes() {
		if status, ok := statuses[code]; !ok || status != contract[code.String()] {
			t.Errorf("%s: status %d, want %d", code, status, contract[code.String()])
		}
	}
	if statusOf(fault.Code(999)) != 500 {
		t.Error("an unknown code is not 500")
	}
}

// failing serves one handler behind the middleware.
func failing(path string, handle gin.HandlerFunc) *httptest.ResponseRecorder {
	s := newServer(Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	r := gin.New()
	r.Use(s.requestID, s.accessLog, s.recover)
	r.GET(path, func(c *gin.Context) { handle(c) })
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func TestAnErrorInEachDialect(t *testing.T) {
	err := fmt.Errorf("above: %w", &fault.Error{Code: fault.Refused, Kind: "path", Msg: "not this way", Hint: "go round", Position: 7, Err: errors.New("secret cause")})
	for path, want := range map[string]string{
		"/api/chat":            `{"error":"not this way (go round)"}`,
		"/v1/chat/completions": `{"error":{"code":null,"message":"not this way (go round)","param":null,"type":"api_error"}}`,
		"/v1/messages":         `{"error":{"message":"not this way (go round)","type":"invalid_request_error"},"request_id":"ID","type":"error"}`,
		"/v1/query/execute":    `{"error":{"code":"refused","kind":"path","message":"not this way","hint":"go round","position":7,"request_id":"ID"}}`,
		"/v1/database/ask":     `{"error":{"code":"refused","kind":"path","message":"not this way","hint":"go round","position":7,"request_id":"ID"}}`,
		"/v1/models":           `{"error":{"code":null,"message":"not this way (go round)","param":null,"type":"api_error"}}`,
	} {
		w := failing(path, func(c *gin.Context) { newServer(Config{}).fail(c, err) })
		got := strings.ReplaceAll(w.Body.String(), w.Header().Get("X-Request-Id"), "ID")
		if w.Code != 422 || got != want || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %s\nwant %s", path, w.Code, got, want)
		}
	}
}

func TestTheTextOfAnInternalErrorStaysInside(t *testing.T) {
	for name, handle := range map[string]gin.HandlerFunc{
		"unclassified": func(c *gin.Context) { newServer(Config{}).fail(c, errors.New("the password is swordfish")) },
		"classified":   func(c *gin.Context) { newServer(Config{}).fail(c, fault.New(fault.Internal, "x", "swordfish")) },
		"panic":        func(c *gin.Context) { panic("swordfish") },
		"no JSON form": func(c *gin.Context) { writeJSON(c, 200, map[string]any{"swordfish": func() {}}) },
	} {
		for _, path := range []string{"/api/x", "/v1/x", "/v1/models", "/v1/messages"} {
			w := failing(path, handle)
			if w.Code != 500 || strings.Contains(w.Body.String(), "swordfish") {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
			object(t, w.Body.Bytes())
		}
	}
}

func TestBusySaysWhenToTryAgain(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", 1500 * time.Millisecond: "2", time.Minute: "60"} {
		w := failing("/api/x", func(c *gin.Context) {
			newServer(Config{}).fail(c, &fault.Error{Code: fault.Busy, Msg: "full", RetryAfter: d})
		})
		if w.Code != 503 || w.Header().Get("Retry-After") != want {
			t.Errorf("%s: %d, Retry-After %q", d, w.Code, w.Header().Get("Retry-After"))
		}
	}
}

// TestWhatIsNotTriedAgainYetSaysWhen, too: a model that could not be loaded is no Busy.
func TestWhatIsNotTriedAgainYetSaysWhen(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "", 1500 * time.Millisecond: "2"} {
		w := failing("/v1/chat/completions", func(c *gin.Context) {
			newServer(Config{}).fail(c, &fault.Error{Code: fault.Invalid, Msg: "the model could not be loaded", RetryAfter: d})
		})
		if w.Code != 400 || w.Header().Get("Retry-After") != want {
			t.Errorf("%s: %d, Retry-After %q", d, w.Code, w.Header().Get("Retry-After"))
		}
	}
}

func TestUnknownRoutesAndMethodsAreJSON(t *testing.T) {
	f := newFixture(t, nil)
	for name, row := range map[string]struct {
		c      call
		status int
		sluice bool
	}{
		"unknown":            {call{method: "GET", path: "/nothing"}, 404, false},
		"unknown below api":  {call{method: "POST", path: "/api/nothing"}, 404, false},
		"unknown below v1":   {call{method: "GET", path: "/v1/nothing"}, 404, true},
		"a slash too many":   {call{method: "GET", path: "/api/tags/"}, 404, false},
		"wrong method":       {call{method: "GET", path: "/api/chat"}, 405, false},
		"wrong method v1":    {call{method: "PUT", path: "/v1/query/execute"}, 405, true},
		"of openai":          {call{method: "GET", path: "/v1/chat/completions"}, 405, true},
		"of anthropic":       {call{method: "GET", path: "/v1/messages"}, 405, true},
		"control characters": {call{method: "GET", path: "/x%0a%1b[31m"}, 404, false},
		"pull":               {call{method: "POST", path: "/api/pull", bearer: adminKey, body: `{"name":"x"}`}, 501, false},
		"openai":             {call{method: "POST", path: "/v1/images/generations", body: `{}`}, 501, true},
		"a model of openai":  {call{method: "GET", path: "/v1/models/library/x:1b"}, 404, true},
	} {
		w := f.do(row.c)
		if w.Code != row.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, row.status)
		}
		switch e := object(t, w.Body.Bytes())["error"].(type) {
		case string:
			if row.sluice || e == "" || strings.ContainsAny(e, "\n\x1b") {
				t.Errorf("%s: error %q", name, e)
			}
		case map[string]any:
			if kind, there := e["type"]; there && row.status < 500 && kind != "invalid_request_error" { // OpenAI's and Anthropic's word for it
				t.Errorf("%s: type %v", name, kind)
			}
			if code := e["code"]; code == modelNotFound && row.status == 405 {
				t.Errorf("%s: a route that is not there is no model", name)
			}
			if !row.sluice || e["message"] == "" {
				t.Errorf("%s: error %v", name, e)
			}
		}
		if row.status == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s: no Allow header", name)
		}
	}
}

func TestRequestIDsAndTheLog(t *testing.T) {
	f := newFixture(t, nil)
	for sent, kept := range map[string]bool{"abc-1.2_3:4": true, "": false, "a b": false, "x\ny": false, strings.Repeat("a", 65): false, "é": false} {
		w := f.do(call{method: "GET", path: "/api/version", header: map[string]string{"X-Request-Id": sent}})
		if got := w.Header().Get("X-Request-Id"); got == "" || (got == sent) != kept {
			t.Errorf("%q became %q", sent, got)
		}
	}
	w := f.do(call{method: "POST", path: "/v1/query/execute?token=slc_query", bearer: readOnlyKey, body: map[string]any{"database": "shop", "sql": "SELECT 'body-secret'"}})
	if id := w.Header().Get("X-Request-Id"); !strings.Contains(f.log.String(), id) || !strings.Contains(w.Body.String(), id) {
		t.Errorf("request id %s is not in log and body", id)
	}
	for _, secret := range []string{readOnlyKey, "slc_query", "body-secret"} {
		if strings.Contains(f.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if !strings.Contains(f.log.String(), `"key":"k-readonly"`) || !strings.Contains(f.log.String(), `"code":"not_found"`) {
		t.Errorf("log: %s", f.log)
	}
}

func TestABodyOverTheLimitIs413(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.MaxBody = 100 })
	long := `{"model":"` + strings.Repeat("x", 200) + `"}`
	wantStatus(t, f.do(call{method: "POST", path: "/api/chat", body: long}), 413)
	wantStatus(t, f.do(call{method: "POST", path: "/v1/query/execute", bearer: adminKey, body: long}), 413)
	w := f.do(call{method: "POST", path: "/api/blobs/sha256:" + strings.Repeat("0", 64), bearer: adminKey, body: long})
	if w.Code != 400 || !strings.Contains(w.Body.String(), "digest mismatch") {
		t.Errorf("a blob is bounded like a document: %d %s", w.Code, w.Body)
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := New(Config{MaxRows: -1, MaxBody: -1, Origins: []string{"a*b*c"}})
	for _, part := range []string{"Models", "Scheduler", "Accounts", "MaxRows", "MaxBody", "a*b*c"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not tell of %s", err, part)
		}
	}
}
