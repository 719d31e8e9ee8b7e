package config

import (
	"net"
	"net/netip"
	"strings"
)

// Loopback says whether the server can only be reached from this machine.
func (c *Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// HostPort completes what SLUICE_HOST and OLLAMA_HOST may hold: a URL, a host alone, a port alone.
func HostPort(v string) string {
	v = strings.TrimSuffix(v, "/")
	if _, rest, ok := strings.Cut(v, "://"); ok {
		v = rest
	}
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		host, port = strings.Trim(v, "[]"), "11434"
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
