package gateway

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice/fault"
	"sluice/runner"
	"sluice/scheduler"
)

var sample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^}]*\})?) (\S+)$`)

// scrape reads /metrics as Prometheus does: each series once, each value a number.
func scrape(t testing.TB, f *fixture) map[string]float64 {
	t.Helper()
	w := f.do(call{method: "GET", path: "/metrics"})
	wantStatus(t, w, 200)
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("Content-Type %q", got)
	}
	out := map[string]float64{}
	for line := range strings.SplitSeq(strings.TrimSpace(w.Body.String()), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a sample: %q", line)
		}
		v, err := strconv.ParseFloat(m[2], 64)
		if _, twice := out[m[1]]; err != nil || twice {
			t.Fatalf("%q: %v, twice %v", line, err, twice)
		}
		out[m[1]] = v
	}
	return out
}

func wantSeries(t testing.TB, got map[string]float64, want map[string]float64) {
	t.Helper()
	for series, v := range want {
		if g, ok := got[series]; !ok || g != v {
			t.Errorf("%s is %v (there: %v), want %v", series, g, ok, v)
		}
	}
}

func TestMetricsCountWhatHappened(t *testing.T) {
	f := newFixture(t, nil)
	before := scrape(t, f)
	wantSeries(t, before, map[string]float64{`sluice_models_loaded{state="ready"}`: 0, `sluice_models_loaded{state="loading"}`: 0,
		`sluice_build_info{version="1.2.3"}`: 1, `sluice_http_requests_in_flight`: 1, `sluice_queue_waiting`: 0,
		`sluice_model_loads_total{outcome="ready"}`: 0, `sluice_model_unloads_total{reason="room"}`: 0, `sluice_requests_refused_total{why="full"}`: 0})
	for _, series := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if before[series] <= 0 {
			t.Errorf("%s is %v", series, before[series])
		}
	}
	wantStatus(t, f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "messages": sea}}), 200)
	wantStatus(t, f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "messages": sea, "stream": false}}), 200)
	wantStatus(t, f.do(call{method: "POST", path: "/api/chat", bearer: wrongKey}), 401)
	wantStatus(t, f.do(call{method: "GET", path: "/no/such/route/secret"}), 404)
	wantStatus(t, f.do(call{method: "BREW", path: "/api/chat"}), 405)
	f.waitLoaded(idle)
	prompt := float64(len(strings.Fields(f.fake.last().Prompt)))
	got := scrape(t, f)
	wantSeries(t, got, map[string]float64{
		`sluice_http_requests_total{code="200",method="POST",route="/api/chat"}`: 2,
		`sluice_http_requests_total{code="401",method="POST",route="/api/chat"}`: 1,
		`sluice_http_requests_total{code="404",method="GET",route="unknown"}`:    1,
		`sluice_http_requests_total{code="405",method="other",route="unknown"}`:  1,
		`sluice_http_request_seconds_count{route="/api/chat"}`:                   3,
		`sluice_http_requests_in_flight`:                                         1, // this very scrape
		`sluice_tokens_total{kind="prompt",model="tiny:latest"}`:                 2 * prompt,
		`sluice_tokens_total{kind="generated",model="tiny:latest"}`:              6,
		`sluice_first_token_seconds_count{model="tiny:latest"}`:                  2,
		`sluice_answer_seconds_count{model="tiny:latest"}`:                       2,
		`sluice_models_loaded{state="ready"}`:                                    1,
		`sluice_model_requests_in_flight{model="tiny:latest"}`:                   0,
		`sluice_model_bytes{model="tiny:latest",place="gpu"}`:                    7,
		`sluice_model_bytes{model="tiny:latest",place="cpu"}`:                    1103,
		`sluice_model_loads_total{outcome="ready"}`:                              1,
		`sluice_model_unloads_total{reason="asked"}`:                             0,
	})
	for series := range got {
		if strings.Contains(series, "secret") || strings.Contains(series, "BREW") {
			t.Errorf("a caller's text is a label: %s", series)
		}
	}
	wantStatus(t, f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "keep_alive": 0}}), 200)
	f.waitLoaded(none)
	got = scrape(t, f)
	wantSeries(t, got, map[string]float64{`sluice_model_unloads_total{reason="asked"}`: 1, `sluice_model_loads_total{outcome="ready"}`: 1})
	for series := range got {
		if strings.HasPrefix(series, "sluice_model_bytes") {
			t.Errorf("a model that is gone still has %s", series)
		}
	}
}

func TestMetricsOfDevicesAndRefusals(t *testing.T) {
	ch := make(chan prometheus.Metric, 100)
	series(ch).stats(scheduler.Stats{Waiting: 3, Loads: map[string]int{"ready": 5}, Unloads: map[scheduler.Reason]int{scheduler.ReasonRoom: 2}, Refused: map[string]int{"full": 7},
		Devices: []scheduler.DeviceUse{{Device: runner.Device{ID: "CUDA0", TotalBytes: 80, FreeBytes: 30}, Used: 40, Reserved: 10}}})
	close(ch)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(fixed{ch})
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	for _, want := range []string{"sluice_queue_waiting 3", `sluice_model_loads_total{outcome="ready"} 5`, `sluice_model_loads_total{outcome="failed"} 0`,
		`sluice_model_unloads_total{reason="room"} 2`, `sluice_model_unloads_total{reason="died"} 0`, `sluice_requests_refused_total{why="full"} 7`,
		`sluice_requests_refused_total{why="memory"} 0`, `sluice_device_bytes{device="CUDA0",kind="total"} 80`, `sluice_device_bytes{device="CUDA0",kind="free"} 30`,
		`sluice_device_bytes{device="CUDA0",kind="used"} 40`, `sluice_device_bytes{device="CUDA0",kind="reserved"} 10`} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %q in\n%s", want, w.Body)
		}
	}
}

// fixed is a collector of metrics that are there already.
type fixed struct{ ch chan prometheus.Metric }

func (f fixed) Describe(ch chan<- *prometheus.Desc) { schedulerMetrics{}.Describe(ch) }

func (f fixed) Collect(ch chan<- prometheus.Metric) {
	for m := range f.ch {
		ch <- m
	}
}

func TestMetricsOfAStreamThatGoesOn(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.hold = make(chan struct{})
	done := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		done <- f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "messages": sea}})
	}()
	f.waitLoaded(func(l []scheduler.Loaded) bool { return len(l) == 1 && l[0].InFlight == 1 })
	wantSeries(t, scrape(t, f), map[string]float64{`sluice_http_requests_in_flight`: 2, `sluice_model_requests_in_flight{model="tiny:latest"}`: 1})
	close(f.fake.hold)
	wantStatus(t, <-done, 200)
}

func TestWhoMayReadMetrics(t *testing.T) {
	for name, row := range map[string]struct {
		open   bool
		bearer string
		header string
		status int
	}{
		"nobody on loopback":     {open: true, status: 200},
		"nobody through a proxy": {open: true, header: "X-Forwarded-For", status: 401},
		"nobody where closed":    {status: 401},
		"a wrong key":            {open: true, bearer: wrongKey, status: 401},
		"a key where closed":     {bearer: readOnlyKey, status: 200},
		"a key for some models":  {open: true, bearer: narrowKey, status: 403},
	} {
		f := newFixture(t, func(c *Config) { c.OpenOllama = row.open })
		c := call{method: "GET", path: "/metrics", bearer: row.bearer}
		if row.header != "" {
			c.header = map[string]string{row.header: "x"}
		}
		if w := f.do(c); w.Code != row.status || row.status != 200 && strings.Contains(w.Body.String(), "sluice_") {
			t.Errorf("%s: %d %.100s", name, w.Code, w.Body)
		}
	}
}

func TestMetricsOfDraftsAndOfManyModels(t *testing.T) {
	f := newFixture(t, nil)
	s := newServer(f.cfg.withDefaults())
	f.handler = s.handler()
	u := runner.Usage{PromptTokens: 10, CachedTokens: 4, EvalTokens: 5, EvalDuration: 50 * time.Millisecond, DraftTokens: 8, AcceptedTokens: 3}
	for i := range maxModelLabels + 20 {
		s.meters.generated(fmt.Sprint("m", i), u, time.Second, 2*time.Second)
	}
	s.meters.read("m0", 100)
	s.meters.generated("m1", runner.Usage{}, 0, time.Second) // nothing came: no time to a first token
	got := scrape(t, f)
	wantSeries(t, got, map[string]float64{
		`sluice_tokens_total{kind="prompt",model="m0"}`:              106,
		`sluice_tokens_total{kind="cached",model="m0"}`:              4,
		`sluice_tokens_total{kind="generated",model="m0"}`:           5,
		`sluice_tokens_total{kind="generated",model="other"}`:        100,
		`sluice_draft_tokens_total{model="m0",result="accepted"}`:    3,
		`sluice_draft_tokens_total{model="m0",result="rejected"}`:    5,
		`sluice_token_seconds_sum{model="m0"}`:                       .01,
		`sluice_first_token_seconds_count{model="m1"}`:               1,
		`sluice_answer_seconds_count{model="m1"}`:                    2,
		`sluice_first_token_seconds_bucket{model="m1",le="0.5"}`:     0,
		`sluice_first_token_seconds_bucket{model="m1",le="1"}`:       1,
		`sluice_tokens_total{kind="cached",model="other"}`:           80,
		`sluice_draft_tokens_total{model="other",result="accepted"}`: 60,
	})
	if _, ok := got[fmt.Sprintf(`sluice_tokens_total{kind="generated",model="m%d"}`, maxModelLabels)]; ok {
		t.Error("the number of series has no bound")
	}
	var nothing *metrics
	nothing.generated("m", u, 1, 1) // a server without numbers still answers
	nothing.read("m", 1)
}

func TestMetricsOfReranking(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.ranks = func(string, string) float32 { return 0 }
	wantStatus(t, f.do(call{method: "POST", path: "/v1/rerank", body: map[string]any{"model": "encoder", "query": "one two", "documents": []string{"three", "four five six"}}}), 200)
	// Each document is read with the query: 2+1 and 2+3 words.
	wantSeries(t, scrape(t, f), map[string]float64{`sluice_tokens_total{kind="prompt",model="encoder:latest"}`: 8})
}

func TestTwoServersHaveNumbersOfTheirOwn(t *testing.T) {
	a, b := newFixture(t, nil), newFixture(t, nil)
	wantStatus(t, a.do(call{method: "GET", path: "/api/tags"}), 200)
	const series = `sluice_http_requests_total{code="200",method="GET",route="/api/tags"}`
	wantSeries(t, scrape(t, a), map[string]float64{series: 1})
	if _, ok := scrape(t, b)[series]; ok {
		t.Error("one server counts the requests of another")
	}
}

func TestMetricsOfAnAnswerThatFailed(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.failAt, f.fake.err = 1, fault.New(fault.Internal, "fake", "broken")
	wantStatus(t, f.do(call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "messages": sea}}), 500)
	wantSeries(t, scrape(t, f), map[string]float64{`sluice_http_requests_total{code="500",method="POST",route="/api/chat"}`: 1})
}
