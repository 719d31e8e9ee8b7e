package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ollama/ollama/fs/ggml"

	"sluice/internal/fakerunner/fakebin"
	"sluice/runner"
	"sluice/scheduler/inventory"
)

const gib = 1 << 30

// hole is a tensor without content: its place in the file is left empty, so that a model of many GiB takes no disk.
type hole struct{ bytes.Reader }

// bigModel writes a llama of so many blocks of 416 MiB each.
func bigModel(t *testing.T, path string, blocks int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	tensor := func(name string, shape ...uint64) *ggml.Tensor {
		return &ggml.Tensor{Name: name, Kind: 1, Shape: shape, WriterTo: &hole{}} // F16
	}
	list := []*ggml.Tensor{tensor("token_embd.weight", 4096, 64), tensor("output_norm.weight", 4096), tensor("output.weight", 4096, 64)}
	for i := range blocks {
		for name, shape := range map[string][]uint64{
			"attn_q": {4096, 4096}, "attn_k": {4096, 1024}, "attn_v": {4096, 1024}, "attn_output": {4096, 4096},
			"ffn_gate": {4096, 14336}, "ffn_up": {4096, 14336}, "ffn_down": {14336, 4096}, "attn_norm": {4096}, "ffn_norm": {4096},
		} {
			list = append(list, tensor(fmt.Sprintf("blk.%d.%s.weight", i, name), shape...))
		}
	}
	tokens := make([]string, 64)
	for i := range tokens {
		tokens[i] = fmt.Sprint("t", i)
	}
	err = ggml.WriteGGUF(f, ggml.KV{
		"general.architecture": "llama", "general.file_type": uint32(1), "llama.context_length": uint32(8192), "llama.embedding_length": uint32(4096),
		"llama.block_count": uint32(blocks), "llama.feed_forward_length": uint32(14336), "llama.attention.head_count": uint32(32),
		"llama.attention.head_count_kv": uint32(8), "llama.attention.layer_norm_rms_epsilon": float32(1e-5),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens,
	}, list)
	if err == nil {
		err = f.Truncate(int64(blocks)*440<<20 + 8<<20)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// clinic is a home in a temporary folder.
type clinic struct {
	t    *testing.T
	home string
}

func newClinic(t *testing.T) *clinic {
	t.Helper()
	for _, name := range []string{"SLUICE_HOST", "OLLAMA_HOST", "SLUICE_MODELS", "OLLAMA_MODELS", "SLUICE_FOLDERS", "SLUICE_MEMORY", "SLUICE_RUNNER", "SLUICE_BACKENDS"} {
		t.Setenv(name, "")
	}
	return &clinic{t, t.TempDir()}
}

// run gives the doctor's report and what it prints for people.
func (c *clinic) run(args ...string) (r report, text string, err error) {
	c.t.Helper()
	var out, words bytes.Buffer
	root := newRoot()
	root.SetArgs(append([]string{"doctor", "--json", "--home", c.home}, args...))
	root.SetOut(&out)
	err = root.ExecuteContext(c.t.Context())
	if out.Len() == 0 {
		return r, "", err
	}
	if err := errors.Join(json.Unmarshal(out.Bytes(), &r), r.print(&words)); err != nil {
		c.t.Fatalf("%v: %s", err, &out)
	}
	return r, words.String(), err
}

func machine(name string) string {
	return filepath.Join("..", "..", "testdata", "machines", name+".yaml")
}

func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q:\n%s", w, text)
		}
	}
}

