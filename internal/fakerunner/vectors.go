package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"sluice/fault"
	"sluice/runner"
)

func (f *fake) width() int {
	if f.script.width > 0 {
		return f.script.width
	}
	return 8
}

func (f *fake) Embed(_ context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error) {
	var out runner.EmbedResponse
	if f.script.reranks {
		return out, fault.New(fault.Invalid, "fakerunner", "this model scores pairs of texts; it does not embed")
	}
	for i, text := range req.Inputs {
		tokens, cut, err := f.fit(text, "input", i, req.Truncate)
		if err != nil {
			return runner.EmbedResponse{}, err
		}
		out.Truncated = out.Truncated || cut
		vector := make([]float32, f.width())
		for j := range vector {
			h := fnv.New32a()
			fmt.Fprint(h, j, strings.Join(tokens, ""))
			vector[j] = float32(h.Sum32())/float32(1<<31) - 1
		}
		out.Vectors = append(out.Vectors, vector)
		out.PromptTokens += len(tokens)
	}
	return out, nil
}

// Rerank scores a document by how many words of the query it has: its logit is that number less half the query's words.
func (f *fake) Rerank(_ context.Context, req runner.RerankRequest) (runner.RerankResponse, error) {
	var out runner.RerankResponse
	if !f.script.reranks {
		return out, fault.New(fault.Invalid, "fakerunner", "this model does not score pairs of texts")
	}
	asked := strings.Fields(strings.ToLower(req.Query))
	for i, text := range req.Documents {
		tokens, cut, err := f.fit(text, "document", i, req.Truncate)
		if err != nil {
			return runner.RerankResponse{}, err
		}
		out.Truncated = out.Truncated || cut
		has := map[string]bool{}
		for _, w := range strings.Fields(strings.ToLower(strings.Join(tokens, ""))) {
			has[w] = true
		}
		score := -float32(len(asked)) / 2
		for _, w := range asked {
			if has[w] {
				score++
			}
		}
		out.Scores = append(out.Scores, score)
		out.PromptTokens += len(tokens) + len(asked)
	}
	return out, nil
}

// fit cuts a text that is too long, or refuses it.
func (f *fake) fit(text, what string, i int, truncate bool) (tokens []string, cut bool, err error) {
	tokens = words(text)
	if len(tokens) == 0 {
		return nil, false, fault.New(fault.Invalid, "fakerunner", "%s %d is empty", what, i)
	}
	if len(tokens) <= f.numCtx {
		return tokens, false, nil
	}
	if !truncate {
		return nil, false, fault.New(fault.Invalid, "fakerunner",
			"the input length exceeds the context length: %s %d has %d tokens, the context %d", what, i, len(tokens), f.numCtx)
	}
	return tokens[:f.numCtx], true, nil
}
