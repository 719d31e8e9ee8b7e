package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sluice/runner"
	"sluice/scheduler"
)

// withChild puts the fake child behind the fixture: a real process that speaks the real protocol. Its script is in the
// prompt, between "{{" and "}}".
func withChild(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, func(c *Config) {
		c.Scheduler = runScheduler(t, func(ctx context.Context) (scheduler.Runner, error) {
			p, err := runner.Start(ctx, runner.Config{Binary: fakeBinary})
			if err != nil {
				return nil, err
			}
			return p, nil
		})
	})
}

func TestAChildThatDiesInMidStreamEndsThatStreamOnly(t *testing.T) {
	f := withChild(t)
	ask := func(script string, stream bool) call {
		return call{method: "POST", path: "/api/chat", body: map[string]any{"model": "tiny", "stream": stream, "messages": []map[string]any{{"role": "user", "content": "{{" + script + "}} hello"}}}}
	}
	w := f.do(ask("text=a b c&tokens=3", true))
	wantStatus(t, w, 200)
	ls := lines(t, w.Body.Bytes())
	lastLine(t, ls[len(ls)-1], "stop")

	w = f.do(ask("text=a b c d e&die_after=2&tokens=5", true))
	wantStatus(t, w, 200)
	ls = lines(t, w.Body.Bytes())
	last, _ := ls[len(ls)-1]["error"].(string)
	if len(ls) < 2 || !strings.Contains(last, "killed") || strings.Contains(last, "fakerunner") {
		t.Errorf("the stream ends with %v", ls[len(ls)-1])
	}
	w = f.do(ask("text=a b c d e&die_after=2&tokens=5", false))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" || object(t, w.Body.Bytes())["error"] == "" {
		t.Errorf("in one piece: %d %s", w.Code, w.Body)
	}
	w = f.do(ask("text=a b c&tokens=3", false)) // at once: the dead child must not be leased again
	wantStatus(t, w, 200)
	if got := object(t, w.Body.Bytes())["message"].(map[string]any)["content"]; got != "a b c" {
		t.Errorf("after the death: %q", got)
	}
	f.waitLoaded(idle)
}

func TestAChildIsAskedForTokens(t *testing.T) {
	f := withChild(t)
	w := f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "prompt": "{{text=x y&tokens=2}} go", "stream": false}})
	wantStatus(t, w, 200)
	first := object(t, w.Body.Bytes())
	w = f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "prompt": "on", "context": first["context"], "stream": false}})
	wantStatus(t, w, 200)
	if before, after := first["prompt_eval_count"].(float64), object(t, w.Body.Bytes())["prompt_eval_count"].(float64); after <= before {
		t.Errorf("the context is not in the prompt: %v tokens, then %v", before, after)
	}
	w = f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "tiny", "prompt": "on", "context": []int{1 << 30}, "stream": false}})
	wantStatus(t, w, 400)
	long := strings.Repeat("word ", 80)
	w = f.do(call{method: "POST", path: "/api/embed", body: map[string]any{"model": "tiny", "input": []string{"a", long}}})
	wantStatus(t, w, 200)
	if e := object(t, w.Body.Bytes()); e["truncated"] != true || len(e["embeddings"].([]any)) != 2 {
		t.Errorf("embed: %v", fmt.Sprint(e)[:80])
	}
	wantStatus(t, f.do(call{method: "POST", path: "/api/embed", body: map[string]any{"model": "tiny", "input": long, "truncate": false}}), 400)
}
