package remote

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The kinds of servers.
const (
	OpenAI = "openai" // vLLM, SGLang, llama-server, another Sluice …
	Ollama = "ollama" // Ollama, another Sluice
)

// Config of a Server. Zero fields take the defaults named.
type Config struct {
	Name   string   // required: what it is called here
	Kind   string   // required: OpenAI or Ollama
	URL    string   // required: http://host:port, or https; a path in front of /v1 or /api may follow
	Key    string   // bearer; "" none
	Models []string // that it is asked for; empty: all that it lists
	Slots  int      // requests that it is given at a time; default 8

	Every     time.Duration // between two questions whether it is well; default 10s
	FirstByte time.Duration // for the first byte of an answer: it may have to load a model; default 5m
	Idle      time.Duration // between two pieces of an answer; default 2m
	Transport http.RoundTripper
	Log       *slog.Logger // default slog.Default()
}

func (c Config) withDefaults() Config {
	if c.Slots == 0 {
		c.Slots = 8
	}
	for field, value := range map[*time.Duration]time.Duration{&c.Every: 10 * time.Second, &c.FirstByte: 5 * time.Minute, &c.Idle: 2 * time.Minute} {
		if *field == 0 {
			*field = value
		}
	}
	if c.Transport == nil {
		c.Transport = transport(c.Slots)
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// transport is one of the server's own: its connections end with it. It looks for no proxy: a server is where its URL says.
func transport(slots int) *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxIdleConnsPerHost:    slots + 1,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small body could become a large one
	}
}

func (c Config) validate() (*url.URL, error) {
	var errs []error
	if c.Name == "" {
		errs = append(errs, errors.New("Name is required"))
	}
	if !slices.Contains([]string{OpenAI, Ollama}, c.Kind) {
		errs = append(errs, fmt.Errorf("Kind %q is neither %s nor %s", c.Kind, OpenAI, Ollama))
	}
	base, err := url.Parse(strings.TrimRight(c.URL, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		errs = append(errs, errors.New("URL must be http://host:port or https://host, without a password or a query in it")) // not repeated: it may hold one
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r < ' ' || r > '~' }) {
		errs = append(errs, errors.New("Key has a line break in it, or another character that no key has"))
	}
	if c.Slots < 0 {
		errs = append(errs, errors.New("Slots must not be negative"))
	}
	for name, d := range map[string]time.Duration{"Every": c.Every, "FirstByte": c.FirstByte, "Idle": c.Idle} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative", name))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for _, api := range []string{"/v1", "/api"} { // people paste what an SDK wants
		base.Path = strings.TrimSuffix(base.Path, api)
	}
	return base, nil
}
