package scheduler

import (
	"errors"
	"testing"
	"time"

	"sluice/fault"
)

func TestTheBrake(t *testing.T) {
	type attempt struct {
		after  time.Duration // since the one before
		numCtx int
		waits  time.Duration // that it is told to; 0: it tries, and fails
	}
	rows := map[string][]attempt{
		"the pause doubles up to a minute": {
			{0, 4096, 0}, {time.Second, 4096, time.Second}, {time.Second, 4096, 0}, {time.Second, 4096, 3 * time.Second}, {3 * time.Second, 4096, 0},
			{8 * time.Second, 4096, 0}, {16 * time.Second, 4096, 0}, {32 * time.Second, 4096, 0}, {time.Second, 4096, 59 * time.Second},
			{59 * time.Second, 4096, 0}, {time.Second, 4096, 59 * time.Second},
		},
		"ten minutes later nothing is remembered": {
			{0, 4096, 0}, {2 * time.Second, 4096, 0}, {10 * time.Minute, 4096, 0}, {time.Second, 4096, time.Second},
		},
		"half the context may try": {
			{0, 4096, 0}, {0, 2049, 2 * time.Second}, {0, 2048, 0}, {0, 1500, 4 * time.Second}, {0, 8192, 4 * time.Second}, {0, 1024, 0},
		},
	}
	for name, attempts := range rows {
		t.Run(name, func(t *testing.T) {
			var f *failure
			now := time.Time{}.Add(time.Hour)
			for i, a := range attempts {
				now = now.Add(a.after)
				var waits time.Duration
				if f != nil {
					var known *fault.Error
					if errors.As(f.stops(now, a.numCtx), &known) {
						waits = known.RetryAfter
						if known.Code != fault.Invalid || known.Msg != "it crashed" {
							t.Errorf("attempt %d: %v", i, known)
						}
					}
				}
				if waits != a.waits {
					t.Fatalf("attempt %d waits %s, want %s", i, waits, a.waits)
				}
				if waits == 0 {
					f = f.oneMore(now, a.numCtx, fault.New(fault.Invalid, "test", "it crashed"))
				}
			}
		})
	}
	f := (*failure)(nil).oneMore(time.Now(), 4096, errors.New("unknown"))
	if f.heals(4095) || !f.heals(4096) {
		t.Error("a load heals a failure exactly when its context is as large")
	}
	if err := f.stops(f.at, 4096); err == nil || fault.CodeOf(err) != fault.Internal {
		t.Errorf("an error that nobody classified: %v", err)
	}
}
