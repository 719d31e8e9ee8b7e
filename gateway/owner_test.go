package gateway

import (
	"strings"
	"testing"

	"sluice/access"
)

// TestWhoseAPromptIsReachesTheRunner: what is kept of one's prompt is not for another.
func TestWhoseAPromptIsReachesTheRunner(t *testing.T) {
	f := newFixture(t, nil)
	second := access.Principal{KeyID: "k-admin", Owner: "somebody", Name: "x", Role: access.Admin}
	chat := map[string]any{"model": "tiny", "stream": false, "messages": []any{map[string]string{"role": "user", "content": "hi"}}}
	generate := map[string]any{"model": "tiny", "stream": false, "prompt": "hi"}
	word := func(path string, body any, bearer string) string {
		t.Helper()
		wantStatus(t, f.do(call{method: "POST", path: path, body: body, bearer: bearer}), 200)
		return f.fake.last().Owner
	}
	for path, body := range map[string]any{"/api/chat": chat, "/api/generate": generate, "/v1/chat/completions": chat} {
		admin, reader := word(path, body, adminKey), word(path, body, readOnlyKey)
		if len(admin) != 64 || strings.Contains(admin, "admin") || admin == reader || len(reader) != 64 {
			t.Errorf("%s: %q and %q", path, admin, reader)
		}
		if again := word(path, body, adminKey); again != admin {
			t.Errorf("%s: %q the first time, %q the second", path, admin, again)
		}
		if nobody := word(path, body, ""); nobody != "" {
			t.Errorf("%s: nobody is %q", path, nobody)
		}
	}
	words := map[string]bool{}
	for _, who := range []access.Principal{second, {KeyID: "k-admin", Owner: "admin"}, {KeyID: "k-2", Owner: "admin"}, {KeyID: "-admin", Owner: "admink"}} {
		words[wordOf(who)] = true
	}
	if len(words) != 4 {
		t.Errorf("four principals have %d words", len(words))
	}
}
