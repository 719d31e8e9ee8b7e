package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// Changing models with a key, through the real Ollama client: here it needs an admin. TestRealClients has the rest.
func TestOllamaPythonClientWithAKey(t *testing.T) {
	python, err := need("SLUICE_TEST_PYTHON")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"GATEWAY_URL=" + shared.url, "MODEL=" + tiny, "EMBED_MODEL=" + embedder, "TIMEOUT=400",
		"ONLY=create, copy,errors: an unknown,errors: bad input", "OLLAMA_API_KEY=" + adminKey}
	checks(t, " 3 passed, 0 failed,", env, python, script("ollama_python.py"))
}

// kill -9 of the runner in mid-stream: an error line, the next request works, the gateway never stopped.
func TestKilledRunner(t *testing.T) {
	resp := shared.open(t.Context(), t, "", "POST", "/api/generate", object{
		"model": tiny, "prompt": "Count: one, two, three,", "options": object{"num_predict": 2000, "temperature": 0, "num_ctx": 4096},
	})
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	var last string
	lines := 0
	for in.Scan() {
		last = in.Text()
		if lines++; lines == 5 {
			pids := shared.runners(t)
			if len(pids) == 0 {
				t.Fatal("no runner while a stream is running")
			}
			for _, pid := range pids {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := in.Err(); err != nil {
		t.Fatalf("the stream broke instead of ending with an error line: %v", err)
	}
	var end struct {
		Error string
		Done  bool
	}
	if err := json.Unmarshal([]byte(last), &end); err != nil || end.Error == "" || end.Done {
		t.Fatalf("last line is %q, want an error line", last)
	}
	if !strings.Contains(end.Error, "runner") {
		t.Errorf("the error does not say what happened: %q", end.Error)
	}
	status, text := shared.call(t, "", "POST", "/api/generate", object{"model": tiny, "prompt": "Hi", "stream": false, "options": object{"num_predict": 2}})
	if status != http.StatusOK {
		t.Fatalf("the next request: %d %s", status, text)
	}
}
