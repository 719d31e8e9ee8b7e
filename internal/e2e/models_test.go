package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The real Ollama Python client, with its own assertions about the wire: without a key, as Ollama's users have it, and
// with an admin key, which changing models needs. Pulling comes with a later version.
func TestOllamaPythonClient(t *testing.T) {
	python, err := need("SLUICE_TEST_PYTHON")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		env  []string
		says string
	}{
		"without a key": {[]string{"SKIP=pull,create, copy,errors: an unknown,errors: bad input"}, " 23 passed, 0 failed,"},
		"as an admin":   {[]string{"ONLY=create, copy,errors: an unknown,errors: bad input", "OLLAMA_API_KEY=" + adminKey}, " 3 passed, 0 failed,"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), python, filepath.Join("..", "..", "testdata", "clients", "ollama_python.py"))
			cmd.Env = append(append(environment(), "GATEWAY_URL="+shared.url, "MODEL="+tiny, "EMBED_MODEL="+embedder, "TIMEOUT=400"), c.env...)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v, want%s in:\n%s", err, c.says, out)
			}
		})
	}
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

func TestModelsSwapAndOneIsLoadedAtATime(t *testing.T) {
	for _, name := range []string{coder, tiny, coder} {
		status, text := shared.call(t, "", "POST", "/api/generate", object{"model": name, "prompt": "Hi", "stream": false, "options": object{"num_predict": 2}})
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, status, text)
		}
		var ps struct{ Models []struct{ Name string } }
		_, text = shared.call(t, "", "GET", "/api/ps", nil)
		if err := json.Unmarshal([]byte(text), &ps); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(ps.Models) != fmt.Sprintf("[{%s}]", name) {
			t.Errorf("after %s, /api/ps lists %v", name, ps.Models)
		}
		eventually(t, "one runner is left", func() bool { return len(shared.runners(t)) == 1 })
	}
}
