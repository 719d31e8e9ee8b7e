package remote

import (
	"context"
	"slices"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
)

// Runner is a model of a server elsewhere. All of its methods may be called at the same time.
type Runner struct {
	s     *Server
	model *models.Model
	id    string // what the server calls it
	flavour
	done chan struct{} // never closed: the server's life is not ours
}

// Runner gives a runner of a model that the server offers, or offered.
func (s *Server) Runner(m *models.Model) *Runner {
	now := s.now.Load()
	id, ok := now.ids[m.Name]
	if !ok {
		for name, of := range now.ids { // an installed model's name may be spelled otherwise
			if models.SameName(name, m.Name) {
				id, ok = of, true
			}
		}
	}
	if !ok {
		id = m.Name // the server will say that it does not have it
	}
	return &Runner{s: s, model: m, id: id, flavour: now.flavour, done: make(chan struct{})}
}

// Load says at once what is known of the model. NumCtx is 0 where that is not known.
func (r *Runner) Load(context.Context, runner.LoadRequest, func(float32)) (runner.LoadReport, error) {
	caps := r.model.Capabilities()
	has := func(c string) bool { return slices.Contains(caps, c) }
	rep := runner.LoadReport{Backend: r.s.cfg.Kind, Parallel: r.s.cfg.Slots, Vision: has("vision"), Reranks: has("rerank"), Chats: true,
		TrainCtx: r.model.Facts.ContextLength, Embedding: r.model.Facts.EmbeddingLength, Pooled: !has("completion")}
	if r.flavour == vllm || r.flavour == sglang || r.flavour == llamacpp {
		rep.NumCtx = r.model.Facts.ContextLength // what it was started with
	}
	return rep, nil
}

// Generate answers a chat, or goes on from a text. Before the first chunk a failure may be Unavailable; after it the error is Busy. An
// error of emit, or the end of ctx, closes the connection, which ends the generation there.
func (r *Runner) Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	if req.Grammar != "" && r.flavour != sluice { // others would pass over it in silence
		return r.s.cannot("grammars are not taken")
	}
	var err error
	if r.s.cfg.Kind == Ollama {
		err = r.generateOllama(ctx, req, emit)
	} else {
		err = r.generateOpenAI(ctx, req, emit)
	}
	return r.ended(err)
}

// ended takes a model out of the offer that the server says is not there.
func (r *Runner) ended(err error) error {
	if err != nil && fault.CodeOf(err) == fault.NotFound {
		r.s.gone(r.model.Name)
	}
	return err
}

// SetThreads does nothing: the cores are the server's.
func (r *Runner) SetThreads(context.Context, int) error { return nil }

// Stop does nothing: nothing of ours runs there.
func (r *Runner) Stop(context.Context) error { return nil }

// Done is never closed.
func (r *Runner) Done() <-chan struct{} { return r.done }

// Err is nil.
func (r *Runner) Err() error { return nil }
