package engine

import (
	"context"
	"strings"
	"sync"

	modelinput "github.com/ollama/ollama/model/input"
	"github.com/ollama/ollama/tokenizer"

	"sluice/fault"
	"sluice/runner"
	sluicegrammar "sluice/runner/grammar"
)

// Generate answers a prompt.
func (m *module) Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	switch {
	case m.pooled:
		return fault.New(fault.Invalid, "engine.Generate", "this model makes embeddings only; it cannot answer a prompt")
	case req.N < 0 || req.N > maxAnswers:
		return fault.New(fault.Invalid, "engine.Generate", "n is %d; it must be from 1 to %d", req.N, maxAnswers)
	case req.TopLogprobs < 0 || req.TopLogprobs > 20:
		return fault.New(fault.Invalid, "engine.Generate", "top_logprobs is %d; it must be from 0 to 20", req.TopLogprobs)
	}
	gbnf, err := gbnfOf(req)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answers, err := m.answers(ctx, req, gbnf)
	if err != nil {
		return err
	}
	if err := m.submit(ctx, func(l *moduleLoop) { l.queue = append(l.queue, answers...) }); err != nil {
		for _, a := range answers {
			a.pick.free()
			a.images.free()
		}
		return err
	}
	return m.pump.follow(ctx, cancel, answers[0].group.out, emit)
}

// gbnfOf is the grammar that the request asks for, as text.
func gbnfOf(req runner.GenerateRequest) (string, error) {
	switch {
	case req.Schema != "" && req.Grammar != "":
		return "", fault.New(fault.Invalid, "engine.Generate", "a request has a schema or a grammar, not both")
	case req.Grammar != "":
		return req.Grammar, sluicegrammar.Check(req.Grammar)
	case req.Schema != "":
		return sluicegrammar.Compile(req.Schema)
	}
	return "", nil
}

// answers reads the prompt as inputs and makes the answers to it.
func (m *module) answers(ctx context.Context, req runner.GenerateRequest, gbnf string) ([]*moduleAnswer, error) {
	n := max(req.N, 1)
	limit := req.NumPredict
	if most := maxContexts * m.numCtx; limit < 0 || limit > most {
		limit = most
	}
	all := &group{out: newOutbox(), left: n}
	out := make([]*moduleAnswer, 0, n)
	free := func() {
		for _, a := range out {
			a.pick.free()
			a.images.free()
		}
	}
	for i := range n {
		// Each answer has the images' tensors for itself: they are freed with it.
		inputs, images, err := m.inputs(ctx, req)
		if err != nil {
			free()
			return nil, err
		}
		inputs, keep, truncated, err := m.fit(inputs, req)
		if err != nil {
			images.free()
			free()
			return nil, err
		}
		ids := make([]int32, len(inputs))
		for i, in := range inputs {
			ids[i] = in.Token
		}
		pick, err := m.newPick(req, i, gbnf, ids)
		if err != nil {
			images.free()
			free()
			return nil, err
		}
		all.usage.PromptTokens, all.usage.Truncated = len(inputs), truncated
		out = append(out, &moduleAnswer{
			ctx: ctx, group: all, index: i, prompt: inputs, owner: req.Owner, images: images, keep: keep, limit: limit, shift: req.Shift,
			pick: pick, answer: newAnswer(req.Stop),
		})
	}
	return out, nil
}

// fit cuts a prompt that is too long, as Ollama does: num_keep inputs at the front and as many of the tail as fit. What must stay
// together, as the inputs of an image, is left out as a whole.
func (m *module) fit(inputs []*modelinput.Input, req runner.GenerateRequest) (_ []*modelinput.Input, keep int, truncated bool, err error) {
	if len(inputs) == 0 {
		return nil, 0, false, fault.New(fault.Invalid, "engine.Generate", "the prompt is empty")
	}
	keep = req.NumKeep
	if keep < 0 {
		keep = len(inputs)
	}
	keep = min(keep, len(inputs), m.numCtx-1)
	if len(inputs) <= m.numCtx {
		return inputs, keep, false, nil
	}
	if !req.Truncate {
		return nil, 0, false, fault.New(fault.Invalid, "engine.Generate",
			"the input length exceeds the context length: the prompt has %d tokens, the context %d", len(inputs), m.numCtx)
	}
	from := keep + len(inputs) - m.numCtx
	for i := 0; i < len(inputs); i++ {
		together := inputs[i].SameBatch
		if i < keep && i+together >= keep {
			return nil, 0, false, fault.New(fault.Invalid, "engine.Generate", "the prompt is too long, and num_keep would cut an image in two")
		}
		if i < from && i+together >= from {
			from = i + together + 1
		}
		i += together
	}
	if from >= len(inputs) {
		return nil, 0, false, fault.New(fault.Invalid, "engine.Generate", "the prompt's last image does not fit into the context of %d", m.numCtx)
	}
	return append(inputs[:keep:keep], inputs[from:]...), keep, true, nil
}

