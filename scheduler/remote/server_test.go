package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/fault"
	"sluice/runner"
)

// door is a server without a network: what a test has it answer, and when it was asked for its list.
type door struct {
	mu    sync.Mutex
	begin time.Time
	err   error
	list  string
	asked []time.Duration
	hold  chan struct{} // when set: an answer waits for it
}

func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	list, err, hold := d.list, d.err, d.hold
	if r.URL.Path == "/v1/models" {
		d.asked = append(d.asked, time.Since(d.begin))
	}
	d.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(list)), Request: r}, nil
}

func (d *door) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// within runs a server behind a door, in a bubble of its own time.
func within(t *testing.T, test func(t *testing.T, d *door, s *Server)) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{begin: time.Now(), list: vllmList}
		s, _ := newServer(t, Config{Kind: OpenAI, URL: "http://there:8000", Transport: d})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		test(t, d, s)
		stop()
		if err := <-ended; err != nil || len(s.Models()) > 0 {
			t.Errorf("Run ended with %v and %d models", err, len(s.Models()))
		}
	})
}

func TestItIsAskedFromTimeToTime(t *testing.T) {
	within(t, func(t *testing.T, d *door, s *Server) {
		if !well(s.Models()) {
			t.Fatal("it is not asked at once")
		}
		<-s.Changes()
		first := &s.Models()[0]
		time.Sleep(time.Minute)
		d.set(func() {
			if n := len(d.asked); n < 6 || n > 8 {
				t.Errorf("asked %d times in a minute", n)
			}
		})
		if first != &s.Models()[0] {
			t.Error("the same list is another one")
		}
		select {
		case <-s.Changes():
			t.Error("a change is told where there was none")
		default:
		}
		d.set(func() { d.list = strings.ReplaceAll(vllmList, "Qwen3-8B", "Qwen3-32B") })
		<-s.Changes()
		if got := s.Models()[0].Name; got != "Qwen/Qwen3-32B:latest" {
			t.Errorf("it offers %s", got)
		}
	})
}

func TestOneThatIsNotWellIsAskedMoreAndMoreSeldom(t *testing.T) {
	within(t, func(t *testing.T, d *door, s *Server) {
		<-s.Changes()
		d.set(func() { d.err = errors.New("refused") })
		<-s.Changes()
		if well(s.Models()) {
			t.Error("one that is not well offers models")
		}
		d.set(func() { d.asked = nil })
		time.Sleep(5 * time.Minute)
		d.set(func() {
			for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
				if i == 0 {
					continue
				}
				if got := d.asked[i] - d.asked[i-1]; got < want*time.Second*9/10 || got > want*time.Second*11/10 {
					t.Errorf("the wait before question %d is %s, want about %ds", i, got, want)
				}
			}
			d.err = nil
		})
		<-s.Changes()
		if !well(s.Models()) {
			t.Error("it is well again and offers nothing")
		}
	})
}

func TestFailedRequestsAreBelieved(t *testing.T) {
	cases := map[string]struct {
		err   error
		stays bool
	}{
		"nobody there":                            {(&Server{}).lost(errors.New("refused")), false},
		"nobody there, wrapped":                   {fmt.Errorf("x: %w", (&Server{}).lost(errors.New("refused"))), false},
		"a proxy before nobody":                   {(&Server{}).refusal(502, nil, nil), false},
		"unclassified":                            {errors.New("strange"), false},
		"it answered that it failed":              {(&Server{}).refusal(500, nil, []byte(`{"error":"x"}`)), true},
		"it has too much to do":                   {(&Server{}).refusal(429, nil, nil), true},
		"a bad request":                           {fault.New(fault.Invalid, "x", "x"), true},
		"the caller left":                         {fault.New(fault.Canceled, "x", "x"), true},
		"the caller left, as a context says that": {context.Canceled, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, d *door, s *Server) {
				<-s.Changes()
				s.Failed(c.err)
				if well(s.Models()) != c.stays {
					t.Errorf("it offers %d models", len(s.Models()))
				}
				if c.stays {
					return
				}
				<-s.Changes() // that it is gone
				begin := time.Now()
				<-s.Changes() // and back
				if !well(s.Models()) || time.Since(begin) > 1100*time.Millisecond {
					t.Errorf("%d models after %s", len(s.Models()), time.Since(begin))
				}
			})
		})
	}
}

