package gateway

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice/fault"
	"sluice/runner"
)

// maxModelLabels bounds how many models have series of their own: a label's values are never forgotten, and models come and
// go. Those beyond it are counted together, as "other".
const maxModelLabels = 200

// metrics are the numbers of one server, in a registry of its own. A nil *metrics counts nothing.
type metrics struct {
	requests   *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	checks     *prometheus.CounterVec
	statements *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	drafts     *prometheus.CounterVec
	firstToken *prometheus.HistogramVec
	token      *prometheus.HistogramVec
	answer     *prometheus.HistogramVec
	serve      http.Handler

	mu     sync.Mutex
	models map[string]bool // that have series
}

func newMetrics(s *server) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		requests: counter("sluice_http_requests_total", "Requests that were answered.", "route", "method", "code"),
		seconds: histogram("sluice_http_request_seconds", "From a request's arrival to the last byte of its answer.",
			[]float64{.001, .005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 300}, "route"),
		checks: counter("sluice_access_checks_total", "Requests whose caller was looked at: allowed, or the code of the refusal. "+
			"What is only read is counted here and stands in no ledger.", "result"),
		statements: counter("sluice_statements_total", "SQL statements that ended: of whom (query, ask: a model's, copy, external: tables of a lake), and how: ok, or the code of "+
			"the error; refused is the gate's answer.", "kind", "outcome"),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_http_requests_in_flight", Help: "Requests that are being answered, streams among them."}),
		tokens: counter("sluice_tokens_total", "Tokens: of prompts that were read (prompt), of prompts that were still in the cache (cached), "+
			"of answers (generated).", "model", "kind"),
		drafts: counter("sluice_draft_tokens_total", "Tokens that were guessed ahead, and whether the model agreed.", "model", "result"),
		firstToken: histogram("sluice_first_token_seconds", "From a request's arrival to the first token of its answer, loading included.",
			[]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}, "model"),
		token: histogram("sluice_token_seconds", "Mean time of a token of one answer, after the first.",
			[]float64{.001, .0025, .005, .01, .02, .04, .08, .16, .32, .64, 1.28}, "model"),
		answer: histogram("sluice_answer_seconds", "From a request's arrival to the end of its answer.",
			[]float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}, "model"),
		models: map[string]bool{},
	}
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_statements_running", Help: "SQL statements that run now, as GET /v1/queries lists them to an admin."},
		func() float64 { return float64(s.running.count()) })
	registry := prometheus.NewRegistry()
	version := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_build_info", Help: "Always 1; the version is in the label.",
		ConstLabels: prometheus.Labels{"version": s.cfg.Version}})
	version.Set(1)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), version,
		m.requests, m.seconds, m.inFlight, m.checks, m.statements, running, m.tokens, m.drafts, m.firstToken, m.token, m.answer, schedulerMetrics{s})
	m.serve = promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry})
	return m
}

// metrics answers GET /metrics in Prometheus's text format. The names of models are in it, so that it asks of its caller
// what /api/ps asks, and who may see only some models sees no numbers.
func (s *server) metrics(c *gin.Context) {
	if principal(c).Models != nil {
		s.fail(c, fault.New(fault.Denied, "gateway.metrics", "this key is narrowed to some models, and the numbers tell of all of them"))
		return
	}
	s.meters.serve.ServeHTTP(c.Writer, c.Request)
}

// methods that have a label of their own: a caller may send any word as a method.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true}

// middleware counts every request, those too that are refused. The route is its pattern, never the path that was sent.
func (m *metrics) middleware() gin.HandlerFunc {
	return func(c *gin.Context) {
		if m == nil {
			return
		}
		start := time.Now()
		m.inFlight.Inc()
		defer func() {
			m.inFlight.Dec()
			route, method := c.FullPath(), c.Request.Method
			if route == "" {
				route = "unknown"
			}
			if !methods[method] {
				method = "other"
			}
			m.requests.WithLabelValues(route, method, strconv.Itoa(c.Writer.Status())).Inc()
			m.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
		}()
		c.Next()
	}
}

// checked counts a look at who is calling.
func (m *metrics) checked(err error) {
	if m == nil {
		return
	}
	result := "allowed"
	if err != nil {
		result = fault.CodeOf(err).String()
	}
	m.checks.WithLabelValues(result).Inc()
}

// statement counts one SQL statement that ended.
func (m *metrics) statement(kind string, err error) {
	if m == nil {
		return
	}
	outcome := "ok"
	if err != nil {
		outcome = fault.CodeOf(err).String()
	}
	m.statements.WithLabelValues(kind, outcome).Inc()
}

// generated counts one answer, or the n answers of one request. firstToken and total are since the request's arrival;
// firstToken is 0 when nothing was generated.
func (m *metrics) generated(model string, u runner.Usage, firstToken, total time.Duration) {
	if m == nil {
		return
	}
	model = m.label(model)
	m.count(model, "prompt", u.PromptTokens-u.CachedTokens)
	m.count(model, "cached", u.CachedTokens)
	m.count(model, "generated", u.EvalTokens)
	if u.DraftTokens > 0 {
		m.drafts.WithLabelValues(model, "accepted").Add(float64(max(u.AcceptedTokens, 0)))
		m.drafts.WithLabelValues(model, "rejected").Add(float64(max(u.DraftTokens-u.AcceptedTokens, 0)))
	}
	if firstToken > 0 {
		m.firstToken.WithLabelValues(model).Observe(firstToken.Seconds())
	}
	if u.EvalTokens > 1 && u.EvalDuration > 0 {
		m.token.WithLabelValues(model).Observe(u.EvalDuration.Seconds() / float64(u.EvalTokens))
	}
	m.answer.WithLabelValues(model).Observe(total.Seconds())
}

// read counts tokens that were read without an answer: of embeddings and of reranking.
func (m *metrics) read(model string, tokens int) {
	if m != nil {
		m.count(m.label(model), "prompt", tokens)
	}
}

func (m *metrics) count(label, kind string, tokens int) {
	if tokens > 0 {
		m.tokens.WithLabelValues(label, kind).Add(float64(tokens))
	}
}

// label is a model's name, or "other" once enough models have series.
func (m *metrics) label(model string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.models[model] {
		if len(m.models) >= maxModelLabels {
			return "other"
		}
		m.models[model] = true
	}
	return model
}
