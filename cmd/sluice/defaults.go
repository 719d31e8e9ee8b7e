package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/gateway"
	"sluice/models"
	"sluice/models/registry"
)

// Between two tries of a pull that failed.
const (
	firstRetry = 30 * time.Second
	lastRetry  = 30 * time.Minute
)

// defaultPuller gets the default models of `serve --pull-defaults`: of each role that has none installed, the first of the
// catalogue that fits the machine.
type defaultPuller struct {
	catalogue func() models.Catalogue
	installed func(name string) bool
	registry  gateway.Registry
	memory    func(context.Context) uint64
	log       *slog.Logger

	mu    sync.Mutex
	state map[string]string // of a model that is on its way, or could not be had: what /readyz tells
}

// Run pulls until all of them are there, and tries what fails again for as long as ctx lives.
func (d *defaultPuller) Run(ctx context.Context) {
	wait := firstRetry
	for {
		missing := d.missing(ctx)
		d.forget(missing)
		if len(missing) == 0 {
			d.log.Info("the default models are there")
			return
		}
		again := time.Duration(0)
		for _, e := range missing {
			d.note(e.Name, "is waiting to be pulled")
		}
		for _, e := range missing {
			if err := d.pull(ctx, e); ctx.Err() != nil {
				return
			} else if err != nil {
				again = max(again, cmp.Or(wait, firstRetry), retryAfter(err))
				d.failed(e, err, again)
			}
		}
		if again == 0 {
			continue // all came: look once more, as the catalogue may have changed
		}
		wait = min(2*wait, lastRetry)
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// missing are the models to get, each once, in the order of the roles.
func (d *defaultPuller) missing(ctx context.Context) (out []models.Entry) {
	c, memory := d.catalogue(), d.memory(ctx)
	for _, role := range []string{models.RoleChat, models.RoleSQL, models.RoleEmbed} {
		name, entry := c.Default(role, d.installed, memory)
		if name != "" || entry == nil || slices.ContainsFunc(out, func(e models.Entry) bool { return e.Name == entry.Name }) {
			continue
		}
		out = append(out, *entry)
	}
	return out
}

// pull gets one model and logs every tenth part.
func (d *defaultPuller) pull(ctx context.Context, e models.Entry) error {
	d.log.Info("pulling a default model", "model", e.Name, "size", e.Size.String())
	d.note(e.Name, "is being pulled")
	start, told := time.Now(), int64(0)
	done, total := map[string]int64{}, map[string]int64{}
	err := d.registry.Pull(ctx, registry.Transfer{Name: e.Name}, func(p api.ProgressResponse) {
		if p.Digest == "" || p.Total <= 0 {
			return
		}
		done[p.Digest], total[p.Digest] = p.Completed, p.Total
		have, all := sum(done), max(sum(total), int64(e.Size)) // layers become known one by one
		percent := have * 100 / all
		d.note(e.Name, fmt.Sprintf("is being pulled: %d %%", percent))
		if percent >= told+10 {
			told = percent
			d.log.Info("pulling a default model", "model", e.Name, "percent", percent, "bytes", have)
		}
	})
	if err == nil && !d.installed(e.Name) {
		err = fault.New(fault.Internal, "defaults", "%s was pulled, but it cannot be read", e.Name)
	}
	if err == nil {
		d.note(e.Name, "")
		d.log.Info("a default model is there", "model", e.Name, "took", time.Since(start).Round(time.Second).String())
	}
	return err
}

func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

func (d *defaultPuller) failed(e models.Entry, err error, again time.Duration) {
	d.log.Error("a default model could not be pulled", "model", e.Name, "error", describe(err), "what to do", remedy(err), "tried again in", again.String())
	d.note(e.Name, fmt.Sprintf("could not be pulled: %s; it is tried again", fault.Public(err).Msg))
}

// remedy says what an operator can do about a pull that failed.
func remedy(err error) string {
	switch fault.CodeOf(err) {
	case fault.Denied:
		return "name its host in the registries of the catalogue (models.yaml), or give the model another source there"
	case fault.NotFound, fault.Invalid:
		return "correct its source in the catalogue (models.yaml)"
	case fault.Busy:
		return "see that this machine reaches the registry, or get the model another way: sluice create NAME --from FILE.gguf"
	}
	return "see the error; or get the model another way: sluice create NAME --from FILE.gguf"
}

// retryAfter is what the registry asked to wait.
func retryAfter(err error) time.Duration {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.RetryAfter
	}
	return 0
}

// note sets what there is to tell of a model; "": nothing any more.
func (d *defaultPuller) note(name, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == nil {
		d.state = map[string]string{}
	}
	if d.state[name] = what; what == "" {
		delete(d.state, name)
	}
}

// forget drops what is not missing any more.
func (d *defaultPuller) forget(missing []models.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.state, func(name, _ string) bool {
		return !slices.ContainsFunc(missing, func(e models.Entry) bool { return e.Name == name })
	})
}

// Warnings are for /readyz. A nil puller has none.
func (d *defaultPuller) Warnings() (out []string) {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.state)) {
		out = append(out, "the default model "+name+" "+d.state[name])
	}
	return out
}
