package engine

import (
	"context"
	"slices"
	"strings"

	"sluice/fault"
	"sluice/runner"
)

// pairs is how a model that reranks reads a query and a document: as a template, or as one text behind the other with the
// tokens between them that the tokenizer says.
type pairs struct {
	template      string // with {query} and {document}; "" none
	before, after []int  // around each text
	between       []int  // more between the two
}

// loadPairs finds out how pairs are written, for a model that reranks.
func (m *loaded) loadPairs(req runner.LoadRequest) error {
	if !m.reranks {
		return nil
	}
	facts, err := readFacts(req.ModelPath)
	if err != nil {
		return err
	}
	texts, err := readTexts(req.ModelPath)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "engine.Load", "the model file cannot be read")
	}
	m.pairs.template = texts["tokenizer.chat_template.rerank"]
	if m.pairs.before, m.pairs.after, err = m.around(); err != nil {
		return err
	}
	// [BOS] query [EOS] [SEP] document [EOS] where the file asks for a separator; BERT's own, [CLS] query [SEP] document [SEP],
	// has it as the token behind each text.
	if facts.ints["tokenizer.ggml.add_sep_token"] != 0 {
		if id, ok := facts.ints["tokenizer.ggml.seperator_token_id"]; ok && id >= 0 && id < int64(m.vocab) { // sic
			m.pairs.between = []int{int(id)}
		}
	}
	return nil
}

// Rerank scores documents by how well they answer the query. All documents share the batches with those of other requests.
func (e *Engine) Rerank(ctx context.Context, req runner.RerankRequest) (runner.RerankResponse, error) {
	if o := e.other.Load(); o != nil {
		return (*o).Rerank(ctx, req)
	}
	m := e.loaded.Load()
	switch {
	case m == nil:
		return runner.RerankResponse{}, errNotLoaded()
	case !m.reranks:
		return runner.RerankResponse{}, fault.New(fault.Invalid, "engine.Rerank", "this model does not score pairs of texts; rerankers do")
	}
	var out runner.RerankResponse
	inputs := make([][]int, len(req.Documents))
	query, err := m.queryOf(req.Query)
	if err != nil {
		return runner.RerankResponse{}, err
	}
	for i, document := range req.Documents {
		if ctx.Err() != nil { // the documents of a request may take seconds to tokenize
			return runner.RerankResponse{}, context.Cause(ctx)
		}
		ids, cut, err := m.pair(i, query, document, req.Truncate)
		if err != nil {
			return runner.RerankResponse{}, err
		}
		inputs[i] = ids
		out.PromptTokens += len(ids)
		out.Truncated = out.Truncated || cut
	}
	rows, err := e.rows(ctx, m, inputs)
	if err != nil {
		return runner.RerankResponse{}, err
	}
	out.Scores = make([]float32, len(rows))
	for i, row := range rows {
		if len(row) == 0 || notFinite(row[:1]) >= 0 {
			return runner.RerankResponse{}, fault.New(fault.Invalid, "engine.Rerank",
				"the model gave no number as the score of document %d; another quantization of it may not", i)
		}
		out.Scores[i] = row[0]
	}
	return out, nil
}

// query is what stands around each document: the query, read once, and what the model wants between and behind the two.
type query struct{ front, back []int }

func (m *loaded) queryOf(text string) (q query, err error) {
	if strings.TrimSpace(text) == "" {
		return q, fault.New(fault.Invalid, "engine.Rerank", "the query is empty")
	}
	p := m.pairs
	if p.template == "" {
		ids, err := m.tokenize(text, false)
		q.front = slices.Concat(p.before, ids, p.after, p.between)
		q.back = p.after
		return q, err
	}
	before, after, ok := strings.Cut(p.template, "{document}")
	if !ok {
		return q, fault.New(fault.Invalid, "engine.Rerank", "the model's template for pairs has no place for a document")
	}
	if q.front, err = m.tokenize(strings.ReplaceAll(before, "{query}", text), false); err != nil {
		return q, err
	}
	q.back, err = m.tokenize(strings.ReplaceAll(after, "{query}", text), false)
	return q, err
}

// pair is what the model reads for a document. A document that is too long is cut at its end; a query is not.
func (m *loaded) pair(i int, q query, document string, truncate bool) (ids []int, cut bool, err error) {
	middle, err := m.tokenize(document, false)
	if err != nil {
		return nil, false, err
	}
	most := m.numCtx
	if over := len(q.front) + len(middle) + len(q.back) - most; over > 0 {
		switch {
		case !truncate:
			return nil, false, fault.New(fault.Invalid, "engine.Rerank",
				"the input length exceeds the context length: the query and document %d have %d tokens, the context %d", i, most+over, most)
		case over >= len(middle):
			return nil, false, fault.New(fault.Invalid, "engine.Rerank",
				"the input length exceeds the context length: the query leaves no room for a document in a context of %d", most)
		}
		middle, cut = middle[:len(middle)-over], true
	}
	return slices.Concat(q.front, middle, q.back), cut, nil
}
