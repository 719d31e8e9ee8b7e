package engine

import (
	"context"
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
	for i, document := range req.Documents {
		ids, cut, err := m.pair(i, req.Query, document, req.Truncate)
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

// pair is what the model reads for a document. A document that is too long is cut at its end; a query is not.
func (m *loaded) pair(i int, query, document string, truncate bool) (ids []int, cut bool, err error) {
	if strings.TrimSpace(query) == "" {
		return nil, false, fault.New(fault.Invalid, "engine.Rerank", "the query is empty")
	}
	front, middle, back, err := m.parts(query, document)
	if err != nil {
		return nil, false, err
	}
	most := m.numCtx
	if over := len(front) + len(middle) + len(back) - most; over > 0 {
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
	return append(append(front[:len(front):len(front)], middle...), back...), cut, nil
}

// parts are the tokens before a document, its own, and those behind it.
func (m *loaded) parts(query, document string) (front, middle, back []int, err error) {
	p := m.pairs
	if p.template != "" {
		before, after, ok := strings.Cut(p.template, "{document}")
		if !ok {
			return nil, nil, nil, fault.New(fault.Invalid, "engine.Rerank", "the model's template for pairs has no place for a document")
		}
		if front, err = m.tokenize(strings.ReplaceAll(before, "{query}", query), false); err != nil {
			return nil, nil, nil, err
		}
		if middle, err = m.tokenize(document, false); err != nil {
			return nil, nil, nil, err
		}
		back, err = m.tokenize(strings.ReplaceAll(after, "{query}", query), false)
		return front, middle, back, err
	}
	ids, err := m.tokenize(query, false)
	if err != nil {
		return nil, nil, nil, err
	}
	front = append(append(append(append(front, p.before...), ids...), p.after...), p.between...)
	middle, err = m.tokenize(document, false)
	return front, middle, p.after, err
}
