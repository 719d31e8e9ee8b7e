package gateway

import (
	"encoding/json"
	"testing"
	"time"

	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
)

// TestWhatPsSaysOfARunner: with the numbers that the scheduler has, and no others.
func TestWhatPsSaysOfARunner(t *testing.T) {
	model := &models.Model{Name: "m:latest", Digest: "d", Size: 500}
	memory := []runner.DeviceMemory{{Device: "CUDA0", Weights: 60, KV: 20, Compute: 5}, {Device: "CUDA1", Weights: 30}, {Device: runner.CPU, Weights: 7}}
	shares := []runner.Share{{Device: "CUDA0", Layers: 20}, {Device: "CUDA1", Layers: 3}}
	for name, row := range map[string]struct {
		loaded scheduler.Loaded
		want   string // of the fields below
	}{
		"on two GPUs and in main memory": {
			scheduler.Loaded{Model: model, State: "ready", Report: runner.LoadReport{NumCtx: 4096, Parallel: 4, Backend: "llama"}, Memory: memory, Placement: shares, Layers: 33, NumCtx: 4096, InFlight: 2, Waiting: 1, Warning: "w"},
			`{"size":122,"size_vram":115,"context_length":4096,"state":"ready","in_flight":2,"waiting":1,"parallel":4,"backend":"llama","placement":[{"device":"CUDA0","layers":20,"bytes":85},{"device":"CUDA1","layers":3,"bytes":30},{"device":"cpu","bytes":7}],"layers":33,"warning":"w"}`,
		},
		"loading, as estimated": {
			scheduler.Loaded{Model: model, State: "loading", Memory: memory[1:2], Placement: shares[1:], Layers: 3, NumCtx: 8192, Progress: .5},
			`{"size":30,"size_vram":30,"context_length":8192,"state":"loading","progress":0.5,"in_flight":0,"waiting":0,"placement":[{"device":"CUDA1","layers":3,"bytes":30}],"layers":3}`,
		},
		"loading, and nothing is known yet": {
			scheduler.Loaded{Model: model, State: "loading"},
			`{"size":500,"size_vram":0,"context_length":0,"state":"loading","in_flight":0,"waiting":0,"placement":[]}`,
		},
		"elsewhere, and pinned": {
			scheduler.Loaded{Model: model, State: "ready", Remote: "vllm-a", Pinned: true, Progress: 1},
			`{"size":500,"size_vram":0,"context_length":0,"state":"ready","in_flight":0,"waiting":0,"placement":[],"pinned":true,"remote":"vllm-a"}`,
		},
	} {
		row.loaded.ExpiresAt = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
		text, err := json.Marshal((&server{now: time.Now}).loadedModel(row.loaded))
		if err != nil {
			t.Fatal(err)
		}
		got, want := object(t, text), object(t, []byte(row.want))
		if got["expires_at"] != "2318-01-01T00:00:00Z" || got["name"] != "m:latest" || got["digest"] != "d" {
			t.Errorf("%s: %s", name, text)
		}
		for _, known := range []string{"name", "model", "digest", "details", "expires_at"} {
			delete(got, known)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("%s:\n%s, want\n%s", name, a, b)
		}
	}
}
