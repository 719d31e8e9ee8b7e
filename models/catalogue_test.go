package models

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/fault"
	"sluice/units"
)

func TestCommittedCatalogue(t *testing.T) {
	c, err := LoadCatalogue("../models.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Registries, []string{"registry.ollama.ai"}) {
		t.Errorf("registries: %v", c.Registries)
	}
	first := c.Models[0]
	if first.Name != "qwen2.5:7b" || first.MinMemory != 8<<30 {
		t.Errorf("the list starts with %+v, the contract says qwen2.5:7b from 8 GiB up", first)
	}
	for _, e := range c.Models {
		if e.Size == 0 || e.Source == "" {
			t.Errorf("%s has no size or source: the server tells them to who has no model", e.Name)
		}
	}
	installed := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	rows := map[string]struct {
		role      string
		installed func(string) bool
		memory    uint64
		want      string
		missing   string
	}{
		"the first that is installed":          {role: RoleSQL, installed: installed("qwen2.5-coder:0.5b", "qwen2.5:7b"), memory: 16 << 30, want: "qwen2.5:7b"},
		"one that does not fit is passed over": {role: RoleSQL, installed: installed("qwen2.5-coder:0.5b", "qwen2.5:7b"), memory: 4 << 30, want: "qwen2.5-coder:0.5b"},
		"8 GiB is enough for the first":        {role: RoleChat, installed: installed("qwen2.5:7b"), memory: 8 << 30, want: "qwen2.5:7b"},
		"none installed: the first that fits":  {role: RoleSQL, installed: installed(), memory: 4 << 30, missing: "qwen2.5-coder:1.5b"},
		"none fits":                            {role: RoleSQL, installed: installed(), memory: 1 << 20},
		"unknown memory: everything fits":      {role: RoleSQL, installed: installed(), missing: "qwen2.5:7b"},
		"the role counts":                      {role: RoleEmbed, installed: installed("qwen2.5:7b"), missing: "all-minilm"},
		"smollm2 chats but writes no SQL":      {role: RoleSQL, installed: installed("smollm2:135m"), memory: 2 << 30, missing: "qwen2.5-coder:0.5b"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got, missing := c.Default(row.role, row.installed, row.memory)
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if missing == nil {
				missing = &Entry{}
			}
			if missing.Name != row.missing {
				t.Errorf("missing is %q, want %q", missing.Name, row.missing)
			}
		})
	}
	if last := c.Models[len(c.Models)-1]; last.Name != "all-minilm" || last.Size.String() != "46 MB" {
		t.Errorf("the last is %+v", last)
	}
}

