package engine

import (
	"fmt"
	"os"
	"slices"

	"sluice/fault"
	"sluice/runner"
)

// projectorArch is the architecture of files with an image encoder and its projector.
const projectorArch = "clip"

// loadProjector makes the model take images (m.vision, m.wholeImages), if the request names a projector. It goes to the first device of
// the placement; clip.cpp would take the machine's first, and lets only the environment say otherwise.
func (m *loaded) loadProjector(req runner.LoadRequest, place placement) error {
	if req.Projector == "" {
		return nil
	}
	facts, err := readFacts(req.Projector)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "engine.Load", "the projector: %v", err)
	}
	switch {
	case m.pooled:
		return fault.New(fault.Invalid, "engine.Load", "this model makes vectors of texts; it takes no projector of images")
	case facts.arch != projectorArch:
		return fault.New(fault.Invalid, "engine.Load", "the projector's file has the architecture %q; an image projector has %q", facts.arch, projectorArch)
	case facts.kinds["clip.has_vision_encoder"].value != ggufBool || facts.ints["clip.has_vision_encoder"] == 0:
		return fault.New(fault.Invalid, "engine.Load", "the projector's file has no image encoder")
	}
	if err := facts.checkProjector(); err != nil {
		return fault.Wrap(err, fault.Invalid, "engine.Load", "the projector's file is damaged: %v", err)
	}
	if err := os.Setenv("MTMD_BACKEND_DEVICE", place.lead()); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	mtmd, whole, several := projector(m.model, req.Projector, someThreads(req.NumThread), place.layers() > 0)
	if mtmd == nil {
		return fault.New(fault.Invalid, "engine.Load",
			"llama.cpp cannot load the projector, or it does not fit the model; the server's log says why")
	}
	if several {
		// The module's batches have room for one position of each row: llama.cpp would read behind their end.
		mtmd.Free()
		return fault.New(fault.Invalid, "engine.Load", "projectors like this one (Qwen-VL, GLM-V) cannot be used beside llama.cpp here; "+
			"a file with the vision tensors inside, as Ollama's library has it, runs on the fallback engine")
	}
	m.vision, m.wholeImages, m.eye = true, whole, &eye{mtmd: mtmd}
	return nil
}

// projectorKey is a key of a projector's file as llama.cpp reads it (clip.cpp of v0.17.4). It aborts at one of another type, and
// divides by most of the numbers.
type projectorKey struct {
	kind        uint32
	least, most int64 // of a number; most 0: any
	must        bool  // where the encoder is there
}

// Bounds far beyond those of real encoders, and small enough that no product of two of them wraps.
const (
	mostPixels = 1 << 14 // of a side
	mostWidth  = 1 << 16
	mostLayers = 1 << 10
)

// encoderKeys stand behind clip.vision. and clip.audio.
var encoderKeys = map[string]projectorKey{
	"projector_type":               {kind: ggufString},
	"embedding_length":             {ggufUint32, 1, mostWidth, true},
	"feed_forward_length":          {ggufUint32, 0, mostWidth * 16, true},
	"projection_dim":               {ggufUint32, 0, mostWidth, true},
	"block_count":                  {ggufUint32, 1, mostLayers, true},
	"attention.head_count":         {ggufUint32, 1, mostLayers, true},
	"attention.layer_norm_epsilon": {kind: ggufFloat32, must: true},
}

