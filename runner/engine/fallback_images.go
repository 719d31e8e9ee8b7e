package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime/debug"
	"strconv"

	"github.com/ollama/ollama/ml"
	modelinput "github.com/ollama/ollama/model/input"

	"sluice/fault"
	"sluice/runner"
)

// moduleImages holds what an answer's images became. A tensor belongs to one graph, while an image may be needed by several
// batches: so it is computed once, kept as numbers, and each batch gets tensors made of them.
type moduleImages struct {
	contexts []ml.Context
	of       map[ml.Tensor]*moduleImage
}

type moduleImage struct {
	parts  []modelinput.Multimodal
	values [][]float32 // of each part; nil before they are computed
}

func (s *moduleImages) free() {
	if s == nil {
		return
	}
	for _, c := range s.contexts {
		c.Close()
	}
	s.contexts = nil
}

// imageSeed is the same for all images of this process, so that equal ones have equal hashes.
var imageSeed = maphash.MakeSeed()

// imageHash names an image. It is never 0, which means none.
func imageHash(data []byte) uint64 { return maphash.Bytes(imageSeed, data) | 1 }

// imageBatch is how many tokens' worth of memory an image's graph may take, as in Ollama.
const imageBatch = 512

// inputs is what a prompt is read as: its text tokenized around the images.
func (m *module) inputs(ctx context.Context, req runner.GenerateRequest) ([]*modelinput.Input, *moduleImages, error) {
	if len(req.Images) > 0 && m.vision == nil {
		return nil, nil, fault.New(fault.Invalid, "engine.Generate", "this model does not take images")
	}
	var inputs []*modelinput.Input
	text := func(s string, first bool) error {
		ids, err := m.encode(s, first)
		for _, id := range ids {
			inputs = append(inputs, &modelinput.Input{Token: int32(id)})
		}
		return err
	}
	images := &moduleImages{of: map[ml.Tensor]*moduleImage{}}
	at := 0
	if len(req.Images) > 0 {
		marks := imageMark.FindAllStringSubmatchIndex(req.Prompt, -1)
		if len(marks) == 0 {
			return nil, nil, fault.New(fault.Invalid, "engine.Generate", "the request has %d images and the prompt no place for them", len(req.Images))
		}
		for _, mark := range marks {
			n, err := strconv.Atoi(req.Prompt[mark[2]:mark[3]])
			if err != nil || n >= len(req.Images) {
				images.free()
				return nil, nil, fault.New(fault.Invalid, "engine.Generate",
					"the prompt names image %s; the request has %d", req.Prompt[mark[2]:mark[3]], len(req.Images))
			}
			if err := text(req.Prompt[at:mark[0]], at == 0); err != nil {
				images.free()
				return nil, nil, err
			}
			in, err := m.image(ctx, images, n, req.Images[n])
			if err != nil {
				images.free()
				return nil, nil, err
			}
			inputs, at = append(inputs, in), mark[1]
		}
	}
	err := text(req.Prompt[at:], at == 0)
	if err == nil && m.vision != nil {
		inputs, err = m.vision.PostTokenize(inputs)
	}
	if err != nil {
		images.free()
		return nil, nil, err
	}
	return inputs, images, nil
}

// image gives the input that stands for an image before the model arranges it.
func (m *module) image(ctx context.Context, images *moduleImages, n int, data []byte) (*modelinput.Input, error) {
	plain, err := plainImage(n, data, m.facts.strip())
	if err != nil {
		return nil, err
	}
	c := m.model.Backend().NewContext()
	images.contexts = append(images.contexts, c)
	var parts []modelinput.Multimodal
	err = m.between(ctx, func() (err error) {
		defer func() { // only a graph is built here: what panics has changed nothing
			if r := recover(); r != nil {
				err = fmt.Errorf("engine: %v", r)
			}
		}()
		parts, err = m.vision.EncodeMultimodal(c, plain)
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fault.Wrap(err, fault.Invalid, "engine.Generate", "image %d could not be read", n)
	}
	image := &moduleImage{parts: parts}
	for _, p := range parts {
		if p.Tensor != nil {
			images.of[p.Tensor] = image
		}
	}
	return &modelinput.Input{Multimodal: parts, MultimodalHash: imageHash(data)}, nil
}

// strip is the largest ratio of an image's sides that leaves some of it when the model has scaled its longer side down and cut it into
// patches, of which it merges several. Without any left, the module reads memory that is not there.
func (f fileFacts) strip() int {
	longest, patch, merged := f.of("vision.longest_edge"), f.of("vision.patch_size"), f.of("spatial_merge_size")
	if longest <= 0 {
		longest = f.of("vision.image_size")
	}
	if longest <= 0 || patch <= 0 {
		return maxStrip
	}
	if merged <= 0 {
		merged = 2
	}
	return int(max(1, min(maxStrip, longest/(patch*merged))))
}

// tensors makes tensors of a batch's graph with an image's numbers, which are computed when they are first needed.
func (s *moduleImages) tensors(backend ml.Backend, ctx ml.Context, in []modelinput.Multimodal) ([]modelinput.Multimodal, error) {
	out := make([]modelinput.Multimodal, len(in))
	for i, part := range in {
		out[i].Data = part.Data
		if part.Tensor == nil {
			continue
		}
		image := s.of[part.Tensor]
		if image == nil {
			return nil, errors.New("engine: a part of no image")
		}
		if err := image.compute(backend); err != nil {
			return nil, err
		}
		for k, p := range image.parts {
			if p.Tensor == part.Tensor {
				out[i].Tensor = ctx.Input().FromFloats(image.values[k], p.Tensor.Shape()...)
			}
		}
	}
	return out, nil
}

func (i *moduleImage) compute(backend ml.Backend) (err error) {
	if i.values != nil {
		return nil
	}
	defer func() { // its graph is of no other's concern
		if r := recover(); r != nil {
			slog.Error("the fallback engine could not encode an image", "panic", r, "stack", string(debug.Stack()))
			err = fault.New(fault.Invalid, "engine.Generate", "an image could not be encoded; another size of it may")
		}
	}()
	ctx := backend.NewContext()
	defer ctx.Close()
	var all []ml.Tensor
	for _, p := range i.parts {
		if p.Tensor != nil {
			all = append(all, p.Tensor)
		}
	}
	ctx.Forward(all...)
	ctx.SetBatchSize(imageBatch)
	ctx.Compute(all...)
	i.values = make([][]float32, len(i.parts))
	for k, p := range i.parts {
		if p.Tensor != nil {
			i.values[k] = p.Tensor.Floats()
		}
	}
	return nil
}
