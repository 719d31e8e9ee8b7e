package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"sluice/scheduler"
)

// Ollama's keep_alive and num_ctx on an OpenAI route (#9355, #2677).
func TestKeepAliveAndContextOfAChatCompletion(t *testing.T) {
	f := newFixture(t, nil)
	wantStatus(t, f.do(call{method: "POST", path: chatPath, body: with("options", map[string]any{"num_ctx": 128}, "keep_alive", "-1")}), 200)
	f.waitLoaded(func(loaded []scheduler.Loaded) bool {
		return len(loaded) == 1 && loaded[0].Report.NumCtx == 128 && loaded[0].ExpiresAt.After(time.Now().Add(1000*time.Hour))
	})
	wantStatus(t, f.do(call{method: "POST", path: chatPath, body: with("keep_alive", 0)}), 200)
	f.waitLoaded(none)
}

func TestAClientThatLeavesEndsItsAnswer(t *testing.T) {
	for path, body := range map[string]map[string]any{chatPath: with(), completionsPath: prompted(), responsesPath: said()} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s streamed %v", path, stream), func(t *testing.T) {
				f := newFixture(t, nil)
				f.fake.hold, f.fake.ended = make(chan struct{}), make(chan error, 1)
				ctx, leave := context.WithCancel(t.Context())
				body["stream"] = stream
				text, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				r := httptest.NewRequestWithContext(ctx, "POST", path, bytes.NewReader(text))
				r.Host = "127.0.0.1:11434"
				over := make(chan struct{})
				go func() {
					defer close(over)
					f.handler.ServeHTTP(httptest.NewRecorder(), r)
				}()
				f.waitLoaded(func([]scheduler.Loaded) bool { return f.fake.last().Prompt != "" })
				leave()
				if err := <-f.fake.ended; !errors.Is(err, context.Canceled) {
					t.Errorf("the generation ended with %v", err)
				}
				<-over
				f.waitLoaded(idle)
			})
		}
	}
}
