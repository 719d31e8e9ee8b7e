package main

import (
	"context"
	"fmt"
	"path/filepath"

	"sluice/bench/beside"
)

// The models, by the names that they get.
var files = map[string]string{
	"q05":   "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
	"gemma": "gemma3-270m-q4_k_m.gguf",
	"smol":  "smollm2-135m-instruct-q4_1.gguf",
}

var scenes = []beside.Scene{
	{Name: "sched.swap_p95_vs_ollama", Run: of(func(o outcome) float64 { return o.p95(o.ours) / o.p95(o.peers) })},
	{Name: "sched.swaps_vs_ollama", Run: of(func(o outcome) float64 { return float64(o.ours.loads) / float64(o.peers.loads) })},
	{Name: "sched.errors", Run: of(func(o outcome) float64 { return float64(len(o.ours.errors)) })},
	{Name: "sched.fit_error", Run: fitError},
}

func main() { beside.Main(files, scenes, "sched.") }

// of runs the scene once, whichever of its figures is asked for first.
func of(figure func(outcome) float64) func(context.Context, *beside.Bench) (float64, error) {
	return func(ctx context.Context, b *beside.Bench) (float64, error) {
		if swapped == nil {
			o, err := swap(ctx, b)
			if err != nil {
				return 0, err
			}
			swapped = &o
		}
		return figure(*swapped), nil
	}
}

var swapped *outcome

// fitError is the largest difference between what fit.Estimate says and what the runner allocated, by the latter.
func fitError(ctx context.Context, b *beside.Bench) (float64, error) {
	b.EndAll()
	return fitErrors(ctx, filepath.Join(filepath.Dir(b.Sluice), "sluice-runner"), b.Models, func(format string, args ...any) { fmt.Printf(format, args...) })
}