func TestDoctorPlacesModelsOnDescribedMachines(t *testing.T) {
	c := newClinic(t)
	folder := filepath.Join(c.home, "gguf")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	bigModel(t, filepath.Join(folder, "big.gguf"), 32) // 13 GiB
	t.Setenv("SLUICE_FOLDERS", folder)
	for name, want := range map[string]struct {
		memory string
		shares []string // devices of its layers
		whole  bool
		words  []string
	}{
		"1x24gb":         {shares: []string{"CUDA0"}, whole: true, words: []string{"CUDA0: 33 layers", "Nothing is wrong."}},
		"2-unequal":      {shares: []string{"CUDA0"}, whole: true, words: []string{"NVIDIA GeForce RTX 3060"}},
		"8x80gb":         {shares: []string{"CUDA0"}, whole: true},
		"cpu-64gib":      {words: []string{"main memory", "Nothing is wrong."}},
		"container-4gib": {words: []string{"nowhere: the model needs", "warning: big", "the machine has"}},
		"laptop-igpu":    {words: []string{"nowhere: the model needs", "held by other programs"}}, // 16 GiB, of which 11 are free
	} {
		inBubble(t, name, func(t *testing.T) { // the scheduler waits 5 s for other programs
			c.t = t
			r, text, err := c.run("--simulate", machine(name))
			if err != nil || !r.OK {
				t.Fatalf("%v\n%s", err, text)
			}
			if len(r.Places) != 1 || r.Models.Installed != 1 {
				t.Fatalf("places %+v\n%s", r.Places, text)
			}
			p, layers := r.Places[0], 0
			for _, s := range p.Shares {
				layers += s.Layers
			}
			if got := len(p.Shares); got != len(want.shares) || got > 0 && p.Shares[0].Device != want.shares[0] && name != "8x80gb" || want.whole && layers != 33 {
				t.Errorf("%+v", p)
			}
			if bytes := sumOf(p.Memory); p.Error == "" && (bytes < 13*gib || p.NumCtx != 4096 || p.Parallel != 4) {
				t.Errorf("%d bytes: %+v", bytes, p)
			}
			if r.Runner != nil || r.Listen != nil {
				t.Errorf("it looked at this machine: %+v %+v", r.Runner, r.Listen)
			}
			wantWords(t, text, want.words...)
		})
	}
	c.t = t
	t.Run("limits.memory counts there too", func(t *testing.T) {
		c.t = t
		t.Setenv("SLUICE_MEMORY", "5GiB")
		r, text, err := c.run("--simulate", machine("8x80gb"))
		if err != nil || len(r.Places) != 1 || r.Places[0].Error == "" || r.Memory.Models != 5*gib {
			t.Errorf("%v %+v", err, r.Places)
		}
		wantWords(t, text, "5 GiB for all models together: limits.memory", "models may have 5 GiB")
	})
	t.Run("the catalogue's settings count", func(t *testing.T) {
		c.t = t
		file := filepath.Join(c.home, "models.yaml")
		writeFile(t, file, "models:\n  - {name: big, roles: [chat], num_ctx: 8192, parallel: 2, devices: [CUDA1, cpu, CUDA9]}\n")
		config := filepath.Join(c.home, "sluice.yaml")
		writeFile(t, config, "models: models.yaml\n")
		r, text, err := c.run("--simulate", machine("2-unequal"), "--config", config)
		if err != nil || len(r.Places) != 1 {
			t.Fatalf("%v\n%s", err, text)
		}
		if p := r.Places[0]; p.NumCtx != 8192 || p.Parallel != 2 || len(p.Shares) != 1 || p.Shares[0].Device != "CUDA1" || p.Shares[0].Layers >= 33 {
			t.Errorf("%+v", p)
		}
		if len(r.Defaults) == 0 || r.Defaults[0].Model != "big" {
			t.Errorf("%+v", r.Defaults)
		}
		wantWords(t, text, "may be loaded on CUDA9, which is not there", "default chat")
	})
}

