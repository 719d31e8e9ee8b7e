package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"sluice/fault"
	"sluice/models"
)

// Waits of a server that is not well, until it is asked again.
const (
	firstWait = time.Second
	maxWait   = 30 * time.Second
	askLimit  = 10 * time.Second // for one of its lists
)

// Server is a server elsewhere that runs models for this one. It offers nothing until Run has asked it.
type Server struct {
	cfg     Config
	base    *url.URL
	http    *http.Client
	now     atomic.Pointer[offer]
	changes chan struct{}
	failed  chan struct{}
	running atomic.Bool

	shown map[string]shown // what is known of Ollama's models; of the goroutine in Run alone
}

// offer is what a server has, as of its last answer. It is never changed.
type offer struct {
	well    bool
	models  []*models.Model
	ids     map[string]string // by Model.Name: what the server calls it
	flavour flavour
}

// flavour is the program that the server is, as far as it can be told: each has words of its own for the same thing.
type flavour string

const (
	unknown  flavour = ""
	vllm     flavour = "vllm"
	sglang   flavour = "sglang"
	llamacpp flavour = "llamacpp"
	sluice   flavour = "sluice"
)

// New validates the configuration. Run must be called for anything to happen.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	base, err := cfg.validate()
	if err != nil {
		return nil, fmt.Errorf("remote %q: %w", cfg.Name, err)
	}
	s := &Server{cfg: cfg, base: base, changes: make(chan struct{}, 1), failed: make(chan struct{}, 1), shown: map[string]shown{}}
	s.http = &http.Client{Transport: cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a server must not send our prompts, and our key, to somebody else
	}}
	s.now.Store(&offer{})
	return s, nil
}

// Name is what the server is called here.
func (s *Server) Name() string { return s.cfg.Name }

// Kind is OpenAI or Ollama.
func (s *Server) Kind() string { return s.cfg.Kind }

// Slots is how many requests it is given at a time.
func (s *Server) Slots() int { return s.cfg.Slots }

// Models are what it offers now, in the order of its list; none while it is not well. The list is not changed.
func (s *Server) Models() []*models.Model { return s.now.Load().models }

// Changes gets a value after Models may have changed.
func (s *Server) Changes() <-chan struct{} { return s.changes }

// Failed is told the error with which a request ended before its first byte. Where it says that the server is gone, nothing is offered
// until it has been asked again. A server that answered itself, be it that it failed with this request or that it has too much to do,
// goes on: else one caller's strange request would take it away from all.
func (s *Server) Failed(err error) {
	switch {
	case errors.Is(err, errAnswered):
		return
	case !Unavailable(err) && (fault.CodeOf(err) != fault.Internal || errors.Is(err, context.Canceled)):
		return
	}
	s.offer(&offer{})
	select {
	case s.failed <- struct{}{}:
	default:
	}
}

// offer publishes. It does not wait for anybody.
func (s *Server) offer(o *offer) {
	before := s.now.Swap(o)
	if before.well == o.well && slices.Equal(before.models, o.models) {
		return
	}
	s.told()
}

func (s *Server) told() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// gone takes a model out of the offer that the server says it does not have, until it has been asked again.
func (s *Server) gone(name string) {
	for {
		before := s.now.Load()
		i := slices.IndexFunc(before.models, func(m *models.Model) bool { return m.Name == name })
		if i < 0 {
			return
		}
		after := *before
		after.models = slices.Delete(slices.Clone(before.models), i, i+1)
		if s.now.CompareAndSwap(before, &after) {
			s.told()
			return
		}
	}
}

// Run asks the server from time to time, until ctx ends. After that it offers nothing.
func (s *Server) Run(ctx context.Context) error {
	if s.running.Swap(true) {
		return fault.Bug("remote: Run is called twice")
	}
	defer s.http.CloseIdleConnections()
	defer func() { s.offer(&offer{}) }()
	wait, first := firstWait, true
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.failed:
			wait, first = firstWait, false
			s.cfg.Log.Warn("a server elsewhere does not answer", "remote", s.cfg.Name)
			timer.Reset(jitter(wait))
			continue
		case <-timer.C:
		}
		before := s.now.Load()
		o, err := s.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if before.well || first {
				s.cfg.Log.Warn("a server elsewhere is not well", "remote", s.cfg.Name, "error", err)
			}
			s.offer(&offer{})
			timer.Reset(jitter(wait))
			wait = min(2*wait, maxWait)
		default:
			if !before.well {
				s.cfg.Log.Info("a server elsewhere is well", "remote", s.cfg.Name, "models", len(o.models))
			}
			s.publish(before, o)
			wait = firstWait
			timer.Reset(jitter(s.cfg.Every))
		}
		first = false
	}
}

// publish offers what the server answered, unless a request failed on it in the meantime: then it is asked again first.
func (s *Server) publish(before, o *offer) {
	same := before.well && slices.EqualFunc(before.models, o.models, sameModel)
	if same {
		o.models = before.models // nobody shall think that they changed
	}
	if s.now.CompareAndSwap(before, o) && !same {
		s.told()
	}
}

func sameModel(a, b *models.Model) bool {
	return a.Name == b.Name && a.Digest == b.Digest && a.Facts.ContextLength == b.Facts.ContextLength && slices.Equal(a.Capabilities(), b.Capabilities())
}

// jitter is about d: several servers, and several gateways, must not ask all at once.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + time.Duration(rand.Int64N(int64(d)/5+1))
}
