package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// machineName is this machine's name in lower case, "" when unknown.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return strings.ToLower(name)
}

// checkHost refuses a Host that cannot be this machine while the server listens on loopback: a page on the net whose
// name was rebound to 127.0.0.1 could otherwise talk to it from the user's browser.
func (s *server) checkHost(c *gin.Context) {
	if s.cfg.Loopback && !s.localHost(c.Request.Host) {
		s.fail(c, &fault.Error{Code: fault.Denied, Op: "gateway.host", Msg: "the Host header does not name this machine",
			Hint: "this server listens on loopback: call it localhost or 127.0.0.1, or have it listen on another address (SLUICE_HOST)"})
	}
}

func (s *server) localHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || addr.IsPrivate() || addr.IsUnspecified() || isOwn(addr)
	}
	if host == "" || host == "localhost" || host == s.hostname {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// isOwn tells whether an address is one of this machine's.
func isOwn(addr netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr() == addr.Unmap() {
			return true
		}
	}
	return false
}

// corsHeaders may be sent by scripts of an allowed origin: those of Ollama and of the OpenAI and Anthropic SDKs.
const corsHeaders = "Authorization, Content-Type, User-Agent, Accept, X-Requested-With, X-Request-Id, Idempotency-Key, OpenAI-Beta, " +
	"x-api-key, anthropic-version, anthropic-beta, anthropic-dangerous-direct-browser-access, " +
	"x-stainless-arch, x-stainless-async, x-stainless-custom-poll-interval, x-stainless-helper-method, x-stainless-lang, x-stainless-os, " +
	"x-stainless-package-version, x-stainless-poll-helper, x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, x-stainless-timeout"

// checkOrigin refuses a browser's script from an origin that is not allowed, and answers the preflight of one that is.
func (s *server) checkOrigin(c *gin.Context) {
	origin := c.Request.Header.Get("Origin")
	if origin == "" || origin == "http://"+c.Request.Host || origin == "https://"+c.Request.Host {
		return
	}
	h := c.Writer.Header()
	h.Add("Vary", "Origin")
	if !s.originAllowed(origin) {
		s.fail(c, &fault.Error{Code: fault.Denied, Op: "gateway.origin", Msg: "the Origin of this request is not allowed",
			Hint: "add it to SLUICE_ORIGINS where the server is started"})
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if c.Request.Method != http.MethodOptions {
		h.Set("Access-Control-Expose-Headers", "X-Request-Id, request-id, X-Sluice-Version, X-Sluice-Truncated, X-Sluice-Tools, Retry-After")
		return
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS")
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", "43200") // 12 h, as Ollama
	c.AbortWithStatus(http.StatusNoContent)
}

// appSchemes are of programs on this machine and of browser extensions: pages on the net cannot have them.
var appSchemes = map[string]bool{"app": true, "file": true, "tauri": true, "vscode-webview": true, "vscode-file": true,
	"chrome-extension": true, "safari-extension": true, "moz-extension": true, "ms-browser-extension": true}

// originAllowed: Ollama's defaults and the configured ones. The origin is parsed, not compared by its beginning, which
// would let http://localhost:1@evil.example pass.
func (s *server) originAllowed(origin string) bool {
	u, err := url.Parse(origin)
	if err == nil && u.User == nil {
		if appSchemes[u.Scheme] {
			return true
		}
		if u.Scheme == "http" || u.Scheme == "https" {
			switch u.Hostname() {
			case "localhost", "127.0.0.1", "0.0.0.0":
				return true
			}
		}
	}
	for _, allowed := range s.cfg.Origins {
		if before, after, wild := strings.Cut(allowed, "*"); wild {
			if len(origin) >= len(before)+len(after) && strings.HasPrefix(origin, before) && strings.HasSuffix(origin, after) {
				return true
			}
		} else if allowed == origin {
			return true
		}
	}
	return false
}

func checkOrigins(origins []string) error {
	for _, o := range origins {
		if o == "" || strings.Count(o, "*") > 1 {
			return fmt.Errorf("Origins: %q: an origin is not empty and has at most one *", o)
		}
	}
	return nil
}
