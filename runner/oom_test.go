package runner

import (
	"errors"
	"testing"
	"time"

	"sluice/fault"
)

func TestKilledForMemory(t *testing.T) {
	killed := died("loading", &ExitError{Signal: "killed", Code: -1})
	for name, row := range map[string]struct {
		err         error
		before, now uint64
		memory      bool
	}{
		"the kernel counts one more":            {killed, 3, 4, true},
		"somebody else killed it":               {killed, 3, 3, false},
		"the kernel does not count":             {killed, 0, 0, false},
		"it aborted beside another's kill":      {died("loading", &ExitError{Signal: "aborted", Code: -1}), 3, 4, false},
		"it exited beside another's kill":       {died("loading", &ExitError{Code: 1}), 3, 4, false},
		"we killed it for its silence":          {died("loading", &ExitError{Signal: "killed", Silent: time.Minute}), 3, 4, false},
		"a refusal beside another's kill":       {fault.New(fault.Invalid, "x", "damaged"), 3, 4, false},
		"no error at all beside another's kill": {nil, 3, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := killedForMemory(row.err, row.before, row.now)
			var f *fault.Error
			is := errors.As(err, &f) && f.Code == fault.TooLarge && f.Kind == KindMemory
			var exit *ExitError
			if is != row.memory || is && !errors.As(err, &exit) || !is && !errors.Is(err, row.err) {
				t.Errorf("got %v", err)
			}
		})
	}
	if got := countedKills("nr_free_pages 12\noom_kill 7\noom_kill_x 9\n"); got != 7 {
		t.Errorf("counted %d", got)
	}
}
