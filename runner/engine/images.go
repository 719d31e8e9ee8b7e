package engine

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif" // the formats that clients send
	_ "image/jpeg"
	"image/png"
	"slices"
	"sync"

	"github.com/ollama/ollama/llama"
	_ "golang.org/x/image/bmp"
	xdraw "golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"sluice/fault"
)

const (
	// maxImageBytes and maxImagePixels bound an image. A projector scales it to less than two megapixels anyway.
	maxImageBytes  = 64 << 20
	maxImagePixels = 50_000_000
	// minImageSide and maxStrip, the ratio of the sides, bound an image from below.
	minImageSide, maxStrip = 64, 16
	// imagesKept is how many images' rows are kept: the next turn of a chat has the same image again.
	imagesKept = 4
)

// eye is a projector, and the rows of the last images that it saw.
type eye struct {
	mtmd *llama.MtmdContext

	mu   sync.Mutex
	seen []seenImage // oldest first
}

type seenImage struct {
	hash   uint64
	inputs []input
}

// imageInputs turns an encoded image, the n-th of a request, into the inputs that stand for it, with the tokens around it. It is
// called in the caller's goroutine; what computes goes through m.between, so that it never runs beside a batch.
func (m *loaded) imageInputs(ctx context.Context, n int, data []byte) ([]input, error) {
	if m.eye == nil {
		return nil, fault.New(fault.Invalid, "engine.Generate", "this model does not take images")
	}
	hash := imageHash(data)
	if inputs := m.eye.remember(hash); inputs != nil {
		return inputs, nil
	}
	plain, err := plainImage(n, data, maxStrip)
	if err != nil {
		return nil, err
	}
	var chunks []llama.MtmdChunk
	err = m.between(ctx, func() (err error) {
		chunks, err = m.eye.mtmd.MultimodalTokenize(m.context, plain)
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fault.Wrap(err, fault.Invalid, "engine.Generate", "image %d could not be encoded", n)
	}
	inputs, err := m.imageRows(chunks, hash)
	if err != nil {
		return nil, err
	}
	m.eye.keep(hash, inputs)
	return inputs, nil
}

// imageRows turns what llama.cpp made of an image into inputs. It was asked for the image alone, and put the tokens around it that
// belong around a whole text: they are taken off.
func (m *loaded) imageRows(chunks []llama.MtmdChunk, hash uint64) ([]input, error) {
	var out []input
	row := 0
	for _, c := range chunks {
		out = append(out, tokens(c.Tokens)...)
		if c.Embed != nil {
			out = append(out, input{token: -1, embed: c.Embed, image: hash, row: row})
			row++
		}
	}
	if row == 0 {
		return nil, errors.New("engine: llama.cpp made nothing of an image")
	}
	before, after, err := m.around()
	if err != nil {
		return nil, err
	}
	if startsWith(out, before) {
		out = out[len(before):]
	}
	if n := len(out) - len(after); n >= 0 && startsWith(out[n:], after) {
		out = out[:n]
	}
	return out, nil
}

func startsWith(inputs []input, ids []int) bool {
	if len(inputs) < len(ids) {
		return false
	}
	for i, id := range ids {
		if inputs[i].token != id {
			return false
		}
	}
	return true
}

// around are the tokens that the tokenizer puts before and behind a text.
func (m *loaded) around() (before, after []int, err error) {
	const text = "a"
	plain, err := m.tokenize(text, false)
	if err != nil {
		return nil, nil, err
	}
	whole, err := m.tokenize(text, true)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i+len(plain) <= len(whole); i++ {
		if slices.Equal(whole[i:i+len(plain)], plain) {
			return whole[:i], whole[i+len(plain):], nil
		}
	}
	return nil, nil, nil
}

func (e *eye) remember(hash uint64) []input {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, s := range e.seen {
		if s.hash == hash {
			e.seen = append(slices.Delete(e.seen, i, i+1), s)
			return slices.Clone(s.inputs)
		}
	}
	return nil
}

func (e *eye) keep(hash uint64, inputs []input) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen) == imagesKept {
		e.seen = slices.Delete(e.seen, 0, 1)
	}
	e.seen = append(e.seen, seenImage{hash, slices.Clone(inputs)})
}

// plainImage reads the n-th image of a request, PNG, JPEG, GIF (its first frame), WebP or BMP, and writes it anew as a plain PNG. So
// the engines' own decoders, one of which crashes on some files, see nothing that a stranger wrote. What is transparent becomes white;
// strip is the largest ratio of its sides.
func plainImage(n int, data []byte, strip int) ([]byte, error) {
	if len(data) > maxImageBytes {
		return nil, fault.New(fault.Invalid, "engine.Generate", "image %d has %d bytes; at most %d", n, len(data), maxImageBytes)
	}
	unread := func(err error) error {
		return fault.Wrap(err, fault.Invalid, "engine.Generate", "image %d could not be read: it is no whole PNG, JPEG, GIF, WebP or BMP file", n)
	}
	size, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, unread(err)
	}
	if size.Width <= 0 || size.Height <= 0 || int64(size.Width)*int64(size.Height) > maxImagePixels {
		return nil, fault.New(fault.Invalid, "engine.Generate",
			"image %d has %d × %d pixels; at most %d megapixels", n, size.Width, size.Height, maxImagePixels/1_000_000)
	}
	if wide, high := painted(size.Width, size.Height, strip); int64(wide)*int64(high) > maxImagePixels {
		return nil, fault.New(fault.Invalid, "engine.Generate",
			"image %d has %d × %d pixels, which is too thin a strip for this model; cut it into pieces", n, size.Width, size.Height)
	}
	oneImage.Lock()
	defer oneImage.Unlock()
	picture, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, unread(err)
	}
	var plain bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&plain, onWhite(picture, strip)); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "engine.Generate", "image %d could not be prepared", n)
	}
	return plain.Bytes(), nil
}

// oneImage is held while an image is decoded and painted: the largest takes half a gigabyte, and any number of requests may come.
var oneImage sync.Mutex

// painted is the size of what an image is painted on. Of a strip it is much larger than the image: of one of 1,000,000 × 50 pixels,
// a file of 50 KB, it would be 250 GB.
func painted(width, height, strip int) (int, int) {
	least := max(minImageSide, (max(width, height)+strip-1)/strip)
	return max(width, least), max(height, least)
}

// onWhite paints an image on white. One that is tiny, or a thin strip, is made larger: some encoders are left with no patch of such,
// and crash.
func onWhite(picture image.Image, strip int) image.Image {
	from := picture.Bounds()
	times := 1
	if small, large := min(from.Dx(), from.Dy()), max(from.Dx(), from.Dy()); small < minImageSide && large <= minImageSide {
		times = (minImageSide + small - 1) / small
		times = min(times, (strip*minImageSide)/large)
	}
	to := image.Rect(0, 0, from.Dx()*times, from.Dy()*times)
	width, height := painted(to.Dx(), to.Dy(), strip)
	flat := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(flat, flat.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	xdraw.NearestNeighbor.Scale(flat, to, picture, from, draw.Over, nil)
	return flat
}
