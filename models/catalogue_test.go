package models

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/fault"
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
		"a context":                 {text: "models:\n  - {name: x, roles: [chat], num_ctx: 8192}\n", err: "models.x.num_ctx is not there in this version"},
		"a number of sequences":     {text: "models:\n  - {name: x, roles: [chat], parallel: 2}\n", err: "models.x.parallel is not there in this version"},
		"a keep_alive":              {text: "models:\n  - {name: x, roles: [chat], keep_alive: 10m}\n", err: "models.x.keep_alive is not there in this version"},
		"a pin":                     {text: "models:\n  - {name: 'x:1b', roles: [chat], pin: false}\n", err: "models.x:1b.pin is not there in this version"},
		"devices":                   {text: "models:\n  - {name: x, roles: [chat], devices: [0, 1]}\n", err: "models.x.devices is not there in this version"},
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
