package collection

import (
	"context"
	"math"
	"strings"

	"sluice/fault"
)

// Embedder is all that is needed of a model.
type Embedder interface {
	// Digest names the version of a model that is installed here; NotFound without it.
	Digest(ctx context.Context, model string) (string, error)
	// Embed gives a vector for each text.
	Embed(ctx context.Context, model string, texts []string) ([][]float32, error)
	// Count gives the number of tokens of each text. A model that cannot be asked is Unimplemented.
	Count(ctx context.Context, model string, texts []string) ([]int, error)
}

// batch is how many texts are embedded on one lease, so that others get their turn between two.
const batch = 32

// maxDims is what an HNSW index over half floats takes.
const maxDims = 4000

// embedded are vectors of one version of a model.
type embedded struct {
	digest  string
	vectors [][]float32
}

// embed embeds texts, all by one version of the model: when it changes meanwhile that is Busy.
func (s *Service) embed(ctx context.Context, model string, texts []string) (embedded, error) {
	const op = "collection.embed"
	out := embedded{vectors: make([][]float32, 0, len(texts))}
	digest, err := s.digest(ctx, model)
	if err != nil {
		return out, err
	}
	out.digest = digest
	for len(texts) > 0 {
		n := min(batch, len(texts))
		got, err := s.cfg.Embedder.Embed(ctx, model, texts[:n])
		if err != nil {
			return out, err
		}
		if len(got) != n {
			return out, fault.Bug("collection: %d vectors for %d texts", len(got), n)
		}
		for _, v := range got {
			unit, err := normal(v)
			if err != nil {
				return out, err
			}
			if len(out.vectors) > 0 && len(out.vectors[0]) != len(unit) {
				return out, fault.Bug("collection: vectors of %d and of %d numbers", len(out.vectors[0]), len(unit))
			}
			out.vectors = append(out.vectors, unit)
		}
		texts = texts[n:]
	}
	now, err := s.digest(ctx, model)
	if err != nil {
		return out, err
	}
	if now != digest {
		return out, &fault.Error{Code: fault.Busy, Op: op, Msg: "the embedding model was replaced meanwhile", Hint: "try again"}
	}
	return out, nil
}

// digest is that of an installed model. Without it, what to do is said.
func (s *Service) digest(ctx context.Context, model string) (string, error) {
	d, err := s.cfg.Embedder.Digest(ctx, model)
	if err != nil && fault.CodeOf(err) == fault.NotFound {
		return "", &fault.Error{Code: fault.Conflict, Op: "collection.embed", Err: err,
			Msg: "the embedding model " + model + " is not installed", Hint: "sluice pull " + model + "; or name another in rag.embed_model"}
	}
	return d, err
}

// normal scales a vector to length 1, which makes its product with another their cosine.
func normal(v []float32) ([]float32, error) {
	const op = "collection.embed"
	if len(v) == 0 || len(v) > maxDims {
		return nil, fault.New(fault.Invalid, op, "the embedding model gives vectors of %d numbers; 1 to %d can be searched", len(v), maxDims)
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, fault.New(fault.Invalid, op, "the embedding model gives no usable vector for a part of the text")
	}
	out := make([]float32, len(v))
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out, nil
}

// asEmbedded is the text whose vector a chunk has: with what stands above it, which the piece alone does not say.
func asEmbedded(title, heading, text string) string {
	above := title
	switch {
	case title == "" || heading == title || strings.HasPrefix(heading, title+separator): // the title is the first heading
		above = heading
	case heading != "":
		above += separator + heading
	}
	if above = cut(above, maxAbove); above == "" {
		return text
	}
	return above + "\n" + text
}
