package e2e

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clientServer is a second server on the same models: Ollama's clients send no key, so changing models is open here. They
// can pull the model "pulled", from a registry on this machine.
func clientServer(t *testing.T) *server {
	t.Helper()
	home := t.TempDir()
	withRegistry(t, home, startRegistry(t), "auth: {open_admin: true}\n")
	s, err := launch(home, "OLLAMA_MODELS="+filepath.Join(sharedHome, "models"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("the server did not stop cleanly: %v", err)
		}
	})
	return s
}

// checks runs a script that prints a line for each check and a sum at the end.
func checks(t *testing.T, says string, env []string, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(environment(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), says) {
		t.Errorf("%v, want %q in:\n%s", err, says, out)
	}
	if strings.Contains(string(out), "PULL_MODEL is not set") {
		t.Errorf("a check of pulling was left out:\n%s", out)
	}
	t.Logf("%s", out)
}

func script(name string) string { return filepath.Join("..", "..", "testdata", "clients", name) }

// toolChecks are parts of the names of the scripts' checks that call tools.
const toolChecks = "tools: ,bind_tools,tool_choice"

// Real clients, unchanged, each with its own assertions about what is on the wire.
func TestRealClients(t *testing.T) {
	python, err := need("SLUICE_TEST_PYTHON")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := need("SLUICE_TEST_CLIENTS")
	if err != nil {
		t.Fatal(err)
	}
	s := clientServer(t)
	node := filepath.Join(cache, "node", "node")
	env := []string{"GATEWAY_URL=" + s.url, "MODEL=" + tiny, "EMBED_MODEL=" + embedder, "PULL_MODEL=" + pulled, "TIMEOUT=400", "NODE_PATH_DIR=" + filepath.Join(cache, "node")}

	// Each script wants tools refused by a model that knows none, as Ollama does; here it answers without them. So that
	// part runs on the model that knows tools.
	scripts := map[string]struct{ program, script, says, withTools string }{
		"ollama for Python":     {python, "ollama_python.py", ": 27 passed, 0 failed, 1 skipped", ": 1 passed, 0 failed,"},
		"ollama for JavaScript": {node, "ollama_js.mjs", ": 14 passed, 0 failed, 1 skipped", ": 1 passed, 0 failed,"},
		"LangChain":             {python, "langchain_ollama_check.py", ": 9 passed, 0 failed, 1 skipped", ": 1 passed, 0 failed,"},
		"the OpenAI SDK":        {python, "openai_sdk.py", ": 15 passed, 0 failed, 1 skipped", ": 1 passed, 0 failed,"},
		"the Anthropic SDK":     {python, "anthropic_sdk.py", ": 13 passed, 0 failed, 2 skipped", ": 2 passed, 0 failed,"},
	}
	for name, c := range scripts {
		t.Run(name, func(t *testing.T) {
			forget(t, s, pulled)
			checks(t, c.says, append(env, "SKIP="+toolChecks), c.program, script(c.script))
			checks(t, c.withTools, append(env, "MODEL="+coder, "ONLY="+toolChecks), c.program, script(c.script))
		})
	}

	// Open WebUI sets no limit to an answer, and this small a model finds no end: it would write until its context is full.
	const brief = "brief:latest"
	if out, err := s.command(adminKey, "create", brief, "--from", tiny, "--param", "num_predict=48"); err != nil {
		t.Fatalf("create: %v: %s", err, out)
	}
	if status, text := s.call(t, "", "POST", "/api/generate", object{"model": tiny, "keep_alive": 0}); status != 200 { // same weights: ps has the name that loaded them
		t.Fatalf("unload: %d %s", status, text)
	}
	env = append(env, "MODEL="+brief)
	env = append(env, "OWUI_URL="+openWebUI(t, cache, env))
	t.Run("Open WebUI's backend", func(t *testing.T) {
		forget(t, s, pulled)
		checks(t, "open_webui: 15 passed, 0 failed, 1 skipped", append(env, "SKIP="+toolChecks), python, script("open_webui_check.py"))
		checks(t, "open_webui: 2 passed, 0 failed, 0 skipped", append(env, "MODEL="+coder, "ONLY=sign in,"+toolChecks), python, script("open_webui_check.py"))
	})
	// It sends 36 tools with each chat, to a model that knows none.
	t.Run("Open WebUI in a browser", func(t *testing.T) {
		shots := t.ArtifactDir()
		checks(t, "open_webui_browser: 9 passed, 0 failed", append(env, "SHOT_DIR="+shots), node, script("open_webui_browser.mjs"))
	})
}

// openWebUI starts Open WebUI in front of the server that env names, and gives its address.
func openWebUI(t *testing.T, cache string, env []string) string {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0") // free now, and nobody else is told of it
	if err != nil {
		t.Fatal(err)
	}
	_, number, _ := net.SplitHostPort(port.Addr().String())
	port.Close()
	log := filepath.Join(t.TempDir(), "open-webui.log")
	cmd := exec.Command("python3", script("open_webui_check.py"), "--serve-only")
	cmd.Env = append(append(environment(), env...), "OWUI_VENV="+filepath.Join(cache, "open-webui"), "OWUI_PORT="+number, "OWUI_LOG="+log)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
		}
	})
	in := bufio.NewScanner(stdout)
	for in.Scan() {
		if url, ok := strings.CutPrefix(in.Text(), "OWUI_URL="); ok {
			return url
		}
	}
	text, _ := os.ReadFile(log)
	t.Fatalf("Open WebUI did not start:\n%s", text)
	return ""
}
