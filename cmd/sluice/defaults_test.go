package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/config"
	"sluice/fault"
	"sluice/models"
	"sluice/models/registry"
	"sluice/runner"
)

const threeModels = `
registries: [models.example.org]
models:
  - {name: big, roles: [chat, sql], size: 4.7GB, min_memory: 8GiB}
  - {name: small, roles: [sql, chat], size: 398MB, min_memory: 1GiB, num_ctx: 8192, parallel: 2, keep_alive: 10m, devices: [CUDA0], replicas: 2}
  - {name: vectors, roles: [embed], size: 46MB}
`

func parsed(t *testing.T, text string) models.Catalogue {
	t.Helper()
	c, err := models.ParseCatalogue("models.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shelf is a registry that gives what it is told to, and the models that it gave.
type shelf struct {
	give func(try int, name string, tell func(api.ProgressResponse)) error

	mu        sync.Mutex
	tries     []string // name and time since the start
	start     time.Time
	installed []string
}

func (s *shelf) Pull(_ context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error {
	s.mu.Lock()
	s.tries = append(s.tries, fmt.Sprintf("%s at %s", t.Name, time.Since(s.start)))
	n := len(s.tries)
	s.mu.Unlock()
	if err := s.give(n, t.Name, tell); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installed = append(s.installed, t.Name)
	return nil
}

func (s *shelf) Push(context.Context, registry.Transfer, func(api.ProgressResponse)) error {
	return fault.Bug("nobody pushes")
}

func (s *shelf) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.installed, func(i string) bool { return models.SameName(i, name) })
}

func puller(t *testing.T, s *shelf, gib uint64, log *lockedBuffer) *defaultPuller {
	c := parsed(t, threeModels)
	s.start = time.Now()
	return &defaultPuller{catalogue: func() models.Catalogue { return c }, installed: s.has, registry: s,
		memory: func(context.Context) uint64 { return gib << 30 }, log: slog.New(slog.NewJSONHandler(log, nil))}
}

func TestDefaultsArePulledOncePerRoleAndOnlyWhatFits(t *testing.T) {
	for name, row := range map[string]struct {
		gib       uint64
		installed []string
		want      []string
	}{
		"a large machine":            {16, nil, []string{"big", "vectors"}},
		"a small one":                {2, nil, []string{"small", "vectors"}},
		"nothing that chats fits":    {0, nil, []string{"big", "vectors"}}, // 0: not known
		"another one will do":        {16, []string{"small"}, []string{"vectors"}},
		"all of them are there":      {16, []string{"small", "vectors:latest"}, nil},
		"one that is in no role's":   {2, []string{"other"}, []string{"small", "vectors"}},
		"the larger one was brought": {2, []string{"big"}, []string{"small", "vectors"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{installed: slices.Clone(row.installed), give: func(int, string, func(api.ProgressResponse)) error { return nil }}
				d := puller(t, s, row.gib, &lockedBuffer{})
				d.Run(t.Context())
				if got := s.installed[len(row.installed):]; !slices.Equal(got, row.want) {
					t.Errorf("pulled %v, want %v", got, row.want)
				}
				if w := d.Warnings(); len(w) != 0 {
					t.Errorf("warnings at the end: %v", w)
				}
			})
		})
	}
}

func TestADefaultThatCannotBePulledIsTriedAgainMoreAndMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lockedBuffer{}
		s := &shelf{give: func(try int, name string, _ func(api.ProgressResponse)) error {
			switch {
			case name == "vectors" && try > 2:
				return fault.Bug("vectors was there")
			case name == "vectors":
				return nil
			case try == 3: // the first try again
				return &fault.Error{Code: fault.Busy, Msg: "the registry is busy", RetryAfter: 5 * time.Minute}
			case try < 10:
				return fault.New(fault.Denied, "fake", "models.example.org is not among the registries")
			}
			return nil
		}}
		d := puller(t, s, 16, log)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.Run(ctx); close(done) }()
		synctest.Wait()
		if w := d.Warnings(); len(w) != 1 || !strings.Contains(w[0], "the default model big could not be pulled: models.example.org is not among the registries; it is tried again") {
			t.Errorf("warnings %v", w)
		}
		<-done
		cancel()
		want := []string{"big at 0s", "vectors at 0s", "big at 30s", "big at 5m30s", "big at 7m30s", "big at 11m30s", "big at 19m30s", "big at 35m30s", "big at 1h5m30s", "big at 1h35m30s"}
		if !slices.Equal(s.tries, want) {
			t.Errorf("tried %v,\nwant  %v", s.tries, want)
		}
		for _, part := range []string{"name its host in the registries", "see that this machine reaches the registry", `"model":"big"`, "the default models are there"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log does not say %q:\n%s", part, log)
			}
		}
	})
}

