package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"

	"sluice/fault"
	"sluice/models/registry"
)

// Registry gets and puts models; *registry.Client is one.
type Registry interface {
	// Pull gets a model; ctx is of this caller only, others who pull the same model go on. tell is called by one goroutine at a
	// time, and says its last line again while nothing happens: proxies and clients take a silent stream for dead.
	Pull(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error
	// Push puts an installed model into a registry.
	Push(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error
}

type transferRequest struct {
	nameField
	Insecure bool  `json:"insecure"`
	Stream   *bool `json:"stream"`
}

func (s *server) pull(c *gin.Context) {
	s.transfer(c, func(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error {
		if n := model.ParseName(t.Name); n.IsValid() && !mayUse(principal(c), n.DisplayShortest()) {
			return fault.New(fault.Denied, "gateway.pull", "this key is narrowed to some models, and %s is not one of them", printable(t.Name, 200))
		}
		if err := notReserved(t.Name); err != nil {
			return err
		}
		return s.audited(c, "model.pull", map[string]any{"model": t.Name, "insecure": t.Insecure}, func() error {
			if err := s.cfg.Registry.Pull(ctx, t, tell); err != nil {
				return err
			}
			return s.retire(ctx, t.Name)
		})
	})
}

func (s *server) push(c *gin.Context) {
	s.transfer(c, func(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error {
		m, err := s.model(c, t.Name) // pushing a model gives it away: only who may use it may
		if err != nil {
			return err
		}
		t.Name = m.Name
		return s.audited(c, "model.push", map[string]any{"model": t.Name, "insecure": t.Insecure}, func() error { return s.cfg.Registry.Push(ctx, t, tell) })
	})
}

// transfer answers a pull or a push. The work is bound to the request: who leaves waits for it no longer.
func (s *server) transfer(c *gin.Context, work func(context.Context, registry.Transfer, func(api.ProgressResponse)) error) {
	var req transferRequest
	err := decode(c, &req)
	switch {
	case err != nil:
	case req.name() == "":
		err = fault.New(fault.Invalid, "gateway.transfer", "model is required")
	case s.cfg.Registry == nil:
		err = &fault.Error{Code: fault.Unimplemented, Op: "gateway.transfer", Msg: "this server neither pulls nor pushes models: it has no registry",
			Hint: "put the model into the models folder, or make it with /api/blobs and /api/create"}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	t := registry.Transfer{Name: req.name(), Insecure: req.Insecure}
	if req.Stream != nil && !*req.Stream {
		if err := work(c.Request.Context(), t, nil); err != nil {
			s.fail(c, err)
			return
		}
		writeJSON(c, http.StatusOK, api.ProgressResponse{Status: success})
		return
	}
	out := &ndjson{s: s, c: c}
	err = func() (err error) {
		defer s.catch(c, &err)
		return work(c.Request.Context(), t, func(line api.ProgressResponse) {
			if line.Status == success {
				return // said at the very end: there is more to do than the registry knows of
			}
			if err := out.line(line); err != nil {
				noteFailure(c, err) // the request's context ends the work
			}
		})
	}()
	if err == nil {
		err = out.line(api.ProgressResponse{Status: success})
	}
	if err != nil {
		out.fail(err)
	}
}

// success is the last line of all work that is told of.
const success = "success"

// retire lets go what is loaded under a name that now means other files: it would go on answering as the old model. Whoever
// asked has what they asked for, so that their leaving does not keep it.
func (s *server) retire(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	now, err := s.cfg.Models.Get(name)
	if err != nil {
		return err
	}
	loaded, err := s.cfg.Scheduler.Loaded(ctx)
	if err != nil {
		return err
	}
	for _, l := range loaded {
		if l.Remote == "" && l.Model.Name == now.Name && l.Model.Digest != now.Digest {
			if err := s.cfg.Scheduler.Unload(ctx, l.Model); err != nil {
				return err
			}
		}
	}
	return nil
}
