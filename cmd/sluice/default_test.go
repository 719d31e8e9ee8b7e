package main

import (
	"context"
	"strings"
	"testing"

	"sluice/agent"
	"sluice/config"
	"sluice/fault"
	"sluice/models"
)

// TestAnAskWithoutAModelSaysWhichOneToGet: the first that fits this machine, its size and the command.
func TestAnAskWithoutAModelSaysWhichOneToGet(t *testing.T) {
	installed, err := models.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		gib       uint64
		catalogue string
		want      string
	}{
		"a large machine":     {16, threeModels, "big (4.7 GB): sluice pull big"},
		"a small one":         {2, threeModels, "small (398 MB): sluice pull small"},
		"none that fits":      {2, "models: [{name: big, roles: [sql], min_memory: 8GiB}]", "fits into 2 GiB"},
		"memory is not known": {0, threeModels, "big (4.7 GB): sluice pull big"},
	} {
		var c catalogue
		c.set(parsed(t, row.catalogue))
		d := &defaultModel{cfg: &config.Config{}, installed: installed, catalogue: &c, memory: func(context.Context) uint64 { return row.gib << 30 }}
		_, err := d.Ask(t.Context(), nil, agent.Ask{Question: "how many?"})
		if fault.CodeOf(err) != fault.Conflict || !strings.Contains(describe(err), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}
