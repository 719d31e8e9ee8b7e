package engine_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/internal/tinygguf"
	"sluice/runner"
)

func TestProjector(t *testing.T) {
	p, report := loadTiny(t, "llama", func(r *runner.LoadRequest) { r.Projector = tinyFile(t, "projector") })
	if !report.Vision || report.Backend != "llama" {
		t.Fatalf("report %+v", report)
	}
	seeing(t, p)

	// 56 × 56 pixels in patches of 14 are 16 rows, and nothing but these stands for the mark.
	with := imageRequest("Hello[img-0] world", picture(t, red, 56, 56))
	_, a := runnertest.Answer(t, p, with)
	_, b := runnertest.Answer(t, p, runnertest.Request("Hello world", 8))
	if a.Usage.PromptTokens != b.Usage.PromptTokens+16 {
		t.Errorf("with an image %d tokens, without %d", a.Usage.PromptTokens, b.Usage.PromptTokens)
	}
}

func imageRequest(prompt string, images ...[]byte) runner.GenerateRequest {
	req := runnertest.Request(prompt, 8)
	req.Images = images
	return req
}

// said is an answer with the probability of each token, which tells what the words of random weights may not.
func said(t *testing.T, p *runner.Process, req runner.GenerateRequest) (string, runner.Chunk) {
	t.Helper()
	req.Logprobs = true
	text, logprobs, last := answer(t, p, req)
	for _, l := range logprobs {
		text += fmt.Sprintf(" %.3f", l.Logprob)
	}
	return text, last
}

