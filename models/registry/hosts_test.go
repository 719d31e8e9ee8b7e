package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/registrytest"
)

func TestWhichRegistriesAreAsked(t *testing.T) {
	store := openStore(t, t.TempDir())
	cfg := Config{Store: store, Hosts: []string{"registry.ollama.ai", "localhost:5000", "10.1.2.3:5000", "hub.example.com"}, Insecure: []string{"10.1.2.3:5000"}}
	cases := map[string]struct {
		cfg  Config
		t    Transfer
		want string // the URL of the manifest
		code fault.Code
		text string
	}{
		"no host":                         {cfg, Transfer{Name: "m"}, "https://registry.ollama.ai/v2/library/m/manifests/latest", 0, ""},
		"no host, insecure, but public":   {cfg, Transfer{Name: "m", Insecure: true}, "https://registry.ollama.ai/v2/library/m/manifests/latest", 0, ""},
		"a source":                        {cfg, Transfer{Name: "m", Source: "localhost:5000/x/y:z"}, "https://localhost:5000/v2/x/y/manifests/z", 0, ""},
		"loopback, insecure":              {cfg, Transfer{Name: "localhost:5000/x/y", Insecure: true}, "http://localhost:5000/v2/x/y/manifests/latest", 0, ""},
		"loopback by http":                {cfg, Transfer{Name: "http://localhost:5000/x/y", Insecure: true}, "http://localhost:5000/v2/x/y/manifests/latest", 0, ""},
		"TLS although insecure":           {cfg, Transfer{Name: "https://localhost:5000/x/y", Insecure: true}, "https://localhost:5000/v2/x/y/manifests/latest", 0, ""},
		"an insecure one of the list":     {cfg, Transfer{Name: "10.1.2.3:5000/x/y", Insecure: true}, "http://10.1.2.3:5000/v2/x/y/manifests/latest", 0, ""},
		"which is not asked for":          {cfg, Transfer{Name: "10.1.2.3:5000/x/y"}, "https://10.1.2.3:5000/v2/x/y/manifests/latest", 0, ""},
		"any case":                        {cfg, Transfer{Name: "HUB.example.com/x/y"}, "https://HUB.example.com/v2/x/y/manifests/latest", 0, ""},
		"http that is not asked for":      {cfg, Transfer{Name: "http://localhost:5000/x/y"}, "", fault.Invalid, "insecure"},
		"http to a public one":            {cfg, Transfer{Name: "http://hub.example.com/x/y", Insecure: true}, "", fault.Denied, "plain HTTP"},
		"another scheme":                  {cfg, Transfer{Name: "file://localhost:5000/x/y"}, "", fault.Invalid, "invalid model name"},
		"another host":                    {cfg, Transfer{Name: "evil.example/x/y"}, "", fault.Denied, "is not allowed"},
		"another port":                    {cfg, Transfer{Name: "localhost:5001/x/y", Insecure: true}, "", fault.Denied, "localhost:5001"},
		"a host that only begins like it": {cfg, Transfer{Name: "registry.ollama.ai.evil.example/x/y"}, "", fault.Denied, "not allowed"},
		"no name":                         {cfg, Transfer{}, "", fault.Invalid, "invalid model name"},
		"a name that climbs":              {cfg, Transfer{Name: "../../etc"}, "", fault.Invalid, "invalid model name"},
		"a good source, a bad name":       {cfg, Transfer{Name: "../x", Source: "m"}, "", fault.Invalid, "invalid model name"},
		"no registries at all":            {Config{Store: store}, Transfer{Name: "m"}, "", fault.Denied, "is not allowed"},
		"the first is for bare names":     {Config{Store: store, Hosts: []string{"hub.example.com"}}, Transfer{Name: "a/m:q4"}, "https://hub.example.com/v2/a/m/manifests/q4", 0, ""},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := New(row.cfg)
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.remote(row.t)
			if row.text != "" {
				wantFault(t, err, row.code, row.text)
				var f *fault.Error
				if errors.As(err, &f); row.text == "is not allowed" && !strings.Contains(f.Hint, "registries in sluice.yaml or models.yaml") {
					t.Errorf("the hint is %q", f.Hint)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := r.url("manifests", r.tag).String(); got != row.want {
				t.Errorf("it asks %s, want %s", got, row.want)
			}
		})
	}
}