var projectorKeys = map[string]projectorKey{
	"general.name":                       {kind: ggufString},
	"general.description":                {kind: ggufString},
	"clip.projector_type":                {kind: ggufString},
	"clip.has_vision_encoder":            {kind: ggufBool},
	"clip.has_audio_encoder":             {kind: ggufBool},
	"clip.use_gelu":                      {kind: ggufBool},
	"clip.use_silu":                      {kind: ggufBool},
	"clip.minicpmv_version":              {ggufInt32, 0, 1 << 10, false},
	"clip.minicpmv_query_num":            {ggufUint32, 0, mostPixels, false},
	"clip.vision.image_size":             {ggufUint32, 1, mostPixels, true},
	"clip.vision.patch_size":             {ggufUint32, 1, mostPixels, true},
	"clip.vision.image_crop_resolution":  {ggufUint32, 0, mostPixels, false},
	"clip.vision.preproc_image_size":     {ggufUint32, 1, mostPixels, false},
	"clip.vision.projector.scale_factor": {ggufUint32, 1, 64, false},
	"clip.vision.spatial_merge_size":     {ggufUint32, 1, 64, false},
	"clip.vision.n_wa_pattern":           {ggufUint32, 0, mostLayers, false},
	"clip.vision.mm_patch_merge_type":    {kind: ggufString},
	"clip.audio.num_mel_bins":            {ggufUint32, 1, mostPixels, false},
	"clip.audio.projector.stack_factor":  {ggufUint32, 1, mostPixels, false},
}

// checkProjector refuses a file whose keys would end the process. What its tensors are is llama.cpp's to check.
func (f fileFacts) checkProjector() error {
	for key, want := range projectorKeys {
		if err := f.checkKey(key, want); err != nil {
			return err
		}
	}
	encoders := map[string]bool{"vision": true, "audio": f.ints["clip.has_audio_encoder"] != 0}
	for encoder, there := range encoders {
		for name, want := range encoderKeys {
			want.must = want.must && there
			if err := f.checkKey("clip."+encoder+"."+name, want); err != nil {
				return err
			}
		}
	}
	number := func(name string) int64 { return f.ints["clip.vision."+name] }
	if number("patch_size") > number("image_size") {
		return fmt.Errorf("patches of %d pixels in an image of %d", number("patch_size"), number("image_size"))
	}
	if number("embedding_length")%number("attention.head_count") != 0 {
		return fmt.Errorf("a width of %d cannot be shared by %d heads", number("embedding_length"), number("attention.head_count"))
	}
	for _, key := range []string{"clip.vision.image_mean", "clip.vision.image_std"} {
		// Three of each are read as floats, whatever they are.
		if f.kinds[key] != (ggufKind{ggufArray, ggufFloat32}) || len(f.lists[key]) < 3 {
			return fmt.Errorf("key %s is no list of three or more float32", key)
		}
	}
	return f.checkLists()
}

func (f fileFacts) checkKey(key string, want projectorKey) error {
	kind, ok := f.kinds[key]
	switch n := f.ints[key]; {
	case !ok && want.must:
		return fmt.Errorf("it lacks the key %s", key)
	case !ok:
		return nil
	case kind.value != want.kind:
		return fmt.Errorf("key %s has the type %d instead of %d", key, kind.value, want.kind)
	case want.most > 0 && (n < want.least || n > want.most):
		return fmt.Errorf("key %s is %d; it must be from %d to %d", key, n, want.least, want.most)
	}
	return nil
}

// checkLists checks the lists of whole numbers, which are read as 32 bits each.
func (f fileFacts) checkLists() error {
	const layers, sizes = "clip.vision.feature_layer", "clip.vision.image_grid_pinpoints"
	for _, key := range []string{layers, sizes} {
		kind, ok := f.kinds[key]
		if !ok {
			continue
		}
		numbers := kind.value == ggufArray && (kind.element == ggufInt32 || kind.element == ggufUint32)
		if _, kept := f.lists[key]; !numbers || !kept {
			return fmt.Errorf("key %s is no list of up to %d numbers of 32 bits", key, maxList)
		}
	}
	// Sizes stand in pairs; llama.cpp reads behind the end of an odd one.
	bad := func(n int64) bool { return n < 1 || n > mostPixels }
	if list := f.lists[sizes]; len(list)%2 != 0 || slices.ContainsFunc(list, bad) {
		return fmt.Errorf("key %s has no pairs of sizes from 1 to %d", sizes, mostPixels)
	}
	return nil
}
