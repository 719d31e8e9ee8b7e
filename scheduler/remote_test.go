package scheduler

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
)

// fakeRemote is a server elsewhere of which only what the scheduler sees is there.
type fakeRemote struct {
	name    string
	slots   int
	note    func(string, ...any)
	changes chan struct{}

	mu     sync.Mutex
	models []*models.Model
	well   bool
	fails  int  // so many requests
	late   bool // after the first byte
}

func (r *fakeRemote) Name() string             { return r.name }
func (r *fakeRemote) Slots() int               { return r.slots }
func (r *fakeRemote) Changes() <-chan struct{} { return r.changes }

func (r *fakeRemote) Models() []*models.Model {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.well {
		return nil
	}
	return r.models
}

func (r *fakeRemote) Runner(m *models.Model) Runner { return &fakeAway{remote: r, model: m} }

func (r *fakeRemote) Failed(err error) {
	r.note("%s is told: %s", r.name, publicText(err))
	r.set(false)
}

func (r *fakeRemote) set(well bool) {
	r.mu.Lock()
	r.well = well
	r.mu.Unlock()
	select {
	case r.changes <- struct{}{}:
	default:
	}
}

func (r *fakeRemote) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// fakeAway is a model on it.
type fakeAway struct {
	Runner
	remote *fakeRemote
	model  *models.Model
}

func (a *fakeAway) Load(context.Context, runner.LoadRequest, func(float32)) (runner.LoadReport, error) {
	return runner.LoadReport{Backend: "openai", Chats: true, Parallel: a.remote.slots, NumCtx: 8192}, nil
}

func (a *fakeAway) Generate(_ context.Context, _ runner.GenerateRequest, emit func(runner.Chunk) error) error {
	a.remote.mu.Lock()
	fails, late := a.remote.fails > 0, a.remote.late
	if fails {
		a.remote.fails--
	}
	a.remote.mu.Unlock()
	if !fails || late {
		if err := emit(runner.Chunk{Text: a.remote.name}); err != nil {
			return err
		}
	}
	if fails {
		return fault.New(fault.Busy, "fake", "the server does not answer")
	}
	return emit(runner.Chunk{Done: true})
}

// Generate of a runner here answers with its name.
func (f *fake) Generate(_ context.Context, _ runner.GenerateRequest, emit func(runner.Chunk) error) error {
	return emit(runner.Chunk{Text: f.name + " here", Done: true})
}

// elsewhere does the commands of servers elsewhere.
func (s *scenario) elsewhere(t *testing.T, d *datadriven.TestData, command string, args []string, opts map[string]string) bool {
	switch command {
	case "use":
		s.mu.Lock()
		lease := s.leases[args[0]]
		s.mu.Unlock()
		go func() {
			text := ""
			what := Completion{Prompt: "p"}
			if opts["chat"] != "" { // that nobody has rendered
				what = Completion{Chat: &runner.Chat{}}
			}
			err := lease.Generate(context.Background(), what, func(c runner.Chunk) error { text += c.Text; return nil })
			if err != nil {
				s.note("use %s: %q, then %s", args[0], text, publicText(err))
				return
			}
			s.note("use %s: %q", args[0], text)
		}()
		return true
	case "remote":
	default:
		return false
	}
	if opts["models"] != "" {
		slots, err := strconv.Atoi(cmp.Or(opts["slots"], "1"))
		if err != nil {
			d.Fatalf(t, "slots: %v", err)
		}
		r := &fakeRemote{name: args[0], slots: slots, note: s.note, changes: make(chan struct{}, 1), well: true}
		for _, name := range strings.Split(opts["models"], ",") {
			r.models = append(r.models, &models.Model{Name: name})
		}
		s.finish()
		s.remotes = append(s.remotes, r)
		return true
	}
	for _, r := range s.remotes {
		if r.name != args[0] {
			continue
		}
		switch args[1] {
		case "up", "down":
			r.set(args[1] == "up")
		case "fails", "breaks":
			r.mu.Lock()
			r.fails, r.late = 1, args[1] == "breaks"
			r.mu.Unlock()
		}
	}
	return true
}
