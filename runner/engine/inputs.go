package engine

import (
	"context"
	"regexp"
	"strconv"

	"sluice/fault"
	"sluice/runner"
)

// input is one position of a sequence: a token, or a row of an image's embedding that stands in a token's place.
//
// Rows of one image stand together, with the same image and rising row. They are decoded in batches of their own, because
// llama.cpp takes either tokens or embeddings in a batch; a whole image in one batch where loaded.wholeImages says so.
type input struct {
	token int       // id in the vocabulary; -1 for a row of an image
	embed []float32 // the row, as wide as the model's embedding; nil for a token, and in what a slot remembers
	image uint64    // hash of the image's file; 0 for a token
	row   int       // of the image
}

// same says whether two inputs leave the same keys and values in the cache.
func (a input) same(b input) bool { return a.token == b.token && a.image == b.image && a.row == b.row }

// isRow says whether the input is a row of an image.
func (a input) isRow() bool { return a.token < 0 }

// tokens wraps token ids.
func tokens(ids []int) []input {
	out := make([]input, len(ids))
	for i, id := range ids {
		out[i].token = id
	}
	return out
}

// common is the length of the longest common prefix.
func common(a, b []input) int {
	n := 0
	for n < len(a) && n < len(b) && a[n].same(b[n]) {
		n++
	}
	return n
}

// imageMark is where an image stands in a prompt; the number counts the request's images from 0.
var imageMark = regexp.MustCompile(`\[img-(\d+)\]`)

// inputs is what a prompt is read as: its text tokenized around the images. Only a request with images has marks; in other
// prompts [img-0] is a text like any other.
func (m *loaded) inputs(ctx context.Context, req runner.GenerateRequest) ([]input, error) {
	if len(req.Images) == 0 {
		ids, err := m.tokenize(req.Prompt, true)
		return tokens(ids), err
	}
	var out []input
	used, at := 0, 0
	for _, mark := range imageMark.FindAllStringSubmatchIndex(req.Prompt, -1) {
		n, err := strconv.Atoi(req.Prompt[mark[2]:mark[3]])
		if err != nil || n >= len(req.Images) {
			return nil, fault.New(fault.Invalid, "engine.Generate",
				"the prompt names image %s; the request has %d", req.Prompt[mark[2]:mark[3]], len(req.Images))
		}
		ids, err := m.tokenize(req.Prompt[at:mark[0]], at == 0)
		if err != nil {
			return nil, err
		}
		rows, err := m.imageInputs(ctx, n, req.Images[n])
		if err != nil {
			return nil, err
		}
		out = append(append(out, tokens(ids)...), rows...)
		used, at = used+1, mark[1]
	}
	if used == 0 {
		return nil, fault.New(fault.Invalid, "engine.Generate", "the request has %d images and the prompt no place for them", len(req.Images))
	}
	ids, err := m.tokenize(req.Prompt[at:], at == 0)
	return append(out, tokens(ids)...), err
}

// tokenize gives the ids of a text; special adds what the tokenizer puts around a text. Special tokens written in it count as such.
func (m *loaded) tokenize(text string, special bool) ([]int, error) {
	ids, err := m.tokenizeRuns(text, special, func(text string, special bool) ([]int, error) {
		return m.model.Tokenize(text, special, true)
	})
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "engine", "the text could not be tokenized")
	}
	return ids, nil
}