func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func sumOf(list []runner.DeviceMemory) (n uint64) {
	for _, m := range list {
		n += m.Bytes()
	}
	return n
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorTellsWhatIsBroken(t *testing.T) {
	c := newClinic(t)
	writeFile(t, filepath.Join(c.home, "models/manifests/registry.ollama.ai/library/torn/latest"), `{"schemaVersion": 2, "layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:`+strings.Repeat("a", 64)+`", "size": 4}]}`)
	writeFile(t, filepath.Join(c.home, "sluice.yaml"), "limits: {memori: 1GiB}\nengine: {kv: f16}\n")
	r, text, err := c.run("--simulate", machine("cpu-8gib"), "--config", filepath.Join(c.home, "sluice.yaml"))
	if !errors.Is(err, errUnwell) || exitCode(err) != exitFailed || r.OK {
		t.Errorf("%v, ok %v", err, r.OK)
	}
	if len(r.Models.Broken) != 1 || r.Models.Broken[0].Name != "torn:latest" && !strings.Contains(r.Models.Broken[0].Name, "torn") {
		t.Errorf("%+v", r.Models)
	}
	wantWords(t, text, "error: settings: ", "line 1: unknown key limits.memori", "line 2: unknown key engine.kv", "torn", "sluice rm ")
	if r, text, err := c.run("--simulate", filepath.Join(c.home, "none.yaml")); exitCode(err) != exitUsage || text != "" || r.Version != "" {
		t.Errorf("a machine that is not there: %v %s", err, text)
	}
}

func TestDoctorChangesNothing(t *testing.T) {
	c := newClinic(t)
	if _, text, err := c.run("--simulate", machine("cpu-8gib")); err != nil || !strings.Contains(text, "which the first start makes") {
		t.Errorf("%v\n%s", err, text)
	}
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"doctor", "--home", c.home, "--simulate", machine("cpu-8gib")})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), "Sluice ") || !strings.HasSuffix(out.String(), "Nothing is wrong.\n") {
		t.Errorf("for people: %v\n%s", err, &out)
	}
	if entries, err := os.ReadDir(c.home); err != nil || len(entries) != 0 {
		t.Errorf("%v %v", entries, err)
	}
}

func TestDoctorLooksAtThisMachine(t *testing.T) {
	fake, err := fakebin.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := newClinic(t)
	t.Setenv("SLUICE_RUNNER", fake)
	t.Setenv("SLUICE_BACKENDS", filepath.Join(c.home, "sluice"))
	r, text, err := c.run("--listen", "127.0.0.1:0")
	if err != nil || !r.OK || r.Runner == nil || !r.Runner.Works || r.Listen == nil || !r.Listen.Free || len(r.Devices) == 0 || r.Devices[len(r.Devices)-1].ID != runner.CPU {
		t.Fatalf("%v\n%s", err, text)
	}
	if cpu := r.Devices[len(r.Devices)-1]; cpu.TotalBytes == 0 || cpu.FreeBytes > cpu.TotalBytes || cpu.Threads == 0 {
		t.Errorf("%+v", cpu)
	}
	wantWords(t, text, "warning: backends: the engine passes over "+filepath.Join(c.home, "sluice"))
	for name, binary := range map[string]string{"no runner": filepath.Join(c.home, "none"), "another program": "/bin/true"} {
		t.Setenv("SLUICE_RUNNER", binary)
		if r, text, err := c.run("--listen", "127.0.0.1:0"); !errors.Is(err, errUnwell) || r.Runner.Works || !strings.Contains(text, "no model can be loaded without it") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

func TestDoctorKnowsWhoHasTheAddress(t *testing.T) {
	answer := func(header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("X-Sluice-Version", header)
			}
			_, _ = w.Write([]byte(body))
		}
	}
	for name, want := range map[string]struct {
		handler http.HandlerFunc
		by      string
		sluice  bool
	}{
		"a Sluice":        {answer("1.2", `{"version":"0.17.4"}`), "a running Sluice 1.2", true},
		"an Ollama":       {answer("", `{"version":"0.17.4"}`), "an Ollama 0.17.4", false},
		"another program": {answer("", "hello"), "another program", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(want.handler)
			defer s.Close()
			if by, sluice := whoAnswers(t.Context(), s.Listener.Addr().String()); by != want.by || sluice != want.sluice {
				t.Errorf("%s, %v", by, sluice)
			}
			_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
			if by, _ := whoAnswers(t.Context(), ":"+port); by != want.by {
				t.Errorf("on all addresses: %s", by)
			}
		})
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if by, sluice := whoAnswers(ctx, silent.Addr().String()); by != "another program" || sluice {
		t.Errorf("%s, %v", by, sluice)
	}
}

