package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"sluice/fault"
)

// special are addresses that net/netip takes for ordinary ones and that lead elsewhere than to the public internet.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/23"), // IPv4 in IPv6; tunnels and tests
}

// public6 is all of IPv6 that has been given to anybody. What is outside of it leads into networks of before, behind translators
// (64:ff9b::/96, ::/96) or nowhere.
var public6 = netip.MustParsePrefix("2000::/3")

// public tells whether an address is on the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !public6.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// near tells whether an address may be a neighbour's: public ones and private ones, but not link-local ones, where clouds keep their
// machines' secrets, and not this machine, which is no neighbour of a registry that is not on it.
func near(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || public(a)
}

// here tells whether a registry on this machine may send us there.
func here(a netip.Addr) bool { return a.Unmap().IsLoopback() || near(a) }

// errAddress refuses an address to which a registry sends us.
func errAddress(host string) error {
	return fault.New(fault.Denied, "registry.dial", "the registry sends us to %s, which is not on the public internet", host)
}

// transports makes the ways to connect. All speak HTTP/1.1: a stalled part gets a new connection, and parts get one each.
func (c *Client) transports(base *http.Transport) {
	dial := base.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	make1 := func() *http.Transport {
		t := base.Clone()
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		t.ForceAttemptHTTP2 = false
		t.MaxIdleConnsPerHost = c.cfg.Parallel
		t.IdleConnTimeout = 30 * time.Second
		t.DisableCompression = true // blobs are what their digests say, byte by byte
		if t.TLSHandshakeTimeout == 0 {
			t.TLSHandshakeTimeout = 15 * time.Second
		}
		return t
	}
	checked := func(allowed func(netip.Addr) bool) *http.Transport {
		t := make1()
		t.Proxy = nil // what goes through a proxy takes the other way, see via
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			addrs, err := c.addresses(ctx, host)
			if err != nil {
				return nil, err
			}
			var errs []error
			for _, a := range addrs { // the address that was checked is the one that is dialled
				if !allowed(a) {
					return nil, errAddress(host)
				}
			}
			for _, a := range addrs {
				conn, err := dial(ctx, network, net.JoinHostPort(a.String(), port))
				if err == nil {
					return conn, nil
				}
				errs = append(errs, err)
			}
			return nil, errors.Join(errs...)
		}
		return t
	}
	inside := make1()
	c.proxy = func(q *http.Request) bool {
		if inside.Proxy == nil {
			return false
		}
		u, err := inside.Proxy(q)
		return err == nil && u != nil
	}
	c.inside, c.here, c.nearby, c.outside = inside, checked(here), checked(near), checked(public)
}

// Close closes idle connections.
func (c *Client) Close() {
	for _, t := range []http.RoundTripper{c.inside, c.here, c.nearby, c.outside} {
		t.(*http.Transport).CloseIdleConnections()
	}
}

func (c *Client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return c.lookup(ctx, host)
}

// via chooses how to connect to a place that a registry names.
func (r *remote) via(q *http.Request) (http.RoundTripper, error) {
	if sameHost(q.URL, &r.base) {
		return r.c.inside, nil
	}
	allowed, way := public, r.c.outside
	switch r.reach(q.Context()) {
	case onPrivate:
		allowed, way = near, r.c.nearby
	case onLoopback:
		allowed, way = here, r.c.here
	}
	if !r.c.proxy(q) {
		return way, nil
	}
	// A proxy resolves the name, so that only addresses can be checked here.
	if a, err := netip.ParseAddr(q.URL.Hostname()); loopbackHost(q.URL.Hostname()) || err == nil && !allowed(a) {
		return nil, errAddress(q.URL.Hostname())
	}
	return r.c.inside, nil
}

// place is where a registry is.
type place int

const (
	onPublic   place = iota + 1
	onPrivate        // it may send us to its neighbours
	onLoopback       // to this machine too
)

// reach tells where the registry is, by all of its addresses. One that is not known is taken for a public one.
func (r *remote) reach(ctx context.Context) place {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.place != 0 {
		return r.place
	}
	addrs, err := r.c.addresses(ctx, r.base.Hostname())
	if err != nil || len(addrs) == 0 {
		return onPublic
	}
	r.place = onLoopback
	for _, a := range addrs {
		switch {
		case public(a):
			r.place = onPublic
		case !a.Unmap().IsLoopback():
			r.place = min(r.place, onPrivate)
		}
	}
	return r.place
}

func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
