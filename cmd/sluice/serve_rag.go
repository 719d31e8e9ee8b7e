package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"sluice/fault"
	"sluice/models"
	"sluice/rag/collection"
	"sluice/runner"
	"sluice/scheduler"
)

// openCollections opens the store of documents. One on a server elsewhere is connected to when it is first needed.
func (s *server) openCollections(ctx context.Context) error {
	var kept collection.Store
	var err error
	if s.cfg.Rag.Store == "embedded" {
		kept, err = collection.OpenEmbedded(ctx, filepath.Join(s.cfg.Home, "rag.duckdb"), filepath.Join(s.cfg.Home, "tmp"))
	} else {
		kept, err = collection.NewPostgres(s.cfg.Rag.Store, s.log)
	}
	if err != nil {
		return err
	}
	s.collections, err = collection.New(collection.Config{Store: kept, Model: s.cfg.Rag.EmbedModel, Log: s.log,
		Embedder: &embedder{completer{models: s.installed, scheduler: s.scheduler}}})
	return err
}

// followModel keeps the vectors of documents those of the configured model. The function that it gives ends that, and waits.
func (s *server) followModel(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.collections.Run(ctx) // it ends with ctx alone
	}()
	return func() { cancel(); <-done }
}

// tokenBudget bounds counting tokens, which is a call to the runner for each text: what is longer is estimated.
const tokenBudget = 2 * time.Second

// embedder gives collections their vectors: the scheduler's lease, as /api/embed has it.
type embedder struct{ completer }

func (e *embedder) Digest(_ context.Context, model string) (string, error) {
	m, err := e.model(model)
	if err != nil {
		return "", err
	}
	return cmp.Or(m.Digest, "elsewhere"), nil // a server elsewhere need not tell of versions
}

func (e *embedder) lease(ctx context.Context, name string) (*scheduler.Lease, *models.Model, error) {
	m, err := e.model(name)
	if err != nil {
		return nil, nil, err
	}
	opts, _, err := m.Options(nil)
	if err != nil {
		return nil, nil, err
	}
	lease, err := e.scheduler.Lease(ctx, scheduler.Want{Model: m, Options: opts})
	return lease, m, err
}

// Embed cuts what is longer than the model's context: chunks are far below it.
func (e *embedder) Embed(ctx context.Context, model string, texts []string) ([][]float32, error) {
	lease, _, err := e.lease(ctx, model)
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	res, err := lease.Embed(ctx, runner.EmbedRequest{Inputs: texts, Truncate: true})
	return res.Vectors, err
}

// Count asks the model's own tokenizer. A model elsewhere has none to ask, and a text of very many pieces would take too long:
// both are Unimplemented.
func (e *embedder) Count(ctx context.Context, model string, texts []string) ([]int, error) {
	lease, _, err := e.lease(ctx, model)
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	unknown := fault.New(fault.Unimplemented, "rag.Count", "the model's tokenizer cannot be asked")
	if lease.Remote() != "" {
		return nil, unknown
	}
	start := time.Now()
	out := make([]int, len(texts))
	for i, t := range texts {
		tokens, err := lease.Runner().Tokenize(ctx, t, false)
		if err != nil {
			return nil, err
		}
		if out[i] = len(tokens); time.Since(start) > tokenBudget {
			return nil, unknown
		}
	}
	return out, nil
}
