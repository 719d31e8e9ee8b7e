package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/agent"
)

// TestAClientThatDoesNotReadHoldsNothing: a client that stays connected and reads nothing must not keep a model, or a
// database's connection, from others. Every answer here is larger than what the kernel takes for it.
func TestAClientThatDoesNotReadHoldsNothing(t *testing.T) {
	f := withShop(t)
	a, err := agent.New(agent.Config{Completer: &scripted{answers: []string{"SELECT repeat('x', 10000) AS x FROM sale"}}, Model: "tiny", MaxRows: 1000})
	if err != nil {
		t.Fatal(err)
	}
	f.cfg.Agent, f.cfg.WriteTimeout = a, 200*time.Millisecond
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	f.fake.script = slices.Repeat([]string{strings.Repeat("x", 64<<10)}, 600)
	ended := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		f.handler.ServeHTTP(w, r)
	}))
	defer srv.Close()

	rows := map[string]any{"database": "shop", "sql": "SELECT repeat('x', 10000) AS x FROM sale"}
	for name, row := range map[string]struct {
		path, accept string
		body         map[string]any
	}{
		"a chat that streams":     {"/api/chat", "", map[string]any{"model": "tiny", "messages": sea}},
		"a chat in one piece":     {"/api/chat", "", map[string]any{"model": "tiny", "messages": sea, "stream": false}},
		"a generate that streams": {"/api/generate", "", map[string]any{"model": "tiny", "prompt": "a"}},
		"rows as JSON":            {"/v1/query/execute", "", rows},
		"rows as CSV":             {"/v1/query/execute", csvForm, rows},
		"rows as NDJSON":          {"/v1/query/execute", ndjsonForm, rows},
		"rows as Arrow":           {"/v1/query/execute", arrowForm, rows},
		"an ask's events":         {"/v1/database/ask", "", map[string]any{"database": "shop", "question": "all?", "stream": true}},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(row.body)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
				t.Fatal(err)
			}
			var req bytes.Buffer
			fmt.Fprintf(&req, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: %s\r\nContent-Length: %d\r\n\r\n%s", row.path, readOnlyKey, row.accept, len(body), body)
			if _, err := conn.Write(req.Bytes()); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Fatal("the request goes on")
			}
			f.waitLoaded(idle)
			if log := f.log.String(); !strings.Contains(log[strings.LastIndex(strings.TrimSpace(log), "\n")+1:], `"code":"canceled"`) {
				t.Errorf("the log does not say that the client did not read: %s", log[max(0, len(log)-500):])
			}
		})
	}
}

// TestASlowClientGetsAllOfALongAnswer: the limit is for each piece, and begins again with it.
func TestASlowClientGetsAllOfALongAnswer(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.WriteTimeout = time.Second })
	f.fake.script = slices.Repeat([]string{strings.Repeat("x", 64<<10)}, 400)
	srv := httptest.NewServer(f.handler)
	defer srv.Close()
	body := `{"model":"tiny","prompt":"a","raw":true,"stream":false,"options":{"num_predict":400}}`
	res, err := srv.Client().Post(srv.URL+"/api/generate", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	begin, got, tick := time.Now(), 0, time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	buf := make([]byte, 64<<10)
	for {
		n, err := res.Body.Read(buf)
		got += n
		if err != nil {
			break
		}
		<-tick.C
	}
	if got < 400*64<<10 {
		t.Errorf("after %s the answer ended at %d bytes", time.Since(begin), got)
	}
}
