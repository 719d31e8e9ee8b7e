package gateway

import (
	"strings"
	"testing"
)

func TestHostMustNameThisMachineOnLoopback(t *testing.T) {
	s := newServer(Config{})
	s.hostname = "box"
	for host, ok := range map[string]bool{
		"localhost": true, "LOCALHOST:11434": true, "127.0.0.1:11434": true, "[::1]:11434": true, "::1": true, "10.0.0.5": true, "192.168.1.9:80": true, "0.0.0.0": true,
		"box": true, "box:1": true, "a.localhost": true, "nas.local": true, "host.docker.internal:11434": true, "": true,
		"evil.example": false, "8.8.8.8": false, "localhost.evil.example": false, "evillocalhost": false, "local": false, "gate.example": false, "[2001:db8::1]": false,
	} {
		if got := s.localHost(host); got != ok {
			t.Errorf("%q: %v", host, got)
		}
	}
	f := newFixture(t, nil)
	w := f.do(call{method: "GET", path: "/api/version", host: "evil.example"})
	if text, _ := object(t, w.Body.Bytes())["error"].(string); w.Code != 403 || !strings.Contains(text, "localhost") || !strings.Contains(text, "SLUICE_HOST") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	f = newFixture(t, func(c *Config) { c.Loopback = false })
	wantStatus(t, f.do(call{method: "GET", path: "/api/version", host: "evil.example"}), 200)
}

func TestOrigins(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Origins = []string{"https://*.corp.example", "https://one.example"} })
	for origin, ok := range map[string]bool{
		"http://localhost": true, "https://localhost:3000": true, "http://127.0.0.1:8080": true, "http://0.0.0.0": true, "app://x": true, "tauri://localhost": true,
		"vscode-webview://abc": true, "chrome-extension://id": true, "https://a.corp.example": true, "https://one.example": true, "http://127.0.0.1:11434": true,
		"null": false, "https://evil.example": false, "http://localhost.evil.example": false, "http://localhost:1@evil.example": false, "https://one.example.evil": false,
		"http://one.example": false, "abc": false, "https://.evil": false,
	} {
		w := f.do(call{method: "GET", path: "/api/tags", header: map[string]string{"Origin": origin}})
		if ok && w.Code != 200 || !ok && w.Code != 403 {
			t.Errorf("%s: status %d", origin, w.Code)
		}
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		if !ok && !strings.Contains(w.Body.String(), "SLUICE_ORIGINS") {
			t.Errorf("%s: the setting is not named: %s", origin, w.Body)
		}
		if same := origin == "http://127.0.0.1:11434"; ok && !same && allowed != origin || !ok && (allowed != "" || object(t, w.Body.Bytes())["error"] == "") {
			t.Errorf("%s: Access-Control-Allow-Origin %q, %s", origin, allowed, w.Body)
		}
	}
	w := f.do(call{method: "OPTIONS", path: "/api/chat", header: map[string]string{"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}})
	if w.Code != 204 || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "Authorization") || !strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	if w := f.do(call{method: "OPTIONS", path: "/api/chat", header: map[string]string{"Origin": "https://evil.example"}}); w.Code != 403 || w.Header().Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("preflight of another origin: %d %v", w.Code, w.Header())
	}
}