func TestAPullOfDefaultsTellsHowFarItIsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, halfway, stop := &lockedBuffer{}, make(chan struct{}), make(chan struct{})
		s := &shelf{give: func(_ int, _ string, tell func(api.ProgressResponse)) error {
			for n := int64(0); n <= 47; n++ {
				tell(api.ProgressResponse{Status: "pulling a", Digest: "sha256:a", Total: 4_600_000_000, Completed: n * 50_000_000})
			}
			tell(api.ProgressResponse{Status: "pulling b", Digest: "sha256:b", Total: 10, Completed: 10})
			close(halfway)
			<-stop
			return context.Canceled
		}}
		d := puller(t, s, 16, log)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.Run(ctx); close(done) }()
		<-halfway
		if got := strings.Join(d.Warnings(), "; "); got != "the default model big is being pulled: 50 %; the default model vectors is waiting to be pulled" {
			t.Errorf("warnings %q", got)
		}
		if got := strings.Count(log.String(), `"percent"`); got != 5 {
			t.Errorf("%d lines of progress:\n%s", got, log)
		}
		cancel()
		close(stop)
		<-done
		if len(s.tries) != 1 {
			t.Errorf("after its end it tried %v", s.tries)
		}
	})
	if w := (*defaultPuller)(nil).Warnings(); w != nil {
		t.Errorf("a server without defaults warns of %v", w)
	}
}

// described is an inventory that a test writes.
type described []runner.Device

func (d described) Devices(context.Context) ([]runner.Device, error) { return d, nil }

func TestWhatAModelCanHave(t *testing.T) {
	const gib = 1 << 30
	cpu := func(n uint64) runner.Device { return runner.Device{ID: runner.CPU, TotalBytes: n * gib} }
	gpu := func(n uint64) runner.Device { return runner.Device{ID: "CUDA0", TotalBytes: n * gib} }
	for name, row := range map[string]struct {
		devices described
		limit   uint64
		want    uint64
	}{
		"main memory alone":           {described{cpu(16)}, 0, 16},
		"a GPU that is larger":        {described{gpu(80), cpu(16)}, 0, 80},
		"a GPU that is smaller":       {described{gpu(8), cpu(64)}, 0, 64},
		"two GPUs together":           {described{gpu(24), gpu(24), cpu(32)}, 0, 48},
		"a GPU without its own":       {described{{ID: "Vulkan0", TotalBytes: 60 * gib, Integrated: true}, cpu(32)}, 0, 32},
		"no more than is allowed":     {described{gpu(80), cpu(16)}, 4, 4},
		"a limit that limits nothing": {described{cpu(16)}, 100, 16},
		"nothing is known":            {nil, 0, 0},
		"only the limit is known":     {nil, 4, 4},
	} {
		if got := memory(t.Context(), row.devices, row.limit*gib); got != row.want*gib {
			t.Errorf("%s: %d bytes, want %d GiB", name, got, row.want)
		}
	}
}

func TestSettingsOfAModelAreThoseOfTheCatalogue(t *testing.T) {
	var c catalogue
	c.set(parsed(t, threeModels))
	got := c.settings(&models.Model{Name: "small:latest"})
	if got.NumCtx != 8192 || got.Parallel != 2 || got.KeepAlive == nil || *got.KeepAlive != 10*time.Minute || !slices.Equal(got.Devices, []string{"CUDA0"}) || got.Replicas != 2 || got.Pin {
		t.Errorf("settings %+v", got)
	}
	if got := c.settings(&models.Model{Name: "other:latest"}); got.NumCtx != 0 || got.KeepAlive != nil {
		t.Errorf("settings of a model that nobody named: %+v", got)
	}
	c.set(parsed(t, "models: [{name: small, roles: [chat], pin: true}]"))
	if got := c.settings(&models.Model{Name: "small:latest"}); !got.Pin || got.NumCtx != 0 {
		t.Errorf("after a change: %+v", got)
	}
}