// seeing is what a model that takes images must do.
func seeing(t *testing.T, p *runner.Process) {
	const prompt = "<|im_start|>user\n[img-0]Hello<|im_end|>\n<|im_start|>assistant\n"
	first, _ := said(t, p, imageRequest(prompt, picture(t, red, 56, 56)))
	t.Run("another image is another answer", func(t *testing.T) {
		if other, _ := said(t, p, imageRequest(prompt, picture(t, blue, 56, 56))); other == first {
			t.Errorf("both %q", first)
		}
	})
	t.Run("the same image is the same answer, from the cache", func(t *testing.T) {
		again, last := said(t, p, imageRequest(prompt, picture(t, red, 56, 56)))
		if again != first || last.Usage.CachedTokens != last.Usage.PromptTokens-1 {
			t.Errorf("%q, then %q; usage %+v", first, again, *last.Usage)
		}
	})
	t.Run("every format, and any size", func(t *testing.T) {
		for name, image := range map[string][]byte{
			"JPEG": photo(t, red, 56, 56), "WebP": webp, "a large PNG": picture(t, red, 700, 300), "a tiny PNG": picture(t, red, 1, 1),
			"a strip": picture(t, red, 3000, 1), "a tower": picture(t, red, 2, 900),
		} {
			req := imageRequest(prompt, image)
			req.NumPredict = 1
			if err := p.Generate(t.Context(), req, func(runner.Chunk) error { return nil }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("two images in the order of their marks", func(t *testing.T) {
		ab, _ := said(t, p, imageRequest("[img-0] and [img-1]", picture(t, red, 56, 56), picture(t, blue, 56, 56)))
		ba, _ := said(t, p, imageRequest("[img-1] and [img-0]", picture(t, blue, 56, 56), picture(t, red, 56, 56)))
		if ab != ba {
			t.Errorf("%q and %q", ab, ba)
		}
	})
	whole := picture(t, red, 56, 56)
	bomb := append([]byte(nil), whole...)
	copy(bomb[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65536 × 65536 pixels
	for name, row := range map[string]struct {
		prompt string
		images [][]byte
		say    string
	}{
		"a broken image":            {prompt, [][]byte{whole[:len(whole)/2]}, "image 0 could not be read"},
		"the second is broken":      {"[img-0] [img-1]", [][]byte{whole, []byte("no image")}, "image 1 could not be read"},
		"an empty one":              {prompt, [][]byte{{}}, "image 0"},
		"one that is far too large": {prompt, [][]byte{bomb}, "image 0"},
		"a mark without an image":   {"[img-7]", [][]byte{whole}, "7"},
		"an image without a mark":   {"Hello", [][]byte{whole}, "no place"},
		"sound":                     {prompt, [][]byte{[]byte("RIFF\x24\x00\x00\x00WAVEfmt ")}, "image 0 could not be read"},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.Generate(t.Context(), imageRequest(row.prompt, row.images...), func(runner.Chunk) error { return nil })
			runnertest.WantCode(t, err, fault.Invalid)
			if err != nil && !strings.Contains(err.Error(), row.say) {
				t.Errorf("error %v; want it to say %q", err, row.say)
			}
		})
	}
	runnertest.Answer(t, p, runnertest.Request(prompt, 1)) // it still answers
}

func TestModelWithoutEyes(t *testing.T) {
	p, report := loadTiny(t, "llama", nil)
	if report.Vision {
		t.Errorf("report %+v", report)
	}
	err := p.Generate(t.Context(), imageRequest("[img-0]", picture(t, red, 8, 8)), func(runner.Chunk) error { return nil })
	runnertest.WantCode(t, err, fault.Invalid)
}

// TestBadProjectors: each is refused with a reason, and the child lives.
func TestBadProjectors(t *testing.T) {
	whole := tinygguf.Projector(seed)
	rename := func(old, name string) []byte { return bytes.Replace(whole, []byte(old), []byte(name), 1) }
	for name, row := range map[string]struct{ path, say string }{
		"there is no such file":       {filepath.Join(t.TempDir(), "none.gguf"), "projector"},
		"a model":                     {tinyFile(t, "qwen2"), `"qwen2"`},
		"text":                        {written(t, []byte("hello")), "projector"},
		"no mean of colours":          {written(t, rename("clip.vision.image_mean", "clip.vision.image_mexx")), "image_mean"},
		"no encoder":                  {written(t, rename("clip.has_vision_encoder", "clip.has_vision_encodex")), "image encoder"},
		"a tensor is missing":         {written(t, rename("v.blk.1.ffn_down.weight", "v.blk.1.ffn_dxxx.weight")), "projector"},
		"a type that needs more":      {written(t, bytes.Replace(whole, []byte("\x03\x00\x00\x00\x00\x00\x00\x00mlp"), []byte("\x05\x00\x00\x00\x00\x00\x00\x00glm4v"), 1)), "projector"},
		"a type that nobody knows":    {written(t, rename("\x03\x00\x00\x00\x00\x00\x00\x00mlp", "\x03\x00\x00\x00\x00\x00\x00\x00mlx")), "projector"},
		"a head that divides nothing": {written(t, rename("head_count\x04\x00\x00\x00\x02", "head_count\x04\x00\x00\x00\x03")), "3 heads"},
		"no head":                     {written(t, rename("head_count\x04\x00\x00\x00\x02", "head_count\x04\x00\x00\x00\x00")), "head_count"},
		"no pixels in a patch":        {written(t, rename("patch_size\x04\x00\x00\x00\x0e", "patch_size\x04\x00\x00\x00\x00")), "patch_size"},
		"a patch beyond the image":    {written(t, rename("patch_size\x04\x00\x00\x00\x0e", "patch_size\x04\x00\x00\x00\x6e")), "110 pixels"},
		"no image":                    {written(t, rename("image_size\x04\x00\x00\x00\x38", "image_size\x04\x00\x00\x00\x00")), "image_size"},
		"an image of gigapixels":      {written(t, rename("image_size\x04\x00\x00\x00\x38\x00", "image_size\x04\x00\x00\x00\x38\xff")), "image_size"},
		"no block":                    {written(t, rename("block_count\x04\x00\x00\x00\x02", "block_count\x04\x00\x00\x00\x00")), "block_count"},
		"billions of blocks":          {written(t, rename("block_count\x04\x00\x00\x00\x02\x00\x00\x00", "block_count\x04\x00\x00\x00\x02\x00\x00\xf0")), "block_count"},
		"a size of another type":      {written(t, rename("image_size\x04", "image_size\x05")), "image_size"},
		"a float of another type":     {written(t, rename("layer_norm_epsilon\x06", "layer_norm_epsilon\x04")), "epsilon"},
		"a flag of another type":      {written(t, rename("use_gelu\x07", "use_gelu\x00")), "use_gelu"},
		"an encoder of another type":  {written(t, rename("has_vision_encoder\x07", "has_vision_encoder\x00")), "image encoder"},
		"a mean of whole numbers":     {written(t, rename("image_mean\x09\x00\x00\x00\x06", "image_mean\x09\x00\x00\x00\x05")), "image_mean"},
		"a deviation of whole ones":   {written(t, rename("image_std\x09\x00\x00\x00\x06", "image_std\x09\x00\x00\x00\x04")), "image_std"},
	} {
		t.Run(name, func(t *testing.T) {
			err := loadFails(t, runner.LoadRequest{ModelPath: tinyFile(t, "llama"), Projector: row.path})
			runnertest.WantCode(t, err, fault.Invalid)
			if !strings.Contains(err.Error(), row.say) {
				t.Errorf("error %v; want it to say %q", err, row.say)
			}
		})
	}
	err := loadFails(t, runner.LoadRequest{ModelPath: tinyFile(t, "bert"), Projector: tinyFile(t, "projector")})
	runnertest.WantCode(t, err, fault.Invalid)
}
