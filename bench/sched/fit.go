package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/fit"
)

// What each model is loaded with: contexts up to 32k (the engine caps them at the trained length), one sequence and four, and all
// types of caches. Flash attention is as the engine chooses: without for f16, with for the others.
var (
	fitContexts = []int{512, 4096, 32768}
	fitParallel = []int{1, 4}
	fitCaches   = []string{"f16", "q8_0", "q4_0"}
)

// fitErrors loads the models of a folder (dev/models.sh puts them there) with each setting, without mmap, and compares what the
// runner has allocated with what fit.Estimate says. It prints a table in bytes, and gives the largest |estimate - allocated| / allocated.
// Each model has a line with its models.Layout first, so that scheduler/fit/testdata/measured.tsv, which is such a table, is a test
// without the models.
func fitErrors(ctx context.Context, runnerBinary, modelsDir string, print func(string, ...any)) (worst float64, err error) {
	list, done, err := fitModels(ctx, modelsDir)
	if err != nil {
		return 0, err
	}
	defer done()
	print("model\tctx\tsequences\tcache\tweights\tkv\tcompute\terror\n")
	for _, m := range list {
		layout, err := json.Marshal(m.Facts.Layout)
		if err != nil {
			return worst, err
		}
		print("layout\t%s\t%d\t%s\n", m.Name, m.Facts.ContextLength, layout)
		for _, req := range fitRequests(m) {
			memory, err := fitLoad(ctx, runnerBinary, req)
			if err != nil {
				return worst, fmt.Errorf("%s with num_ctx %d, parallel %d and a cache of %s: %w", m.Name, req.NumCtx, req.Parallel, req.KVCacheType, err)
			}
			var estimated uint64
			for _, line := range fit.Estimate(fit.LoadOf(m, req), nil) {
				estimated += line.Bytes()
			}
			allocated := fit.Allocated(memory)
			off := float64(estimated)/float64(allocated) - 1
			worst = max(worst, math.Abs(off))
			var all runner.DeviceMemory
			for _, line := range memory {
				all.Weights, all.KV, all.Compute = all.Weights+line.Weights, all.KV+line.KV, all.Compute+line.Compute
			}
			print("%s\t%d\t%d\t%s\t%d\t%d\t%d\t%+.4f\n", m.Name, req.NumCtx, req.Parallel, req.KVCacheType, all.Weights, all.KV, all.Compute, off)
		}
	}
	return worst, nil
}

// fitRequests are the loads of one model; contexts beyond its trained length are that one. An encoder takes a text in one batch,
// as the scheduler asks for it.
func fitRequests(m *models.Model) (list []runner.LoadRequest) {
	last := 0
	for _, numCtx := range fitContexts {
		if trained := m.Facts.ContextLength; trained > 0 {
			numCtx = min(numCtx, trained)
		}
		if numCtx == last {
			continue
		}
		last = numCtx
		batch := models.DefaultOptions().NumBatch
		if m.Facts.Pooling {
			batch = numCtx
		}
		for _, parallel := range fitParallel {
			for _, cache := range fitCaches {
				list = append(list, runner.LoadRequest{ModelPath: m.Path, NumCtx: numCtx, Parallel: parallel, NumBatch: batch, KVCacheType: cache})
			}
		}
	}
	return list
}
