package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollama/ollama/types/model"

	"sluice/fault"
	"sluice/models"
)

// Config of a Client. Zero fields take the defaults named.
type Config struct {
	Store    *models.Store // required
	Hosts    []string      // registries that may be asked, the first one for names without a host; empty: none
	Insecure []string      // of them, those that are spoken to by plain HTTP when a request allows it
	HTTP     *http.Client  // its Transport is used, an *http.Transport; default: one with sane limits

	Credentials map[string]Credential // by host; none: anonymous

	PartBytes int64         // of a part of a blob; default 64 MiB
	Parallel  int           // parts that are fetched at a time from one registry, over all pulls; default 8
	Tries     int           // in a row without a byte, before a pull gives up; default 6
	Backoff   time.Duration // before the second try, doubled for each further one up to half a minute; default 500 ms
	Stall     time.Duration // without a byte, before a connection is given up; default 30 s
}

// Credential is what a registry wants to know. Either a user and a password, or a token that is sent as it is.
type Credential struct {
	User, Password string
	Token          string
}

// String keeps the secret out of messages.
func (Credential) String() string { return "[credential]" }

// GoString keeps the secret out of messages.
func (Credential) GoString() string { return "[credential]" }

// LogValue keeps the secret out of logs.
func (Credential) LogValue() slog.Value { return slog.StringValue("[credential]") }

// Client gets and puts models. It is safe for concurrent use: pulls of one model share the work.
type Client struct {
	cfg Config

	inside  http.RoundTripper // to a registry itself: where it is was the operator's choice
	here    http.RoundTripper // to where a registry on this machine sends us
	nearby  http.RoundTripper // to where one on a private address sends us: not to this machine
	outside http.RoundTripper // to where a public registry sends us: public addresses only
	proxy   func(*http.Request) bool

	mu      sync.Mutex
	flights map[string]*flight       // by digest
	slots   map[string]chan struct{} // by registry: a slow one must not hold up the others

	// what tests replace
	sleep  func(context.Context, time.Duration) error
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	free   func(dir string) (uint64, error)
	at     func(point string)
	note   time.Duration // between two journals of a blob
}

// New validates the configuration.
func New(cfg Config) (*Client, error) {
	var errs []error
	if cfg.Store == nil {
		errs = append(errs, errors.New("Config.Store is required"))
	}
	for _, h := range append(slices.Clone(cfg.Hosts), cfg.Insecure...) {
		if !validHost(h) {
			errs = append(errs, fmt.Errorf("%q is not a host", h))
		}
	}
	for h, c := range cfg.Credentials {
		if !listed(cfg.Hosts, h) {
			errs = append(errs, fmt.Errorf("there is a credential for %q, which is no registry of Config.Hosts", h))
		}
		if (c.Token == "") == (c.User == "") {
			errs = append(errs, fmt.Errorf("the credential for %q must have either a user or a token", h))
		}
	}
	if cfg.PartBytes < 0 || cfg.Parallel < 0 || cfg.Tries < 0 || cfg.Backoff < 0 || cfg.Stall < 0 {
		errs = append(errs, errors.New("PartBytes, Parallel, Tries, Backoff and Stall must not be negative"))
	}
	base := http.DefaultTransport.(*http.Transport)
	if cfg.HTTP != nil && cfg.HTTP.Transport != nil {
		t, ok := cfg.HTTP.Transport.(*http.Transport)
		if !ok {
			errs = append(errs, errors.New("Config.HTTP.Transport must be an *http.Transport"))
		} else {
			base = t
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	cfg = cfg.withDefaults()
	c := &Client{
		cfg: cfg, slots: map[string]chan struct{}{}, flights: map[string]*flight{},
		sleep: sleep, free: freeBytes, at: func(string) {}, note: noteEvery,
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	}
	c.transports(base)
	return c, nil
}

func (c *Client) slotsOf(host string) chan struct{} {
	host = strings.ToLower(host) // one of Config.Hosts
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slots[host] == nil {
		c.slots[host] = make(chan struct{}, c.cfg.Parallel)
	}
	return c.slots[host]
}

func (cfg Config) withDefaults() Config {
	if cfg.PartBytes == 0 {
		cfg.PartBytes = 64 << 20
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 8
	}
	if cfg.Tries == 0 {
		cfg.Tries = 6
	}
	if cfg.Backoff == 0 {
		cfg.Backoff = 500 * time.Millisecond
	}
	if cfg.Stall == 0 {
		cfg.Stall = 30 * time.Second
	}
	return cfg
}

// Transfer is a request to get or put a model.
type Transfer struct {
	Name     string // as clients write it, and as it is stored
	Source   string // where it is in a registry; "": the same name
	Insecure bool   // plain HTTP is allowed, to loopback and to hosts of Config.Insecure
}

// remote finds where a model is, and whether that place may be asked.
func (c *Client) remote(t Transfer) (*remote, error) {
	const op = "registry.remote"
	if local := model.ParseName(t.Name); !local.IsValid() {
		return nil, fault.New(fault.Invalid, op, "invalid model name")
	}
	source := t.Source
	if source == "" {
		source = t.Name
	}
	n := model.ParseNameBare(source)
	if n.Host == "" && len(c.cfg.Hosts) > 0 {
		n.Host = c.cfg.Hosts[0]
	}
	scheme := n.ProtocolScheme
	n = model.Merge(n, model.DefaultName())
	if !n.IsValid() || scheme != "" && scheme != "http" && scheme != "https" {
		return nil, fault.New(fault.Invalid, op, "invalid model name")
	}
	if !listed(c.cfg.Hosts, n.Host) {
		e := fault.New(fault.Denied, op, "the registry %s is not allowed", n.Host)
		e.Hint = "add it to registries in sluice.yaml or models.yaml"
		return nil, e
	}
	plain := loopbackHost(n.Host) || listed(c.cfg.Insecure, n.Host)
	switch {
	case scheme == "http" && !t.Insecure:
		return nil, fault.New(fault.Invalid, op, "insecure protocol http: the request must allow it with insecure")
	case scheme == "http" && !plain:
		return nil, fault.New(fault.Denied, op, "plain HTTP to the registry %s is not allowed, since it is neither on this machine nor listed as insecure", n.Host)
	case scheme != "https" && t.Insecure && plain:
		scheme = "http"
	default:
		scheme = "https"
	}
	return newRemote(c, scheme, n), nil
}

func listed(hosts []string, host string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

func validHost(host string) bool {
	n := model.ParseName(host + "/library/x")
	return n.IsValid() && n.Host == host
}

// loopbackHost tells whether a host, with or without a port, is this machine by its mere name.
func loopbackHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && a.Unmap().IsLoopback()
}
