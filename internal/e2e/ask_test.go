package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	askQuestion = "How many customers are there?"
	askSecond   = "How many of them are there in each country?"
)

// The database is a model in real clients: the answer is made of its rows.
func TestADatabaseIsAModelInRealClients(t *testing.T) {
	python, err := need("SLUICE_TEST_PYTHON")
	if err != nil {
		t.Fatal(err)
	}
	n := fmt.Sprint(query(t, adminKey, "SELECT count(*) FROM customers").Rows[0][0])
	env := []string{"GATEWAY_URL=" + shared.url, "MODEL=ask/shop", "SLUICE_KEY=" + createKey(t, "client", "read_only"), "QUESTION=" + askQuestion, "SECOND=" + askSecond, "CELL=" + n, "TIMEOUT=400"}
	checks(t, "ask_model: 9 passed, 0 failed, 0 skipped", env, python, script("ask_model.py"))
}

// Open WebUI in a browser, with a key that acts for whoever is logged in there: what it shows is what that user may read.
func TestADatabaseIsAModelInOpenWebUI(t *testing.T) {
	cache, err := need("SLUICE_TEST_CLIENTS")
	if err != nil {
		t.Fatal(err)
	}
	const user = "admin@localhost" // of an Open WebUI without logins
	shared.data(t, adminKey, "POST", "/v1/users", object{"name": user, "role": "read_only", "password": "a password of Open WebUI's"}, nil)
	shared.data(t, adminKey, "POST", "/v1/grants", object{"principal": user, "kind": "table", "database": "shop", "table": "customers"}, nil)
	var key struct{ Key string }
	shared.data(t, adminKey, "POST", "/v1/keys", object{"name": "open-webui", "role": "read_only", "acts_for": object{"header": "X-OpenWebUI-User-Email"}}, &key)
	n := fmt.Sprint(query(t, adminKey, "SELECT count(*) FROM customers").Rows[0][0])
	env := []string{"GATEWAY_URL=" + shared.url, "MODEL=ask/shop", "EMBED_MODEL=" + embedder, "QUESTION=" + askQuestion, "SECOND=" + askSecond, "CELL=" + n, "TIMEOUT=400",
		"NODE_PATH_DIR=" + filepath.Join(cache, "node"), "SHOT_DIR=" + t.ArtifactDir(),
		"ENABLE_FORWARD_USER_INFO_HEADERS=True", fmt.Sprintf(`OLLAMA_API_CONFIGS={"0":{"enable":true,"key":%q}}`, key.Key)}
	env = append(env, "OWUI_URL="+openWebUI(t, cache, env))
	checks(t, "open_webui_ask: 7 passed, 0 failed", env, filepath.Join(cache, "node", "node"), script("open_webui_ask.mjs"))
}

// On the command line: the table, the sentence, and with --sql the statement; what is declined exits with 3.
func TestAskOnTheCommandLine(t *testing.T) {
	key := createKey(t, "asker on a terminal", "read_only")
	n := fmt.Sprint(query(t, adminKey, "SELECT count(*) FROM customers").Rows[0][0])
	out, err := shared.command(key, "ask", "--sql", askQuestion)
	if err != nil || !strings.Contains(out, n) || !strings.Contains(out, "SELECT") {
		t.Errorf("%v: %s", err, out)
	}
	var exit *exec.ExitError
	if out, err := shared.command(key, "ask", "Delete all orders."); !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(out, "declined: ") {
		t.Errorf("%v: %s", err, out)
	}
}
