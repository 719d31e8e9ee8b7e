package remote

import (
	"context"
	"fmt"
	"math"

	"sluice/fault"
	"sluice/runner"
)

// Embed asks for vectors, in the order of the texts. They may be of length 1 already.
func (r *Runner) Embed(ctx context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error) {
	var out runner.EmbedResponse
	var err error
	if r.s.cfg.Kind == Ollama {
		out, err = r.embedOllama(ctx, req)
	} else {
		out, err = r.embedOpenAI(ctx, req)
	}
	if err == nil && len(out.Vectors) != len(req.Inputs) {
		err = r.s.lost(fmt.Errorf("%d vectors for %d texts", len(out.Vectors), len(req.Inputs)))
	}
	if err != nil {
		return runner.EmbedResponse{}, r.ended(err)
	}
	return out, nil
}

func (r *Runner) embedOllama(ctx context.Context, req runner.EmbedRequest) (out runner.EmbedResponse, err error) {
	var res struct {
		Embeddings      few[few[float32]] `json:"embeddings"`
		PromptEvalCount int               `json:"prompt_eval_count"`
		Truncated       bool              `json:"truncated"` // another Sluice says so
	}
	body := map[string]any{"model": r.id, "input": req.Inputs, "truncate": req.Truncate}
	_, err = r.s.call(ctx, "/api/embed", body, &res, r.s.cfg.FirstByte, vectorBytes(len(req.Inputs)))
	out = runner.EmbedResponse{PromptTokens: min(max(res.PromptEvalCount, 0), maxTokens), Truncated: res.Truncated}
	for _, v := range res.Embeddings {
		out.Vectors = append(out.Vectors, v)
	}
	return out, err
}

func (r *Runner) embedOpenAI(ctx context.Context, req runner.EmbedRequest) (out runner.EmbedResponse, err error) {
	body := map[string]any{"model": r.id, "input": req.Inputs, "encoding_format": "float"}
	switch {
	case r.flavour == vllm && req.Truncate:
		body["truncate_prompt_tokens"] = -1 // to its context
	case r.flavour == sluice:
		body["truncate"] = req.Truncate
	}
	var res struct {
		Data few[struct {
			Index     int          `json:"index"`
			Embedding few[float32] `json:"embedding"`
		}] `json:"data"`
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	if _, err := r.s.call(ctx, "/v1/embeddings", body, &res, r.s.cfg.FirstByte, vectorBytes(len(req.Inputs))); err != nil {
		return out, err
	}
	out.PromptTokens, out.Vectors = min(max(res.Usage.PromptTokens, 0), maxTokens), make([][]float32, len(req.Inputs))
	for _, d := range res.Data {
		if d.Index < 0 || d.Index >= len(out.Vectors) || out.Vectors[d.Index] != nil || len(d.Embedding) == 0 {
			return out, r.s.lost(fmt.Errorf("a vector of text %d of %d, with %d numbers", d.Index, len(out.Vectors), len(d.Embedding)))
		}
		out.Vectors[d.Index] = d.Embedding
	}
	if len(res.Data) != len(req.Inputs) {
		return out, r.s.lost(fmt.Errorf("%d vectors for %d texts", len(res.Data), len(req.Inputs)))
	}
	return out, nil
}

// vectorBytes is what the vectors of n texts may take: 64 Ki numbers of sixteen digits each are more than any model makes.
func vectorBytes(n int) int64 { return min(maxObject, maxShow+int64(n)*(1<<20)) }

// textBytes is how long texts are together: some servers send the documents back.
func textBytes(texts []string) (n int64) {
	for _, t := range texts {
		n += int64(len(t)) + 64
	}
	return n
}

// Rerank asks /v1/rerank, which vLLM, llama-server, Jina and Sluice have in common.
func (r *Runner) Rerank(ctx context.Context, req runner.RerankRequest) (runner.RerankResponse, error) {
	var res struct {
		Results few[struct {
			Index          int     `json:"index"`
			RelevanceScore float64 `json:"relevance_score"`
		}] `json:"results"`
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
			TotalTokens  int `json:"total_tokens"`
		} `json:"usage"`
	}
	body := map[string]any{"model": r.id, "query": req.Query, "documents": req.Documents}
	switch {
	case r.flavour == vllm && req.Truncate:
		body["truncate_prompt_tokens"] = -1
	case r.flavour == sluice:
		body["truncate"] = req.Truncate
	}
	if _, err := r.s.call(ctx, "/v1/rerank", body, &res, r.s.cfg.FirstByte, maxShow+64*textBytes(req.Documents)); err != nil {
		return runner.RerankResponse{}, r.ended(err)
	}
	scores := make([]float64, len(req.Documents))
	seen := make([]bool, len(scores))
	for _, one := range res.Results {
		if one.Index < 0 || one.Index >= len(scores) || seen[one.Index] {
			return runner.RerankResponse{}, r.s.lost(fmt.Errorf("a score of document %d of %d", one.Index, len(scores)))
		}
		scores[one.Index], seen[one.Index] = one.RelevanceScore, true
	}
	if len(res.Results) != len(scores) {
		return runner.RerankResponse{}, r.s.lost(fmt.Errorf("%d scores for %d documents", len(res.Results), len(scores)))
	}
	return runner.RerankResponse{Scores: logits(scores), PromptTokens: min(max(res.Usage.PromptTokens, res.Usage.TotalTokens, 0), maxTokens)}, nil
}

// logits turns scores between 0 and 1, as most servers give them, back into what the model said. llama-server gives that as it is.
func logits(scores []float64) []float32 {
	out := make([]float32, len(scores))
	raw := false
	for _, p := range scores {
		raw = raw || p < 0 || p > 1 || math.IsNaN(p)
	}
	const edge = 1e-7 // as near to 0 and 1 as a float32 tells apart
	for i, p := range scores {
		if !raw {
			p = min(max(p, edge), 1-edge)
			p = math.Log(p / (1 - p))
		}
		out[i] = float32(p)
	}
	return out
}

// unimplementedBy is what a server of this kind has no route for.
func (r *Runner) unimplementedBy(what string) error {
	return &fault.Error{Code: fault.Unimplemented, Op: "remote", Msg: fmt.Sprintf("the server %q, which runs this model, does not %s", r.s.cfg.Name, what)}
}
