package scheduler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestZZBurst(t *testing.T) {
	m, err := describe(map[string]string{"gpu": "24GiB,24GiB", "ram": "64GiB"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.machine = m
	for i := range 30 {
		name := fmt.Sprint("m", i)
		model := testModel(name, 32768)
		model.Facts.Layout = layout(32, 6<<30, 64<<10)
		w.plans[name] = plan{model: model, took: 50 * time.Millisecond}
	}
	s := started(t, Config{Start: w.start, Inventory: m, MaxQueue: 100000, MaxTurn: 200 * time.Millisecond})
	var all sync.WaitGroup
	begin := time.Now()
	for i := range 5000 {
		all.Go(func() {
			ctx, c := context.WithTimeout(t.Context(), 100*time.Second)
			defer c()
			model := *w.plans[fmt.Sprint("m", i%30)].model
			l, err := s.Lease(ctx, Want{Model: &model, Options: options(0)})
			if err != nil {
				t.Error(err)
				return
			}
			l.Release()
		})
	}
	var worst time.Duration
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for {
		select {
		case <-done:
			t.Logf("all %s, worst ask %s", time.Since(begin), worst)
			return
		case <-time.After(20 * time.Millisecond):
			b := time.Now()
			s.Stats(t.Context())
			worst = max(worst, time.Since(b))
		}
	}
}
