package engine

import (
	"errors"
	"image"
	"strings"
	"sync"
	"testing"

	modelinput "github.com/ollama/ollama/model/input"

	"sluice/fault"
	"sluice/runner"
)

func TestStripOfAnImage(t *testing.T) {
	for name, row := range map[string]struct {
		ints map[string]int64
		want int
	}{
		"nothing is known":         {nil, maxStrip},
		"Mistral Small 3.1":        {map[string]int64{"a.vision.longest_edge": 1540, "a.vision.patch_size": 14, "a.spatial_merge_size": 2}, maxStrip},
		"a small encoder":          {map[string]int64{"a.vision.image_size": 224, "a.vision.patch_size": 14}, 8},
		"one that merges them all": {map[string]int64{"a.vision.image_size": 28, "a.vision.patch_size": 14, "a.spatial_merge_size": 4}, 1},
	} {
		if got := (fileFacts{arch: "a", ints: row.ints}).strip(); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

func TestImagesAreNeverTooThin(t *testing.T) {
	for name, row := range map[string]struct {
		width, height, strip int
		want                 image.Point
	}{
		"one that is large enough stays": {640, 480, 16, image.Pt(640, 480)},
		"a pixel":                        {1, 1, 16, image.Pt(64, 64)},
		"a thumbnail":                    {20, 40, 16, image.Pt(80, 160)},
		"a line":                         {3200, 1, 16, image.Pt(3200, 200)},
		"a short line":                   {60, 1, 16, image.Pt(1020, 64)},
		"a tower in a small encoder":     {10, 800, 2, image.Pt(400, 800)},
	} {
		got := onWhite(image.NewRGBA(image.Rect(0, 0, row.width, row.height)), row.strip).Bounds().Size()
		if got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestFollowingToAText(t *testing.T) {
	for name, row := range map[string]struct {
		pieces []string
		ok     bool // the last piece may be taken
		bound  bool // behind it the grammar binds
	}{
		"something else":             {[]string{"a", "b"}, true, false},
		"the text in pieces":         {[]string{"a</", "thi", "nk>"}, true, true},
		"the text in one":            {[]string{"</think>"}, true, true},
		"the text and more":          {[]string{"x</think", ">{"}, false, false},
		"a beginning that was none":  {[]string{"</thi", "s", "nk>"}, true, false},
		"a beginning within another": {[]string{"</th</th", "ink>"}, true, true},
	} {
		p := &modulePick{after: "</think>"}
		ok := true
		for _, piece := range row.pieces {
			ok = p.follow(piece)
		}
		if ok != row.ok || (p.after == "") != row.bound {
			t.Errorf("%s: taken %t, bound %t", name, ok, p.after == "")
		}
	}
}

func TestProgressOfManyIsOneByOne(t *testing.T) {
	var told []float32
	progress := oneByOne(func(p float32) { told = append(told, p) })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 1000 {
				progress(float32(k*8+i) / 8000)
			}
		})
	}
	wg.Wait()
	if len(told) < 2 || len(told) > 101 {
		t.Fatalf("told %d times", len(told))
	}
	for i := 1; i < len(told); i++ {
		if told[i] <= told[i-1] {
			t.Errorf("after %f it said %f", told[i-1], told[i])
		}
	}
	oneByOne(nil)(0.5) // nobody asked: nobody is told
}

// TestCutsSpareImages: the inputs of an image are cut away as a whole or not at all.
func TestCutsSpareImages(t *testing.T) {
	text := func(n int) (out []*modelinput.Input) {
		for i := range n {
			out = append(out, &modelinput.Input{Token: int32(i + 1)})
		}
		return out
	}
	picture := append([]*modelinput.Input{{Token: 100, SameBatch: 3}}, text(3)...)
	for name, row := range map[string]struct {
		inputs []*modelinput.Input
		keep   int
		want   int // inputs left; 0: refused
	}{
		"text only":                          {text(14), 2, 10},
		"it fits":                            {text(10), 0, 10},
		"an image at the cut is left out":    {append(append(text(4), picture...), text(6)...), 2, 8},
		"an image behind the cut stays":      {append(append(text(10), picture...), text(2)...), 2, 10},
		"num_keep in an image":               {append(picture, text(10)...), 2, 0},
		"the image at the end does not fit":  {append(text(9), append([]*modelinput.Input{{SameBatch: 9}}, text(9)...)...), 2, 0},
		"more to keep than there is context": {text(14), -1, 10},
	} {
		m := &module{numCtx: 10}
		got, _, cut, err := m.fit(row.inputs, runner.GenerateRequest{Truncate: true, NumKeep: row.keep})
		var refusal *fault.Error
		if row.want == 0 {
			if !errors.As(err, &refusal) || refusal.Code != fault.Invalid {
				t.Errorf("%s: %d inputs, %v", name, len(got), err)
			}
			continue
		}
		if err != nil || len(got) != row.want || cut != (len(row.inputs) > 10) {
			t.Errorf("%s: %d inputs, cut %t, %v; want %d", name, len(got), cut, err, row.want)
		}
	}
}

func TestFallbackEndsAnAnswerWhoseGrammarIsSlow(t *testing.T) {
	p := &modulePick{slow: true}
	if _, err := p.bound([]float32{1}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "too many ways") {
		t.Errorf("error %v", err)
	}
}
