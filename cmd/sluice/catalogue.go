package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
)

// catalogue is models.yaml as it is now: SIGHUP replaces it.
type catalogue struct {
	current atomic.Pointer[models.Catalogue]
}

func (c *catalogue) now() models.Catalogue { return *c.current.Load() }

func (c *catalogue) set(to models.Catalogue) { c.current.Store(&to) }

// loadCatalogue reads the operator's catalogue, else the built-in one.
func loadCatalogue(path string) (models.Catalogue, error) {
	if path != "" {
		return models.LoadCatalogue(path)
	}
	return models.ParseCatalogue("models.yaml", sluice.Catalogue)
}

// settings are how a model is served, for the scheduler. A model that the catalogue does not name has none of its own.
func (c *catalogue) settings(m *models.Model) scheduler.Settings {
	now := c.now()
	e := now.Entry(m.Name)
	if e == nil {
		return scheduler.Settings{}
	}
	out := scheduler.Settings{NumCtx: e.NumCtx, Parallel: e.Parallel, Pin: e.Pin, Devices: slices.Clone(e.Devices), Replicas: e.Replicas}
	if e.KeepAlive != nil {
		keep := time.Duration(*e.KeepAlive)
		out.KeepAlive = &keep
	}
	return out
}

// memory says what a model can have here at most, in bytes: main memory or all GPUs together, whichever is more, and no more
// than limits.memory (0: not set). 0 when nothing is known.
func memory(ctx context.Context, inventory scheduler.Inventory, limit uint64) uint64 {
	devices, _ := inventory.Devices(ctx) // an error beside devices is about numbers of now, not about totals
	var main, gpus uint64
	for _, d := range devices {
		switch {
		case d.ID == runner.CPU:
			main = d.TotalBytes
		case !d.Integrated: // it has no memory of its own
			gpus += d.TotalBytes
		}
	}
	most := max(main, gpus)
	if limit > 0 && (most == 0 || limit < most) {
		return limit
	}
	return most
}