func TestDoctorSaysWhyThereIsNoGPU(t *testing.T) {
	gpus := []inventory.GPU{{Name: "NVIDIA H100"}}
	for name, c := range map[string]struct {
		facts gpuFacts
		text  string
		hint  bool // there is one, and something can be done
	}{
		"nothing":                      {gpuFacts{engine: true, driver: inventory.ErrNoDriver}, "there is no NVIDIA driver, and no GPU", false},
		"a card without a driver":      {gpuFacts{engine: true, driver: inventory.ErrNoDriver, cards: []inventory.Card{{PCI: "0000:1b:00.0", Vendor: "NVIDIA"}}}, "an NVIDIA card (0000:1b:00.0), but no driver", true},
		"a broken driver":              {gpuFacts{engine: true, driver: errors.New("version mismatch")}, "version mismatch", true},
		"a driver without GPUs":        {gpuFacts{engine: true}, "shows no GPU", true},
		"backends is not set":          {gpuFacts{engine: true, gpus: gpus}, "sees 1 GPU (NVIDIA H100), but backends is not set", true},
		"no CUDA library in backends":  {gpuFacts{engine: true, gpus: gpus, backends: "/x/lib/ollama", libraries: []string{"libggml-base.so"}}, "finds no CUDA library", true},
		"a library that does not load": {gpuFacts{engine: true, gpus: gpus, backends: "/x/lib/ollama", libraries: []string{"libggml-cuda.so"}}, "is there, but the engine sees none", true},
		"no runner":                    {gpuFacts{gpus: gpus}, "the runner does not work", false},
		"a card of another":            {gpuFacts{engine: true, driver: inventory.ErrNoDriver, cards: []inventory.Card{{PCI: "0000:00:02.0", Vendor: "Intel"}}}, "the Intel GPU (0000:00:02.0) would need ggml's Vulkan", false},
	} {
		t.Run(name, func(t *testing.T) {
			text, hint := c.facts.why()
			if !strings.Contains(text, c.text) || (hint != "") != c.hint {
				t.Errorf("%q, hint %q", text, hint)
			}
		})
	}
}

// The rule is the module's; it was seen with libraries that print when they are loaded.
func TestDoctorKnowsWhichFoldersTheEngineLooksInto(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"lib/ollama", "lib/ollama/cuda_v12", "lib/sluice", "bin"} {
		writeFile(t, filepath.Join(root, dir, "libggml-cuda.so"), "")
	}
	at := func(dirs ...string) string {
		for i := range dirs {
			dirs[i] = filepath.Join(root, dirs[i])
		}
		return strings.Join(dirs, string(filepath.ListSeparator))
	}
	for name, c := range map[string]struct {
		folders       string
		found, passed int
	}{
		"none set":                 {"", 0, 0},
		"lib/ollama and below":     {at("lib/ollama", "lib/ollama/cuda_v12"), 2, 0},
		"beside the runner":        {at("bin"), 1, 0},
		"another place":            {at("lib/sluice"), 0, 1},
		"one of two":               {at("lib/sluice", "lib/ollama"), 1, 1},
		"a folder that is missing": {at("x/lib/ollama"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			names, passed := backendLibraries(c.folders, filepath.Join(root, "bin", "sluice-runner"))
			if len(names) != c.found || len(passed) != c.passed {
				t.Errorf("%q, %q", names, passed)
			}
		})
	}
}