// TestReload: what can change is taken over, a mistake changes nothing, and what has to wait is told of.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() (*config.Config, error) {
		return config.Load(filepath.Join(dir, "sluice.yaml"), dir, func(string) string { return "" })
	}
	write("models.yaml", threeModels)
	write("sluice.yaml", "home: "+dir+"\nmodels: models.yaml\n")
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	log := &lockedBuffer{}
	s := &server{cfg: cfg, load: load, level: &slog.LevelVar{}}
	s.log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: s.level}))
	if err := s.openModels(); err != nil {
		t.Fatal(err)
	}
	reload := func() string {
		t.Helper()
		before := len(log.String())
		s.reload()
		return log.String()[before:]
	}
	if said := reload(); !strings.Contains(said, "settings are reloaded") || strings.Contains(said, "restart") {
		t.Errorf("without a change: %s", said)
	}

	write("sluice.yaml", "home: "+dir+"\nmodels: other.yaml\nlog: debug\nregistries: {models.example.org: {insecure: true}}\nlimits: {rows: 7}\nengine: {num_parallel: 2}\n")
	write("other.yaml", strings.Replace(threeModels, "num_ctx: 8192", "num_ctx: 4096", 1))
	said := reload()
	if got := s.catalogue.settings(&models.Model{Name: "small:latest"}); got.NumCtx != 4096 {
		t.Errorf("a model's settings are still %+v", got)
	}
	if s.level.Level() != slog.LevelDebug {
		t.Errorf("the log's level is %s", s.level.Level())
	}
	if _, tr := s.sources.resolve(registry.Transfer{Name: "models.example.org/a/b"}); !tr.Insecure {
		t.Error("the insecure registries are not taken over")
	}
	var line struct{ Keys []string }
	if err := json.Unmarshal([]byte(strings.SplitAfter(said, "\n")[0]), &line); err != nil || !slices.Equal(line.Keys, []string{"limits", "engine"}) {
		t.Errorf("what waits for a restart: %v, %s", line.Keys, said)
	}

	for name, broken := range map[string]func(){
		"settings":  func() { write("sluice.yaml", "lissen: x\n") },
		"catalogue": func() { write("other.yaml", "models: [{nam: x}]") },
		"a level":   func() { write("sluice.yaml", "home: "+dir+"\nlog: loud\n") },
	} {
		write("sluice.yaml", "home: "+dir+"\nmodels: other.yaml\n")
		write("other.yaml", "models: []")
		broken()
		if said := reload(); !strings.Contains(said, "the old ones hold") {
			t.Errorf("a mistake in %s: %s", name, said)
		}
		if got := s.catalogue.settings(&models.Model{Name: "small:latest"}); got.NumCtx != 4096 || s.level.Level() != slog.LevelDebug {
			t.Errorf("a mistake in %s changed something: %+v", name, got)
		}
	}
}

func TestWhereAModelComesFrom(t *testing.T) {
	store, err := models.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := parsed(t, "registries: [lan.example:5000, models.example.org]\nmodels: [{name: known, roles: [chat], source: models.example.org/team/known:q4}]")
	insecure := map[string]config.Registry{"lan.example:5000": {Insecure: true}}
	s, err := newSources(store, c, insecure)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ in, want registry.Transfer }{
		"a model of the catalogue":     {registry.Transfer{Name: "KNOWN"}, registry.Transfer{Name: "KNOWN", Source: "models.example.org/team/known:q4"}},
		"the request's word for plain": {registry.Transfer{Name: "known", Insecure: true}, registry.Transfer{Name: "known", Source: "models.example.org/team/known:q4", Insecure: true}},
		"one without a host":           {registry.Transfer{Name: "x:y"}, registry.Transfer{Name: "x:y", Insecure: true}},
		"one with a host":              {registry.Transfer{Name: "models.example.org/a/x"}, registry.Transfer{Name: "models.example.org/a/x"}},
		"one with an insecure host":    {registry.Transfer{Name: "lan.example:5000/a/x"}, registry.Transfer{Name: "lan.example:5000/a/x", Insecure: true}},
		"a source of the caller's":     {registry.Transfer{Name: "known", Source: "lan.example:5000/a/x"}, registry.Transfer{Name: "known", Source: "lan.example:5000/a/x", Insecure: true}},
	} {
		if _, got := s.resolve(row.in); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
	before, _ := s.resolve(registry.Transfer{Name: "x"})
	if err := s.set(parsed(t, "registries: [lan.example:5000, models.example.org]"), insecure); err != nil {
		t.Fatal(err)
	}
	if after, _ := s.resolve(registry.Transfer{Name: "x"}); after != before {
		t.Error("the same registries have another client: pulls would not share their work")
	}
	if err := s.set(parsed(t, "registries: [models.example.org]"), nil); err != nil {
		t.Fatal(err)
	}
	if after, tr := s.resolve(registry.Transfer{Name: "x"}); after == before || tr.Insecure {
		t.Error("other registries have the same client")
	}
}
