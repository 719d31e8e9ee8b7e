package registry

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/format"

	"sluice/fault"
	"sluice/models"
)

const (
	tellEvery = 60 * time.Millisecond // progress, while bytes come
	tellIdle  = time.Second           // the same line again, while none come
)

// Pull gets a model: nothing of it is seen before all of it is there and verified. tell gets Ollama's progress lines, and may be nil.
// Denied for a host that is not in Config.Hosts, NotFound when the registry has no such model, Busy with RetryAfter when it cannot be
// reached; what was fetched is kept, and the next Pull goes on from there. Conflict with the numbers when the disk has not enough room,
// or when the registry's bytes are not what its digests say.
func (c *Client) Pull(ctx context.Context, t Transfer, tell func(api.ProgressResponse)) error {
	if tell == nil {
		tell = func(api.ProgressResponse) {}
	}
	r, err := c.remote(t)
	if err != nil {
		return err
	}
	tell(api.ProgressResponse{Status: "pulling manifest"})
	c.at("begin")
	data, blobs, err := r.manifest(ctx)
	if err != nil {
		return err
	}
	defer c.cfg.Store.Pin(blobs)()
	p := &pull{c: c, r: r, tell: tell, files: map[string]string{}}
	defer p.leave()
	if err := p.blobs(ctx, blobs); err != nil {
		return err
	}
	tell(api.ProgressResponse{Status: "writing manifest"})
	c.at("manifest")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	collected, err := c.cfg.Store.Install(t.Name, data, p.files)
	if noSpace(err) {
		return diskFault(int64(len(data)), err)
	}
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if collected {
		tell(api.ProgressResponse{Status: "removing unused layers"})
	}
	tell(api.ProgressResponse{Status: "success"})
	return nil
}

// pull is one caller's part of the work.
type pull struct {
	c       *Client
	r       *remote
	tell    func(api.ProgressResponse)
	flights []*flight
	files   map[string]string // digest to where the blob is until the model is installed
}

// blobs gets and verifies what is not there yet.
func (p *pull) blobs(ctx context.Context, blobs []models.Blob) error {
	missing := map[string]bool{}
	var wanted []models.Blob
	for _, b := range blobs {
		if !p.c.cfg.Store.Intact(b) {
			missing[b.Digest] = true
			wanted = append(wanted, b)
		}
	}
	if err := p.room(wanted); err != nil {
		return err
	}
	for _, b := range blobs {
		if !missing[b.Digest] {
			p.tell(line("pulling", b, b.Size))
			continue
		}
		f, err := p.c.join(ctx, p.r, b)
		if err != nil {
			return err
		}
		p.flights = append(p.flights, f)
		p.files[b.Digest] = f.path
		if err := p.follow(ctx, f, f.fetched); err != nil {
			return err
		}
	}
	p.tell(api.ProgressResponse{Status: "verifying sha256 digest"})
	for _, f := range p.flights {
		if err := p.follow(ctx, f, nil); err != nil {
			return err
		}
	}
	return nil
}

// follow tells the progress of a blob until it is done, or until another event.
func (p *pull) follow(ctx context.Context, f *flight, until <-chan struct{}) error {
	told, toldAt := int64(-1), time.Now()
	say := func() {
		told, toldAt = f.completed.Load(), time.Now()
		p.tell(line("pulling", f.blob, told))
	}
	if until != nil {
		say()
	} else {
		told = f.completed.Load()
	}
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-until:
			say()
			return nil
		case <-f.done:
			if f.err == nil && until != nil {
				say()
			}
			return f.err
		case <-tick.C:
			if f.completed.Load() != told { // also when a bad part is fetched again
				say()
			} else if time.Since(toldAt) >= tellIdle {
				if toldAt = time.Now(); until != nil {
					say()
				} else {
					p.tell(api.ProgressResponse{Status: "verifying sha256 digest"})
				}
			}
		}
	}
}

func (p *pull) leave() {
	for _, f := range p.flights {
		p.c.leave(f)
	}
}

// room compares what is to come with what the disk has.
func (p *pull) room(wanted []models.Blob) error {
	need := int64(0)
	for _, b := range wanted {
		need += b.Size
		if path, err := p.c.cfg.Store.PartialPath(b.Digest); err == nil {
			if fi, err := os.Stat(path); err == nil {
				need -= min(b.Size, allocated(fi))
			}
		}
	}
	free, err := p.c.free(p.c.cfg.Store.Dir())
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if need > 0 && uint64(need) > free {
		return fault.New(fault.Conflict, "registry.Pull", "not enough disk space: the model needs %s more, and the models folder has %s free",
			format.HumanBytes(need), format.HumanBytes(int64(min(free, 1<<62))))
	}
	return nil
}

func line(verb string, b models.Blob, completed int64) api.ProgressResponse {
	return api.ProgressResponse{Status: verb + " " + b.Digest[7:19], Digest: b.Digest, Total: b.Size, Completed: completed}
}
