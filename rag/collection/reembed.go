package collection

import (
	"context"
	"time"

	"sluice/fault"
)

// Run follows the configured model until ctx ends: when its name or its version is not that of a collection's vectors, all its
// chunks are embedded anew into a space beside the active one, which takes over when it is whole. What was embedded before a
// kill is not embedded again.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.Look)
	defer tick.Stop()
	for {
		if err := s.follow(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("vectors are not brought up to date now; it is tried again", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-s.kick:
		}
	}
}

// follow brings every collection up to date once. A model that is not installed changes nothing.
func (s *Service) follow(ctx context.Context) error {
	all, err := s.cfg.Store.Collections(ctx)
	if err != nil {
		return err
	}
	digest, err := s.cfg.Embedder.Digest(ctx, s.cfg.Model)
	if err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			return nil
		}
		return err
	}
	var first error
	for _, c := range all {
		if c.Active == nil || c.Next == nil && c.Active.same(s.cfg.Model, digest) {
			continue
		}
		if err := s.rebuild(ctx, c, digest); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if fault.CodeOf(err) == fault.NotFound {
				continue // the collection was deleted meanwhile
			}
			s.cfg.Log.Warn("a collection's vectors could not be made anew", "collection", c.Name, "error", err.Error())
			if first == nil {
				first = err
			}
		}
	}
	return first
}

// rebuild fills the space of the model as it is now.
func (s *Service) rebuild(ctx context.Context, c Collection, digest string) error {
	space := c.Next
	if !space.same(s.cfg.Model, digest) {
		if c.Active.same(s.cfg.Model, digest) { // the old model came back while another one's space was filled
			return s.giveUp(ctx, c)
		}
		begun, err := s.begin(ctx, c, digest)
		if err != nil {
			return err
		}
		space = &begun
	}
	start := s.cfg.Now()
	for {
		missing, err := s.cfg.Store.Missing(ctx, c.ID, *space, batch)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			whole, err := s.cfg.Store.Promote(ctx, c.ID, *space)
			if err != nil {
				return err
			}
			if whole {
				s.cfg.Log.Info("a collection has vectors of another model", "collection", c.Name, "model", space.Model, "chunks", c.Chunks, "took", s.cfg.Now().Sub(start).String())
				return nil
			}
			continue // something was added just now
		}
		texts := make([]string, len(missing))
		for i, p := range missing {
			texts[i] = asEmbedded(p.Title, p.Heading, p.Text)
		}
		got, err := s.embed(ctx, s.cfg.Model, texts)
		if err != nil {
			return err
		}
		if got.digest != space.Digest {
			return &fault.Error{Code: fault.Busy, Op: "collection.rebuild", Msg: "the embedding model was replaced again"}
		}
		vectors := make([]Vector, len(missing))
		for i, p := range missing {
			vectors[i] = Vector{p.ID, got.vectors[i]}
		}
		if err := s.cfg.Store.Fill(ctx, c.ID, *space, vectors); err != nil {
			return err
		}
	}
}

// begin makes the space. How many numbers its vectors have, only a vector tells.
func (s *Service) begin(ctx context.Context, c Collection, digest string) (Space, error) {
	got, err := s.embed(ctx, s.cfg.Model, []string{c.Name})
	if err != nil {
		return Space{}, err
	}
	if got.digest != digest {
		return Space{}, &fault.Error{Code: fault.Busy, Op: "collection.rebuild", Msg: "the embedding model was replaced again"}
	}
	s.cfg.Log.Info("a collection's vectors are made anew", "collection", c.Name, "from", c.Active.Model, "to", s.cfg.Model, "chunks", c.Chunks)
	return s.cfg.Store.Begin(ctx, c.ID, Space{Model: s.cfg.Model, Digest: digest, Dims: len(got.vectors[0])})
}

// giveUp fills what the active space lacks, the documents that were added meanwhile, by beginning one like it. It costs
// embedding all again, and happens only when somebody goes back to an older model before the newer one's vectors are whole.
func (s *Service) giveUp(ctx context.Context, c Collection) error {
	begun, err := s.cfg.Store.Begin(ctx, c.ID, Space{Model: c.Active.Model, Digest: c.Active.Digest, Dims: c.Active.Dims})
	if err != nil {
		return err
	}
	c.Next = &begun
	return s.rebuild(ctx, c, begun.Digest)
}
