package engine

import (
	"maps"
	"strings"
	"testing"

	"sluice/internal/tinygguf"
)

// TestProjectorKeys: what is wrong with one key is told by its name.
func TestProjectorKeys(t *testing.T) {
	path, err := tinygguf.Write(t.TempDir(), "projector", 1)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := readFacts(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.checkProjector(); err != nil {
		t.Fatalf("a sound file: %v", err)
	}
	type damage func(f fileFacts, key string)
	kind := func(value, element uint32) damage {
		return func(f fileFacts, key string) { f.kinds[key] = ggufKind{value, element} }
	}
	list := func(element uint32, numbers ...int64) damage {
		return func(f fileFacts, key string) {
			f.kinds[key], f.lists[key] = ggufKind{ggufArray, element}, numbers
		}
	}
	number := func(value uint32, n int64) damage {
		return func(f fileFacts, key string) { f.kinds[key], f.ints[key] = ggufKind{value: value}, n }
	}
	for name, row := range map[string]struct {
		key    string
		damage damage
		fine   bool
	}{
		"a list for a number":               {"clip.vision.block_count", kind(ggufArray, ggufUint32), false},
		"a number for a list":               {"clip.vision.image_mean", kind(ggufFloat32, 0), false},
		"two colours":                       {"clip.vision.image_std", list(ggufFloat32, 0, 0), false},
		"doubles":                           {"clip.vision.image_std", list(ggufFloat64, 0, 0, 0), false},
		"a name that is a number":           {"general.name", number(ggufUint32, 1), false},
		"a merge of nothing":                {"clip.vision.spatial_merge_size", number(ggufUint32, 0), false},
		"a merge of two":                    {"clip.vision.spatial_merge_size", number(ggufUint32, 2), true},
		"a merge as a 64-bit number":        {"clip.vision.spatial_merge_size", number(ggufUint64, 2), false},
		"a version of the wrong sign":       {"clip.minicpmv_version", number(ggufUint32, 3), false},
		"a scale of nothing":                {"clip.vision.projector.scale_factor", number(ggufUint32, 0), false},
		"layers as texts":                   {"clip.vision.feature_layer", kind(ggufArray, ggufString), false},
		"layers as bytes":                   {"clip.vision.feature_layer", list(ggufUint8, 1, 2), false},
		"layers":                            {"clip.vision.feature_layer", list(ggufInt32, 1, 2), true},
		"more layers than are kept":         {"clip.vision.feature_layer", kind(ggufArray, ggufInt32), false},
		"an odd number of sizes":            {"clip.vision.image_grid_pinpoints", list(ggufInt32, 336, 672, 336), false},
		"a size of nothing":                 {"clip.vision.image_grid_pinpoints", list(ggufInt32, 336, 0), false},
		"sizes":                             {"clip.vision.image_grid_pinpoints", list(ggufInt32, 336, 672), true},
		"an ear that is not there":          {"clip.has_audio_encoder", number(ggufBool, 0), true},
		"an ear of which nothing is known":  {"clip.has_audio_encoder", number(ggufBool, 1), false},
		"an ear of another type":            {"clip.audio.block_count", number(ggufString, 0), false},
		"another projector for the picture": {"clip.vision.projector_type", number(ggufUint32, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			facts := fileFacts{ints: maps.Clone(whole.ints), lists: maps.Clone(whole.lists), kinds: maps.Clone(whole.kinds)}
			row.damage(facts, row.key)
			err := facts.checkProjector()
			if (err == nil) != row.fine || err != nil && !strings.Contains(err.Error(), "clip.") && !strings.Contains(err.Error(), row.key) {
				t.Errorf("error %v", err)
			}
		})
	}
	for key, want := range projectorKeys {
		if want.must {
			facts := fileFacts{ints: whole.ints, lists: whole.lists, kinds: maps.Clone(whole.kinds)}
			delete(facts.kinds, key)
			if err := facts.checkProjector(); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("without %s: %v", key, err)
			}
		}
	}
}
