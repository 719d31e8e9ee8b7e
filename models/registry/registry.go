package registry

import (
	"context"
	"errors"
	"net/http"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
)

// Config of a Client. Zero fields take the defaults named.
type Config struct {
	Store    *models.Store // required
	Hosts    []string      // registries that may be asked, the first one for names without a host; empty: none
	Insecure []string      // of them, those that are spoken to by plain HTTP when a request allows it
	HTTP     *http.Client  // default: one with sane limits
}

// Client gets and puts models. It is safe for concurrent use: pulls of one model share the work.
type Client struct{ cfg Config }

// New validates the configuration.
func New(cfg Config) (*Client, error) {
	if cfg.Store == nil {
		return nil, errors.New("registry: Config.Store is required")
	}
	return &Client{cfg: cfg}, nil
}

// Transfer is a request to get or put a model.
type Transfer struct {
	Name     string // as clients write it, and as it is stored
	Source   string // where it is in a registry; "": the same name
	Insecure bool   // plain HTTP is allowed, to loopback and to hosts of Config.Insecure
}

// Pull gets a model: nothing of it is seen before all of it is there and verified. tell gets Ollama's progress lines, and may be nil.
// Denied for a host that is not in Config.Hosts, NotFound when the registry has no such model, Busy with RetryAfter when it cannot be
// reached; what was fetched is kept, and the next Pull goes on from there.
func (c *Client) Pull(ctx context.Context, t Transfer, tell func(api.ProgressResponse)) error {
	return fault.New(fault.Unimplemented, "registry.Pull", "pulling is not part of this version")
}

// Push puts a model into a registry. tell gets Ollama's progress lines, and may be nil.
func (c *Client) Push(ctx context.Context, t Transfer, tell func(api.ProgressResponse)) error {
	return fault.New(fault.Unimplemented, "registry.Push", "pushing is not part of this version")
}