func TestNewReportsAllMistakes(t *testing.T) {
	_, err := New(Config{Hosts: []string{"a/b"}, Insecure: []string{"c d"}, Credentials: map[string]Credential{"x.example": {}}, Parallel: -1, HTTP: &http.Client{Transport: http.NewFileTransport(nil)}})
	for _, want := range []string{"Store", `"a/b"`, `"c d"`, `"x.example"`, "negative", "Transport"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	cases := map[string]struct{ public, near, here bool }{
		"203.0.113.5": {true, true, true}, "2606:4700::1": {true, true, true},
		"127.0.0.1": {false, false, true}, "::1": {false, false, true}, "10.0.0.1": {false, true, true}, "192.168.1.1": {false, true, true}, "fd00::1": {false, true, true},
		"169.254.169.254": {}, "fe80::1": {}, "0.0.0.0": {}, "::": {}, "100.64.0.1": {}, "224.0.0.1": {}, "255.255.255.255": {},
		"::ffff:169.254.169.254": {}, "64:ff9b::a9fe:a9fe": {}, "2002:7f00:1::": {},
		"::ffff:127.0.0.1": {false, false, true}, "::127.0.0.1": {}, "::10.0.0.1": {}, "::ffff:0:7f00:1": {}, "fec0::1": {}, "100::1": {}, "5f00::1": {},
		"fe80::1%eth0": {}, "::ffff:10.0.0.1%x": {false, true, true}, "2001::1": {}, "4000::1": {},
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			a := netip.MustParseAddr(text)
			if public(a) != want.public || near(a) != want.near || here(a) != want.here {
				t.Errorf("public %t, near %t, here %t", public(a), near(a), here(a))
			}
		})
	}
}

// publicly makes a registry on loopback look like one of the public internet, under the name of its certificate.
func publicly(t *testing.T, r *registrytest.Registry, addresses map[string]string) *client {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.Roots()},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			if a, err := netip.ParseAddr(host); err == nil && !public(a) {
				t.Errorf("%s was dialled", addr)
			}
			return (&net.Dialer{}).DialContext(ctx, network, r.Host)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	c := newClient(t, t.TempDir(), r, func(cfg *Config) {
		cfg.Hosts = []string{"example.com"}
		cfg.HTTP = &http.Client{Transport: transport}
		cfg.Credentials = map[string]Credential{"example.com": {User: "me", Password: "hunter2"}}
	})
	c.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		a, ok := addresses[host]
		if !ok {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return c
}

// A registry sends us elsewhere for its blobs. It may not send us into the operator's network, nor out of TLS.
func TestWhereARegistryMaySendUs(t *testing.T) {
	addresses := map[string]string{
		"example.com": "203.0.113.1", "cdn.example.com": "203.0.113.2", "inner.example.com": "10.0.0.7", "meta.example.com": "169.254.169.254", "me.example.com": "127.0.0.1",
	}
	cases := map[string]struct {
		to   string // the path is added
		code fault.Code
		text string
	}{
		"to a storage server":             {to: "https://cdn.example.com"},
		"to itself":                       {to: "https://example.com"},
		"out of TLS":                      {"http://cdn.example.com", fault.Denied, "without TLS"},
		"out of TLS, on the same host":    {"http://example.com", fault.Denied, "without TLS"},
		"to a private address":            {"https://10.0.0.7", fault.Denied, "not on the public internet"},
		"to a name of one":                {"https://inner.example.com", fault.Denied, "not on the public internet"},
		"to this machine":                 {"https://127.0.0.1:8080", fault.Denied, "not on the public internet"},
		"to this machine by a name":       {"https://me.example.com", fault.Denied, "not on the public internet"},
		"to where clouds keep their keys": {"https://meta.example.com", fault.Denied, "not on the public internet"},
		"to a file":                       {"file:///etc/passwd", fault.Denied, "without TLS"},
		"to a name that nobody has":       {"https://nobody.example.com", fault.Busy, "its name is not known"},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRegistry(t, registrytest.Options{TLS: true, Login: &registrytest.Login{User: "me", Password: "hunter2", Basic: true}})
			seed(t, r, "m", gguf(t, 100_000, 5), "")
			r.Add(registrytest.Fault{Do: registrytest.Instead, Path: "/blobs/", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Query().Get("there") == "" {
					http.Redirect(w, q, row.to+q.URL.Path+"?there=yes", http.StatusTemporaryRedirect)
					return
				}
				r.Handler().ServeHTTP(w, q)
			})})
			c := publicly(t, r, addresses)
			if row.text == "" && strings.Contains(row.to, "cdn") {
				// The storage server wants no login, and must not be given one.
				c.strangers(t, r)
			}
			err := c.pull(t.Context(), "m")
			if row.text != "" {
				wantFault(t, err, row.code, row.text)
				if strings.Contains(fmt.Sprint(err), "there=yes") {
					t.Errorf("the error has the query of the URL: %v", err)
				}
				wantNothing(t, c)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantModel(t, c, r, "m")
		})
	}
}

