package runner

import "context"

// Engine is what a child serves. runner/engine implements it on llama.cpp; internal/fakerunner without a model.
// All but Load may be called by many goroutines at once, and only after Load has succeeded.
type Engine interface {
	// Load is called once at most. progress (0..1) is called from one goroutine.
	Load(ctx context.Context, req LoadRequest, progress func(float32)) (LoadReport, error)
	// Generate emits text and, last, exactly one chunk with Done and Usage; or it returns an error.
	Generate(ctx context.Context, req GenerateRequest, emit func(Chunk) error) error
	Embed(ctx context.Context, req EmbedRequest) (EmbedResponse, error)
	Tokenize(ctx context.Context, text string) ([]int, error)
	Detokenize(ctx context.Context, tokens []int) (string, error)
}