// An answer that was on its way while a request failed is older than the failure.
func TestAnOlderAnswerDoesNotHealAFailure(t *testing.T) {
	within(t, func(t *testing.T, d *door, s *Server) {
		<-s.Changes()
		d.set(func() { d.list = strings.ReplaceAll(vllmList, `"vllm"`, `"x"`) }) // whose health is not asked for
		hold := make(chan struct{})
		d.set(func() { d.hold, d.asked = hold, nil })
		for asked := 0; asked == 0; time.Sleep(time.Second) {
			d.set(func() { asked = len(d.asked) })
		}
		s.Failed(s.lost(errors.New("refused")))
		d.set(func() { d.hold, d.err = nil, errors.New("refused") })
		close(hold)
		synctest.Wait()
		if well(s.Models()) {
			t.Error("it is well by an answer from before")
		}
	})
}

// A question that is never answered is given up.
func TestASilentListIsGivenUp(t *testing.T) {
	within(t, func(t *testing.T, d *door, s *Server) {
		<-s.Changes()
		d.set(func() { d.hold = make(chan struct{}) })
		<-s.Changes()
		if well(s.Models()) {
			t.Error("a silent server is well")
		}
	})
}

func TestRunTwiceIsABug(t *testing.T) {
	within(t, func(t *testing.T, _ *door, s *Server) {
		if err := s.Run(t.Context()); err == nil {
			t.Error("Run runs twice")
		}
	})
}

func TestConfigMistakes(t *testing.T) {
	_, err := New(Config{Kind: "vllm", URL: "http://u:pa55word@h", Slots: -1, Every: -1, Key: "a\nb"})
	for _, want := range []string{"Name", "Kind", "URL", "Slots", "Every", "Key"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "pa55word") {
		t.Errorf("a password got out: %v", err)
	}
	for _, url := range []string{"ftp://h", "h:80", "http://", "http://h?key=x", ""} {
		if _, err := New(Config{Name: "a", Kind: Ollama, URL: url}); err == nil {
			t.Errorf("%q is taken for a URL", url)
		}
	}
}

