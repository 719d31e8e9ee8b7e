package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

type process struct {
	Name, State string
	Size        int64
	Placement   []struct {
		Device string
		Bytes  int64
	}
}

func (s *server) loaded(t *testing.T) []process {
	t.Helper()
	status, text := s.call(t, "", "GET", "/api/ps", nil)
	var ps struct{ Models []process }
	if err := json.Unmarshal([]byte(text), &ps); status != 200 || err != nil {
		t.Fatalf("ps: %d %v %s", status, err, text)
	}
	return ps.Models
}

func (s *server) metric(t *testing.T, series string) float64 {
	t.Helper()
	_, text := s.call(t, "", "GET", "/metrics", nil)
	for in := bufio.NewScanner(strings.NewReader(text)); in.Scan(); {
		if v, ok := strings.CutPrefix(in.Text(), series+" "); ok {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Errorf("there is no series %s", series)
	return math.NaN()
}

// Memory decides how many models are loaded: both where both fit, one of the two where limits.memory has room for one, and
// none where it is too large for all that there is.
func TestMemoryDecidesWhatIsLoaded(t *testing.T) {
	home := t.TempDir()
	begin := func(env ...string) *server {
		s, err := launch(home, append(env, "OLLAMA_MODELS="+sharedHome+"/models")...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	end := func(s *server) {
		if err := s.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	withRegistry(t, home, startRegistry(t), "")
	ask := func(s *server, name string) (int, string) {
		return s.call(t, "", "POST", "/api/generate", object{"model": name, "prompt": "Hi", "stream": false, "options": object{"num_predict": 2}})
	}
	must := func(s *server, name string) {
		t.Helper()
		if status, text := ask(s, name); status != 200 {
			t.Fatalf("%s: %d %s\n%s", name, status, text, s.logText())
		}
	}

	s := begin()
	must(s, coder)
	must(s, tiny)
	sizes := map[string]int64{}
	for _, m := range s.loaded(t) {
		sizes[m.Name] = m.Size
		placed := int64(0)
		for _, p := range m.Placement {
			placed += p.Bytes
		}
		if placed != m.Size {
			t.Errorf("%s has %d bytes, on its devices %d", m.Name, m.Size, placed)
		}
	}
	if len(sizes) != 2 {
		t.Fatalf("both fit, but %v are loaded", sizes)
	}
	end(s)

	s = begin(fmt.Sprintf("SLUICE_MEMORY=%d", sizes[coder]+sizes[tiny]/2))
	for i := range 6 {
		name := []string{coder, tiny}[i%2]
		must(s, name)
		ps := s.loaded(t)
		ready := 0
		for _, m := range ps {
			if m.State == "ready" {
				ready++
				if m.Name != name {
					t.Errorf("after %s, %s is ready", name, m.Name)
				}
			}
		}
		if ready != 1 {
			t.Errorf("after %s: %+v", name, ps)
		}
		eventually(t, "one runner is left", func() bool { return len(s.runners(t)) == 1 })
	}
	if n := s.metric(t, `sluice_model_unloads_total{reason="room"}`); n != 5 {
		t.Errorf("%v unloads for room, want 5\n%s", n, s.logText())
	}
	if n := s.metric(t, `sluice_model_loads_total{outcome="ready"}`); n != 6 {
		t.Errorf("%v loads, want 6", n)
	}
	end(s)

	s = begin("SLUICE_MEMORY=50MiB")
	defer end(s)
	status, text := ask(s, coder)
	numbers := regexp.MustCompile(`[0-9.]+ [MG]iB`).FindAllString(text, -1)
	if status < 400 || status == 503 || len(numbers) < 2 || !strings.Contains(text, "50 MiB") {
		t.Errorf("a model that is too large: %d %s", status, text)
	}
	t.Logf("%d %s", status, text)
}