// Embed gives one vector per input, if the model pools: the module has no way to the vectors of others.
func (m *module) Embed(ctx context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error) {
	if !m.pooled {
		return runner.EmbedResponse{}, fault.New(fault.Invalid, "engine.Embed", "this model makes no embeddings on the fallback engine")
	}
	var out runner.EmbedResponse
	inputs := make([][]int, len(req.Inputs))
	for i, text := range req.Inputs {
		ids, cut, err := m.input(i, text, req.Truncate)
		if err != nil {
			return runner.EmbedResponse{}, err
		}
		inputs[i] = ids
		out.PromptTokens += len(ids)
		out.Truncated = out.Truncated || cut
	}
	var err error
	out.Vectors, err = inOrder(ctx, inputs, 1, m.vector)
	if err != nil {
		return runner.EmbedResponse{}, err
	}
	if err := allFinite(out.Vectors); err != nil {
		return runner.EmbedResponse{}, err
	}
	return out, nil
}

// input tokenizes an input and cuts what does not fit. The closing token, if the tokenizer adds one, stays the last.
func (m *module) input(i int, text string, truncate bool) (ids []int, cut bool, err error) {
	plain, err := m.encode(text, false)
	if err == nil {
		ids, err = m.encode(text, true)
	}
	if err != nil {
		return nil, false, err
	}
	if len(plain) == 0 {
		return nil, false, fault.New(fault.Invalid, "engine.Embed", "input %d is empty", i)
	}
	if len(ids) <= m.numCtx {
		return ids, false, nil
	}
	if !truncate {
		return nil, false, fault.New(fault.Invalid, "engine.Embed",
			"the input length exceeds the context length: input %d has %d tokens, the context %d", i, len(ids), m.numCtx)
	}
	last := ids[len(ids)-1]
	ids = ids[:m.numCtx]
	if last != plain[len(plain)-1] {
		ids[len(ids)-1] = last
	}
	return ids, true, nil
}

// vector computes one input.
func (m *module) vector(ctx context.Context, ids []int) ([]float32, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var vector []float32
	all := &group{out: newOutbox(), left: 1}
	a := &moduleAnswer{ctx: ctx, group: all, prompt: make([]*modelinput.Input, len(ids))}
	for i, id := range ids {
		a.prompt[i] = &modelinput.Input{Token: int32(id)}
	}
	a.embedded = func(v []float32) {
		vector = v
		all.out.finish(nil)
	}
	if err := m.submit(ctx, func(l *moduleLoop) { l.queue = append(l.queue, a) }); err != nil {
		return nil, err
	}
	err := m.pump.follow(ctx, cancel, all.out, nil)
	return vector, err
}

// Rerank is nothing that the module can do.
func (m *module) Rerank(context.Context, runner.RerankRequest) (runner.RerankResponse, error) {
	return runner.RerankResponse{}, fault.New(fault.Invalid, "engine.Rerank", "this model does not score pairs of texts")
}

// Tokenize gives the ids of a text.
func (m *module) Tokenize(_ context.Context, text string, special bool) ([]int, error) {
	return m.encode(text, special)
}

func (m *module) encode(text string, special bool) ([]int, error) {
	if text == "" && !special {
		return []int{}, nil
	}
	if strings.Contains(m.facts.arch, "bert") { // those that have WordPiece
		text = cutWords(text, longestWord)
	}
	ids, err := m.tokens.Encode(text, special)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "engine", "the text could not be tokenized")
	}
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out, nil
}

// Detokenize gives the text of ids. An id that the vocabulary lacks is Invalid: the module would panic.
func (m *module) Detokenize(_ context.Context, tokens []int) (string, error) {
	n := len(m.tokens.Vocabulary().Values)
	ids := make([]int32, len(tokens))
	for i, id := range tokens {
		if id < 0 || id >= n {
			return "", fault.New(fault.Invalid, "engine.Detokenize", "token %d is %d; the model has ids from 0 to %d", i, id, n-1)
		}
		ids[i] = int32(id)
	}
	text, err := m.tokens.Decode(ids)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "engine.Detokenize", "the tokens have no text")
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// SetThreads changes how many cores are computed on, from the next batch on.
func (m *module) SetThreads(ctx context.Context, n int) error {
	if n <= 0 {
		return fault.New(fault.Invalid, "engine.SetThreads", "threads is %d; it must be at least 1", n)
	}
	return m.between(ctx, func() error { return setThreads(n) })
}

// Ping returns between two batches, or at once when none is computed.
func (m *module) Ping(ctx context.Context) error {
	return m.between(ctx, func() error { return nil })
}

// between runs f when no batch is computed, and waits for it.
func (m *module) between(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	if err := m.submit(ctx, func(*moduleLoop) { done <- f() }); err != nil {
		return err
	}
	return <-done
}

// submit hands work to the loop, which does it between two batches.
func (m *module) submit(ctx context.Context, f func(*moduleLoop)) error {
	select {
	case m.work <- f:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *module) isEnd(id int32) bool { return m.tokens.Is(id, tokenizer.SpecialEOS) }

// moduleVocabulary is what a grammar needs of a vocabulary. It takes a while to make, and never changes.
type moduleVocabulary struct {
	once   sync.Once
	ids    []uint32
	pieces []string
}

func (m *module) vocabulary() (ids []uint32, pieces []string) {
	v := &m.words
	v.once.Do(func() {
		n := len(m.tokens.Vocabulary().Values)
		v.ids, v.pieces = make([]uint32, n), make([]string, n)
		for i := range n {
			v.ids[i] = uint32(i)
			v.pieces[i], _ = m.tokens.Decode([]int32{int32(i)})
		}
	})
	return v.ids, v.pieces
}
