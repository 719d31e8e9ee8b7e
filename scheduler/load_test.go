package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
)

func TestLoadRequest(t *testing.T) {
	rows := map[string]struct {
		cfg                     Config // zero: four at a time on three cores
		model                   models.Facts
		opts                    func(*models.Options)
		ctx, batch, par, thread int
	}{
		"the defaults":                              {ctx: 4096, batch: 512, par: 4, thread: 3},
		"a batch and threads beyond all reason":     {opts: func(o *models.Options) { o.NumBatch, o.NumThread = 1<<30, 1 }, ctx: 4096, batch: 2048, par: 4, thread: 1},
		"nonsense is the default":                   {opts: func(o *models.Options) { o.NumBatch, o.NumThread = -5, -5 }, ctx: 4096, batch: 512, par: 4, thread: 3},
		"an encoder reads a text in one batch":      {model: models.Facts{Pooling: true, ContextLength: 256}, ctx: 256, batch: 256, par: 4, thread: 3},
		"without a setting, four at a time":         {cfg: Config{Threads: 3}, ctx: 4096, batch: 512, par: 4, thread: 3},
		"fewer with a long context":                 {cfg: Config{Threads: 3, NumCtx: 16 << 10}, ctx: 16 << 10, batch: 512, par: 2, thread: 3},
		"one with a very long one":                  {cfg: Config{Threads: 3, NumCtx: 64 << 10}, ctx: 64 << 10, batch: 512, par: 1, thread: 3},
		"but as many as the setting says":           {cfg: Config{Threads: 3, NumCtx: 64 << 10, Parallel: 8}, ctx: 64 << 10, batch: 512, par: 8, thread: 3},
		"not more threads than there are cores":     {opts: func(o *models.Options) { o.NumThread = 64 }, ctx: 4096, batch: 512, par: 4, thread: 3},
		"the default is capped at what was trained": {model: models.Facts{ContextLength: 2048}, ctx: 2048, batch: 512, par: 4, thread: 3},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if row.cfg.Threads == 0 {
				row.cfg = Config{Parallel: 4, Threads: 3}
			}
			cfg := row.cfg.withDefaults()
			want := Want{Model: &models.Model{Path: "/m", Facts: row.model}, Options: models.DefaultOptions()}
			if row.opts != nil {
				row.opts(&want.Options)
			}
			got := cfg.loadRequest(want, capCtx(want.Model, cfg.NumCtx))
			ways := cfg.loads(&waiter{want: want}, got.NumCtx, 0, -1)
			if got.NumCtx != row.ctx || got.NumBatch != row.batch || ways[0].Parallel != row.par || got.NumThread != row.thread {
				t.Errorf("got %+v, %+v", got, ways)
			}
			if last := ways[len(ways)-1].Parallel; (row.cfg.Parallel > 0) != (len(ways) == 1) && last != 1 {
				t.Errorf("the smallest way has %d sequences", last)
			}
		})
	}
}

// TestADeathInTheLoadSaysWhatToDo: out of memory and a crash look the same to who asks, unless somebody tells.
func TestADeathInTheLoadSaysWhatToDo(t *testing.T) {
	rows := map[string]struct {
		exit runner.ExitError
		code fault.Code
		says string
	}{
		"killed from outside: memory": {runner.ExitError{Signal: "killed", Code: -1}, fault.Busy, "memory ran out"},
		"an assertion in the engine":  {runner.ExitError{Signal: "aborted", Code: -1, LastLog: []string{"GGML_ASSERT in /secret/path"}}, fault.Invalid, "the engine crashed on it (ended by signal: aborted)"},
		"an exit":                     {runner.ExitError{Code: 2}, fault.Invalid, "exit status 2"},
	}
	for name, row := range rows {
		err := fmt.Errorf("above: %w", loadDeath(fault.Wrap(&row.exit, fault.Busy, "runner", "the next request loads the model again")))
		shown := fault.Public(err)
		if shown.Code != row.code || !strings.Contains(shown.Msg, row.says) || strings.Contains(shown.Msg, "secret") {
			t.Errorf("%s: %v %q", name, shown.Code, shown.Msg)
		}
	}
	if err := errors.New("no such tensor"); loadDeath(err) != err {
		t.Error("an error that is no death is changed")
	}
}