func TestLists(t *testing.T) {
	cases := map[string]struct {
		kind   string
		routes map[string]http.HandlerFunc
		models []string
		want   string // name capabilities context backend numctx;
		fails  bool
	}{
		"a vLLM":                   {OpenAI, map[string]http.HandlerFunc{"/v1/models": say(vllmList), "/health": say("")}, nil, "Qwen/Qwen3-8B:latest completion,tools 40960 40960;", false},
		"one whose engine is dead": {OpenAI, map[string]http.HandlerFunc{"/v1/models": say(vllmList), "/health": fail(503, "")}, nil, "", true},
		"an Ollama":                {Ollama, map[string]http.HandlerFunc{"/api/tags": say(ollamaTags), "/api/show": say(ollamaShow)}, nil, "qwen3:8b completion,tools,thinking,embedding 40960 0;", false},
		"what the names suggest": {OpenAI, map[string]http.HandlerFunc{"/v1/models": say(`{"data":[{"id":"bge-m3"},{"id":"bge-reranker-v2"},{"id":"Qwen2.5-VL-7B"},{"id":"/models/Llama-3.gguf"},{"id":"bad name!"},{"id":""},{"id":"bge-m3"}]}`)}, nil,
			"bge-m3:latest embedding 0 0;bge-reranker-v2:latest rerank 0 0;Qwen2.5-VL-7B:latest completion,tools,vision 0 0;Llama-3.gguf:latest completion,tools 0 0;", false},
		"only what is asked for, in that order": {OpenAI, map[string]http.HandlerFunc{"/v1/models": say(`{"data":[{"id":"a"},{"id":"b"},{"id":"c"}]}`)}, []string{"c:latest", "x", "a"},
			"c:latest completion,tools 0 0;a:latest completion,tools 0 0;", false},
		"no list, but names in the settings": {OpenAI, nil, []string{"a"}, "a:latest completion,tools 0 0;", false},
		"no list and no names":               {OpenAI, nil, nil, "", true},
		"an Ollama that cannot show one":     {Ollama, map[string]http.HandlerFunc{"/api/tags": say(ollamaTags), "/api/show": fail(500, `{"error":"damaged"}`)}, nil, "", false},
		"no JSON":                            {Ollama, map[string]http.HandlerFunc{"/api/tags": say("<html>")}, nil, "", true},
		"a wrong key":                        {Ollama, map[string]http.HandlerFunc{"/api/tags": fail(401, "")}, nil, "", true},
		"strange numbers":                    {OpenAI, map[string]http.HandlerFunc{"/v1/models": say(`{"data":[{"id":"a","max_model_len":-5,"created":1e300,"meta":{"n_ctx_train":1e300}}]}`)}, nil, "a:latest completion,tools 1073741824 0;", false},
		"one that is too large":              {Ollama, map[string]http.HandlerFunc{"/api/tags": say(`{"models":[` + strings.Repeat(" ", maxList) + `]}`)}, nil, "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, c.routes)
			s, log := newServer(t, Config{Kind: c.kind, URL: p.URL, Models: c.models})
			o, err := s.ask(t.Context())
			if (err != nil) != c.fails {
				t.Fatalf("%v", err)
			}
			if strings.Contains(log.String()+fmt.Sprint(err), secretKey) {
				t.Error("the key got out")
			}
			if err != nil {
				return
			}
			s.offer(o)
			got := ""
			for _, m := range o.models {
				rep, err := s.Runner(m).Load(t.Context(), runner.LoadRequest{}, nil)
				if err != nil || !rep.Chats || rep.Parallel != 8 || rep.Backend != c.kind {
					t.Errorf("%+v %v", rep, err)
				}
				got += fmt.Sprintf("%s %s %d %d;", m.Name, strings.Join(m.Capabilities(), ","), rep.TrainCtx, rep.NumCtx)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A model's details are asked for once, until it changes.
func TestModelsAreShownOnce(t *testing.T) {
	p := newPeer(t, map[string]http.HandlerFunc{"/api/tags": say(ollamaTags), "/api/show": say(ollamaShow)})
	s, _ := newServer(t, Config{Kind: Ollama, URL: p.URL})
	ask := func(want int) {
		t.Helper()
		if _, err := s.ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(p.bodies["/api/show"]); n != want {
			t.Errorf("shown %d times, want %d", n, want)
		}
	}
	ask(1)
	ask(1)
	p.routes["/api/tags"] = say(strings.ReplaceAll(ollamaTags, "500a1f067a9f", "600a1f067a9f"))
	ask(2)
}

// slow is a server that writes a piece of its answer each minute.
type slow struct{ pieces int }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/v1/chat/completions" {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(strings.ReplaceAll(vllmList, `"vllm"`, `"x"`))), Request: r}, nil
	}
	in, out := io.Pipe()
	go func() {
		for range s.pieces {
			time.Sleep(time.Minute)
			if _, err := io.WriteString(out, events(`{"choices":[{"index":0,"delta":{"content":"x"}}]}`)); err != nil {
				return
			}
		}
		_, _ = io.WriteString(out, events(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"))
		_ = out.Close()
	}()
	context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: in, Request: r}, nil
}

// The time limits are for silence, not for the whole.
func TestASlowAnswerIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, Config{Kind: OpenAI, URL: "http://there:8000", Transport: slow{pieces: 30}, FirstByte: 90 * time.Second, Idle: 90 * time.Second})
		o, err := s.ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.offer(o)
		var g gathered
		if err := s.Runner(o.models[0]).Generate(t.Context(), runner.GenerateRequest{Chat: question("x")}, g.take); err != nil || len(g.text[0]) != 30 {
			t.Errorf("%v after %d pieces", err, g.chunks)
		}
	})
}