func TestLoadCatalogue(t *testing.T) {
	rows := map[string]struct{ text, err string }{
		"all fields":                {text: "registries: [a.example]\nmodels:\n  - {name: 'x:1b', roles: [chat], min_memory: 1.5GiB, size: 2 GB}\n"},
		"an unknown key":            {text: "models:\n  - name: x\n    roles: [chat]\n    rolls: [chat]\n", err: `line 4: unknown field "rolls"`},
		"an unknown key at the top": {text: "models: []\nregistry: a\n", err: `line 2: unknown field "registry"`},
		"a wrong type":              {text: "models:\n  - name: x\n    roles: [chat]\n    source: [a]\n", err: "line 4"},
		"a size without sense":      {text: "models:\n  - name: x\n    roles: [chat]\n    size: big\n", err: `"big" is not a size`},
		"not YAML":                  {text: "models: [\n", err: "line"},
		"all mistakes at once":      {text: "registries: [a/b]\nmodels:\n  - {name: '../x', roles: [chat]}\n  - {name: y, roles: [poet]}\n  - {name: Y, roles: []}\n", err: "registry"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "models.yaml")
			if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := LoadCatalogue(path)
			if row.err != "" {
				wantFault(t, err, fault.Invalid, row.err)
				if name == "all mistakes at once" {
					for _, part := range []string{`"a/b"`, `"../x"`, `"poet"`, "no roles"} {
						if !strings.Contains(err.Error(), part) {
							t.Errorf("%q is not reported in %v", part, err)
						}
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			e := c.Models[0]
			if e.MinMemory != 3<<29 || e.Size != 2e9 || e.Name != "x:1b" {
				t.Errorf("got %+v", e)
			}
		})
	}
	_, err := LoadCatalogue(filepath.Join(t.TempDir(), "none"))
	wantFault(t, err, fault.NotFound, "cannot be read")
}

// TestCatalogueKeys tries each key of an entry with values that have a meaning, and with some that have none.
func TestCatalogueKeys(t *testing.T) {
	seconds := func(s units.Seconds) *units.Seconds { return &s }
	good := map[string]Entry{
		"":                               {},
		"num_ctx: 8192":                  {NumCtx: 8192},
		"num_ctx: 0":                     {},
		"parallel: 4":                    {Parallel: 4},
		"replicas: 2":                    {Replicas: 2},
		"pin: true":                      {Pin: true},
		"pin: false":                     {},
		"devices: [CUDA0, 'GPU-1']":      {Devices: []string{"CUDA0", "GPU-1"}},
		"devices: []":                    {Devices: []string{}},
		"source: reg.example:5000/a/b:1": {Source: "reg.example:5000/a/b:1"},
		"size: 398MB":                    {Size: 398e6},
		"min_memory: 1.5GiB":             {MinMemory: 3 << 29},
		"min_memory: 4096":               {MinMemory: 4096},
		"keep_alive: 10m":                {KeepAlive: seconds(units.Seconds(10 * time.Minute))},
		"keep_alive: 1h30m":              {KeepAlive: seconds(units.Seconds(90 * time.Minute))},
		"keep_alive: 300":                {KeepAlive: seconds(units.Seconds(5 * time.Minute))},
		"keep_alive: '300'":              {KeepAlive: seconds(units.Seconds(5 * time.Minute))},
		"keep_alive: 1.5":                {KeepAlive: seconds(units.Seconds(1500 * time.Millisecond))},
		"keep_alive: 0":                  {KeepAlive: seconds(0)},
		"keep_alive: -1":                 {KeepAlive: seconds(units.Forever)},
		"keep_alive: '-1m'":              {KeepAlive: seconds(units.Forever)},
		"keep_alive: null":               {},
		"pin: true, keep_alive: -1":      {Pin: true, KeepAlive: seconds(units.Forever)},
		"pin: false, keep_alive: 5m":     {KeepAlive: seconds(units.Seconds(5 * time.Minute))},
	}
	read := func(keys string) (Catalogue, error) {
		return ParseCatalogue("m.yaml", []byte("models:\n  - {name: 'x:1b', roles: [chat], "+keys+"}\n"))
	}
	for keys, want := range good {
		want.Name, want.Roles = "x:1b", []string{RoleChat}
		c, err := read(keys)
		if err != nil {
			t.Errorf("%s: %v", keys, err)
		} else if !reflect.DeepEqual(c.Models[0], want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", keys, c.Models[0], want)
		}
	}
	bad := map[string]string{
		"num_ctx: -1":               "must not be negative",
		"num_ctx: many":             "line 2",
		"num_ctx: 99999999999":      "num_ctx",
		"parallel: -2":              "must not be negative",
		"parallel: 257":             "parallel",
		"replicas: -1":              "must not be negative",
		"pin: perhaps":              "line 2",
		"pin: true, keep_alive: 5m": "pin keeps it for ever",
		"pin: true, keep_alive: 0":  "pin keeps it for ever",
		"keep_alive: soon":          `"soon" is neither seconds`,
		"keep_alive: true":          `"true" is neither seconds`,
		"keep_alive: [5m]":          "neither seconds",
		"keep_alive: 5 m":           "neither seconds",
		"devices: CUDA0":            "line 2",
		"devices: ['']":             "device",
		"devices: [a, a]":           "device",
		"source: 'a b'":             "invalid source",
		"source: ../x":              "invalid source",
		"size: -1":                  "is not a size",
		"min_memory: much":          `"much" is not a size`,
		"numctx: 1":                 `unknown field "numctx"`,
	}
	for keys, want := range bad {
		c, err := read(keys)
		if err == nil {
			t.Errorf("%s was taken: %+v", keys, c.Models[0])
			continue
		}
		wantFault(t, err, fault.Invalid, want)
		if msg := fault.Public(err).Msg; !strings.Contains(msg, "m.yaml") {
			t.Errorf("%s: which file is not said: %s", keys, msg)
		}
	}
}

func TestCatalogueRegistries(t *testing.T) {
	for host, good := range map[string]bool{
		"registry.ollama.ai": true, "localhost:5000": true, "hf.co": true, "10.0.0.1:443": true,
		"a/b": false, "http://a.example": false, "": false, "a.example/": false, "a b": false, "a.example:5000/x": false, "-a.example": false,
	} {
		_, err := ParseCatalogue("m.yaml", []byte("registries: ['"+host+"']\n"))
		if (err == nil) != good {
			t.Errorf("%q: %v", host, err)
		}
	}
}

func TestCatalogueEntry(t *testing.T) {
	c, err := ParseCatalogue("m.yaml", []byte("models:\n  - {name: all-minilm, roles: [embed]}\n  - {name: 'Qwen2.5:7b', roles: [chat], num_ctx: 4096}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"all-minilm": "all-minilm", "ALL-MINILM:latest": "all-minilm", "registry.ollama.ai/library/all-minilm:LATEST": "all-minilm", "library/all-minilm": "all-minilm",
		"qwen2.5:7B": "Qwen2.5:7b", "qwen2.5": "", "me/qwen2.5:7b": "", "hf.co/library/all-minilm": "", "": "", "../x": "",
	} {
		got := c.Entry(name)
		if got == nil {
			got = &Entry{}
		}
		if got.Name != want {
			t.Errorf("%q gives %q, want %q", name, got.Name, want)
		}
	}
}

func TestSameName(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"x", "X:latest"}: true, {"all-minilm", "registry.ollama.ai/library/ALL-MINILM"}: true, {"a/x:1b", "A/x:1B"}: true,
		{"x", "x:1b"}: false, {"x", "a/x"}: false, {"x", "y"}: false, {"", ""}: false, {"../x", "../x"}: false, {"x", ""}: false,
	} {
		if got := SameName(pair[0], pair[1]); got != want || SameName(pair[1], pair[0]) != want {
			t.Errorf("%q and %q: %v", pair[0], pair[1], got)
		}
	}
}