// strangers makes requests for the storage server pass without a login, and holds that they carry none.
func (c *client) strangers(t *testing.T, r *registrytest.Registry) {
	t.Helper()
	r.Open(func(q *http.Request) bool {
		if q.Host != "cdn.example.com" {
			return false
		}
		if q.Header.Get("Authorization") != "" {
			t.Error("the storage server got a credential")
		}
		return true
	})
}

func TestAPrivateRegistryMaySendUsToItsNeighbours(t *testing.T) {
	r := seeded(t)
	storage := startRegistry(t, registrytest.Options{})
	seed(t, storage, "big", big(t), "Be brief.")
	r.Add(registrytest.Fault{Do: registrytest.Instead, Path: "/blobs/", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, storage.URL+q.URL.Path, http.StatusTemporaryRedirect)
	})})
	c := newClient(t, t.TempDir(), r, nil)
	mustPull(t, c, "big")
	wantModel(t, c, r, "big")
	if r.Sent(digestOf(bigFile)) > 10_000 || storage.Sent(digestOf(bigFile)) != int64(len(bigFile)) {
		t.Error("the bytes did not come from the storage server")
	}
}

// A registry of the house may send us to its neighbours, and not to what listens on this machine for this machine only.
func TestAPrivateRegistryMayNotSendUsToThisMachine(t *testing.T) {
	r := seeded(t)
	here := startRegistry(t, registrytest.Options{})
	seed(t, here, "big", big(t), "Be brief.")
	cases := map[string]struct{ registry, to string }{
		"by an address":         {"10.0.0.5", here.URL},
		"by a name":             {"10.0.0.5", strings.Replace(here.URL, "127.0.0.1", "localhost", 1)},
		"by another name of it": {"fd00::5", "http://alias.example:" + here.URL[strings.LastIndex(here.URL, ":")+1:]},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			rule := r.Add(registrytest.Fault{Do: registrytest.Instead, Path: "/blobs/", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				http.Redirect(w, q, row.to+q.URL.Path, http.StatusTemporaryRedirect)
			})})
			defer r.Remove(rule)
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if strings.HasPrefix(addr, "house.example") { // the registry's own address
					addr = r.Host
				}
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}}
			t.Cleanup(transport.CloseIdleConnections)
			c := newClient(t, t.TempDir(), r, func(cfg *Config) {
				cfg.Hosts = []string{"house.example"}
				cfg.Insecure = []string{"house.example", "alias.example:" + here.URL[strings.LastIndex(here.URL, ":")+1:]}
				cfg.HTTP = &http.Client{Transport: transport}
			})
			c.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
				if host == "house.example" {
					return []netip.Addr{netip.MustParseAddr(row.registry)}, nil
				}
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			wantFault(t, c.pull(t.Context(), "big"), fault.Denied, "sends us to")
			if len(here.Requests("", "")) > 0 {
				t.Error("what listens on this machine was asked")
			}
		})
	}
}

func TestAnEndlessRedirectEnds(t *testing.T) {
	r := seeded(t)
	rule := r.Add(registrytest.Fault{Do: registrytest.Instead, Path: "/blobs/", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, q.URL.Path, http.StatusTemporaryRedirect)
	})})
	c := newClient(t, t.TempDir(), r, func(cfg *Config) { cfg.Parallel = 1 })
	wantFault(t, c.pull(t.Context(), "big"), fault.Conflict, "redirects more than 10 times")
	if rule.Hits() > maxHops+1 {
		t.Errorf("it was followed %d times", rule.Hits())
	}
}

func TestPlainHTTPIsNamed(t *testing.T) {
	r := seeded(t)
	c := newClient(t, t.TempDir(), r, nil)
	wantFault(t, c.Pull(t.Context(), Transfer{Name: "big"}, nil), fault.Conflict, "speaks plain HTTP only", "insecure")
	if len(c.waits) > 0 {
		t.Error("it tried again, although that cannot help")
	}
}

func TestNobodyListens(t *testing.T) {
	r := seeded(t)
	c := newClient(t, t.TempDir(), r, func(cfg *Config) { cfg.Hosts = []string{"127.0.0.1:1"} })
	err := c.pull(t.Context(), "big")
	wantFault(t, err, fault.Busy, "127.0.0.1:1", "nothing listens there")
	if fe := (*fault.Error)(nil); !errors.As(err, &fe) || fe.RetryAfter == 0 {
		t.Error("it does not say when to try again")
	}
}
