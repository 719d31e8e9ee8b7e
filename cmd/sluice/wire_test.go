package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/ollama/ollama/fs/ggml"

	"sluice/agent"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
)

// recordingRunner keeps the request that it gets, and gives as many answers as are asked for, piece by piece.
type recordingRunner struct {
	scheduler.Runner
	got  runner.GenerateRequest
	done chan struct{}
}

func (r *recordingRunner) Load(_ context.Context, req runner.LoadRequest, _ func(float32)) (runner.LoadReport, error) {
	return runner.LoadReport{NumCtx: req.NumCtx}, nil
}

func (r *recordingRunner) Generate(_ context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	r.got = req
	for i := range max(1, req.N) {
		for _, text := range []string{"SELECT ", strconv.Itoa(i + 1)} {
			if err := emit(runner.Chunk{Index: i, Text: text}); err != nil {
				return err
			}
		}
	}
	return emit(runner.Chunk{Done: true})
}
func (r *recordingRunner) Done() <-chan struct{}      { return r.done }
func (r *recordingRunner) Err() error                 { return nil }
func (r *recordingRunner) Stop(context.Context) error { close(r.done); return nil }

// TestTheCompleterKeepsTheModelsOwnStops: an asker's stop strings come besides those of the Modelfile, and its limit
// stands before the Modelfile's.
func TestTheCompleterKeepsTheModelsOwnStops(t *testing.T) {
	installed, err := models.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	err = ggml.WriteGGUF(file, ggml.KV{"general.architecture": "llama", "llama.context_length": uint32(4096), "llama.embedding_length": uint32(8), "llama.block_count": uint32(1),
		"tokenizer.ggml.tokens": []string{"a", "b"}}, []*ggml.Tensor{{Name: "token_embd.weight", Shape: []uint64{8, 2}, WriterTo: bytes.NewReader(make([]byte, 64))}})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	if err := installed.AddBlob(t.Context(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if err := installed.Create(t.Context(), models.CreateRequest{Name: "tiny", Template: "{{ range .Messages }}{{ .Content }}{{ end }}", Files: map[string]string{"m.gguf": digest},
		Parameters: map[string]any{"stop": []any{"<|own|>"}, "num_predict": 3.0}}, nil); err != nil {
		t.Fatal(err)
	}
	r := &recordingRunner{done: make(chan struct{})}
	sched, err := scheduler.New(scheduler.Config{Start: func(context.Context) (scheduler.Runner, error) { return r, nil }, NumCtx: 100, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sched.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	c := &completer{models: installed, scheduler: sched}
	for max, want := range map[int]int{0: 100, 7: 7} {
		texts, err := c.Complete(t.Context(), agent.Completion{Model: "tiny", Messages: []agent.Message{{Role: "user", Content: "x"}}, Seed: 5, MaxTokens: max, Stop: []string{";"}})
		if err != nil || !slices.Equal(texts, []string{"SELECT 1"}) {
			t.Fatalf("%q, %v", texts, err)
		}
		if !slices.Equal(r.got.Stop, []string{"<|own|>", ";"}) || r.got.NumPredict != want || r.got.Truncate || r.got.Sampling.Seed != 5 || r.got.Sampling.Temperature != 0 || r.got.Owner != "agent" {
			t.Errorf("with %d tokens at most: %+v", max, r.got)
		}
	}
	texts, err := c.Complete(t.Context(), agent.Completion{Model: "tiny", Messages: []agent.Message{{Role: "user", Content: "x"}}, Temperature: 0.5, Grammar: `root ::= "a"`, N: 3, Expect: true})
	if err != nil || !slices.Equal(texts, []string{"SELECT 1", "SELECT 2", "SELECT 3"}) {
		t.Fatalf("%q, %v", texts, err)
	}
	if r.got.Grammar != `root ::= "a"` || r.got.N != 3 || r.got.Draft != runner.DraftExpect {
		t.Errorf("several under a grammar: %+v", r.got)
	}
}
