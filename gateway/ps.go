package gateway

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/runner"
	"sluice/scheduler"
)

// loadedModel is Ollama's entry of /api/ps with what Sluice knows besides.
type loadedModel struct {
	Name          string    `json:"name"`
	Model         string    `json:"model"`
	Size          int64     `json:"size"` // bytes in all, as allocated; while it loads, as estimated
	Digest        string    `json:"digest"`
	Details       details   `json:"details"`
	ExpiresAt     time.Time `json:"expires_at"`
	SizeVRAM      int64     `json:"size_vram"`          // of size, the bytes on GPUs
	ContextLength int       `json:"context_length"`     // tokens of one sequence
	State         string    `json:"state"`              // loading, ready, draining, stopping
	Progress      float32   `json:"progress,omitempty"` // of a load, 0 to 1
	InFlight      int       `json:"in_flight"`
	Waiting       int       `json:"waiting"`            // requests in the queue for this model
	Parallel      int       `json:"parallel,omitempty"` // requests that are computed at a time
	Backend       string    `json:"backend,omitempty"`
	Placement     []placed  `json:"placement"`
	Layers        int       `json:"layers,omitempty"` // of the model; those that placement does not name are in main memory
	Pinned        bool      `json:"pinned,omitempty"`
	Remote        string    `json:"remote,omitempty"` // name of the server elsewhere that it runs on
	Warning       string    `json:"warning,omitempty"`
}

// placed is what a model has on one device.
type placed struct {
	Device string `json:"device"`
	Layers int    `json:"layers,omitempty"` // not of main memory
	Bytes  uint64 `json:"bytes"`
}

func (s *server) ps(c *gin.Context) {
	loaded, err := s.cfg.Scheduler.Loaded(c.Request.Context())
	if err != nil {
		s.fail(c, err)
		return
	}
	list := []loadedModel{}
	for _, l := range loaded {
		if mayUse(principal(c), l.Model.Name) {
			list = append(list, s.loadedModel(l))
		}
	}
	writeJSON(c, http.StatusOK, gin.H{"models": list})
}

func (s *server) loadedModel(l scheduler.Loaded) loadedModel {
	m, all, gpu := l.Model, bytesOf(l), gpuBytesOf(l)
	if all == 0 {
		all = uint64(max(m.Size, 0)) // it has only begun to load: what is known so far
	}
	expires := l.ExpiresAt
	if expires.IsZero() {
		expires = s.now()
	}
	if farthest := time.Date(2318, 1, 1, 0, 0, 0, 0, time.UTC); expires.After(farthest) {
		expires = farthest // as Ollama; a year beyond 9999 has no JSON form
	}
	out := loadedModel{Name: m.Name, Model: m.Name, Size: int64(all), Digest: m.Digest, Details: detailsOf(m), ExpiresAt: expires,
		SizeVRAM: int64(gpu), ContextLength: l.NumCtx, State: l.State, InFlight: l.InFlight, Waiting: l.Waiting,
		Parallel: l.Report.Parallel, Backend: l.Report.Backend, Placement: placementOf(l), Layers: l.Layers,
		Pinned: l.Pinned, Remote: l.Remote, Warning: l.Warning}
	if out.ContextLength == 0 {
		out.ContextLength = l.Report.NumCtx
	}
	if l.State == "loading" {
		out.Progress = l.Progress
	}
	return out
}

func bytesOf(l scheduler.Loaded) (n uint64) {
	for _, m := range l.Memory {
		n += m.Bytes()
	}
	return n
}

// gpuBytesOf is the part of bytesOf that lies outside of main memory.
func gpuBytesOf(l scheduler.Loaded) (n uint64) {
	for _, m := range l.Memory {
		if m.Device != runner.CPU {
			n += m.Bytes()
		}
	}
	return n
}

// placementOf joins bytes and layers, device by device. Never null.
func placementOf(l scheduler.Loaded) []placed {
	out := []placed{}
	for _, m := range l.Memory {
		p := placed{Device: m.Device, Bytes: m.Bytes()}
		for _, share := range l.Placement {
			if share.Device == m.Device {
				p.Layers += share.Layers
			}
		}
		out = append(out, p)
	}
	return out
}
