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
	Rerank(ctx context.Context, req RerankRequest) (RerankResponse, error)
	// Tokenize adds the tokens that the tokenizer puts around a text (BOS, EOS) only when special says so.
	Tokenize(ctx context.Context, text string, special bool) ([]int, error)
	Detokenize(ctx context.Context, tokens []int) (string, error)
	// SetThreads changes how many cores are computed on, from the next batch on.
	SetThreads(ctx context.Context, n int) error
	// Ping returns when the engine is between two batches, or idle. A parent that waits too long for it replaces the child.
	Ping(ctx context.Context) error
}
