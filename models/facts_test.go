package models

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"sluice/fault"
)

func TestRealModelsFacts(t *testing.T) {
	s := realStore(t)
	rows := map[string]Facts{
		"qwen2.5-coder:0.5b": {
			Architecture: "qwen2", Family: "qwen2", ParameterSize: "630.17M", Quantization: "Q4_K_M", ContextLength: 32768,
			EmbeddingLength: 896, BlockCount: 24, HeadsKV: 2,
		},
		"smollm2:135m": {
			Architecture: "llama", Family: "llama", ParameterSize: "134.52M", Quantization: "Q4_1", ContextLength: 8192,
			EmbeddingLength: 576, BlockCount: 30, HeadsKV: 3,
		},
	}
	for name, want := range rows {
		t.Run(name, func(t *testing.T) {
			m, err := s.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			m.Facts.Layout = Layout{} // layout_test.go
			if !reflect.DeepEqual(m.Facts, want) {
				t.Errorf("got  %+v\nwant %+v", m.Facts, want)
			}
			if d := m.Details(); d.Format != "gguf" || d.Family != want.Family || len(d.Families) != 1 || d.ParameterSize != want.ParameterSize || d.QuantizationLevel != want.Quantization {
				t.Errorf("details: %+v", d)
			}
			caps := []string{"completion", "embedding"}
			if name == "qwen2.5-coder:0.5b" { // its own chat template knows tools
				caps = append(caps, "tools")
			}
			if got := m.Capabilities(); !reflect.DeepEqual(got, caps) {
				t.Errorf("capabilities: %v, want %v", got, caps)
			}
		})
	}
}

func TestRealModelsInfo(t *testing.T) {
	s := realStore(t)
	m, err := s.Get("qwen2.5-coder:0.5b")
	if err != nil {
		t.Fatal(err)
	}
	kv, tensors, err := s.Info(m, false)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"general.architecture": "qwen2", "qwen2.context_length": uint32(32768), "general.parameter_count": uint64(630167424),
		"general.basename": "Qwen2.5-Coder", "tokenizer.ggml.add_bos_token": false,
	} {
		if kv[key] != want {
			t.Errorf("%s is %#v, want %#v", key, kv[key], want)
		}
	}
	if list, ok := kv["tokenizer.ggml.tokens"].([]any); !ok || list == nil || len(list) != 0 {
		t.Errorf("a long list is %#v, want an empty one that is not null", kv["tokenizer.ggml.tokens"])
	}
	if len(tensors) != 0 || kv["tokenizer.chat_template"] != nil {
		t.Error("tensors or the chat template are given although it is not verbose")
	}
	kv, tensors, err = s.Info(m, true)
	if err != nil {
		t.Fatal(err)
	}
	if list, _ := kv["tokenizer.ggml.tokens"].([]any); len(list) != 151936 {
		t.Errorf("verbose gives %d tokens", len(list))
	}
	if len(tensors) != 291 || tensors[0].Type == "" || len(tensors[0].Shape) == 0 {
		t.Errorf("verbose gives %d tensors", len(tensors))
	}
}

func TestInfoOfOddValues(t *testing.T) {
	s := newStore(t)
	d := addBlob(t, s, tinyGGUF(t, map[string]any{
		"llama.rope.freq_base": float32(math.NaN()), "llama.weights": []float32{1, 2}, "general.languages": []string{"en", "de"},
	}))
	if err := s.Create(t.Context(), CreateRequest{Name: "odd", Files: map[string]string{"x.gguf": d}}, nil); err != nil {
		t.Fatal(err)
	}
	m, err := s.Get("odd")
	if err != nil {
		t.Fatal(err)
	}
	kv, _, err := s.Info(m, false)
	if err != nil {
		t.Fatal(err)
	}
	if v, there := kv["llama.rope.freq_base"]; v != nil || !there {
		t.Errorf("NaN is %v: JSON cannot carry it", v)
	}
	if !reflect.DeepEqual(kv["general.languages"], []any{"en", "de"}) || !reflect.DeepEqual(kv["llama.weights"], []any{1.0, 2.0}) {
		t.Errorf("short lists: %v, %v", kv["general.languages"], kv["llama.weights"])
	}
}

// TestHostileFiles holds that no file, whatever it claims, panics or makes this process allocate what it claims.
func TestHostileFiles(t *testing.T) {
	whole := tinyGGUF(t, nil)
	const huge = uint64(1) << 60
	rows := map[string]struct {
		data []byte
		want string
	}{
		"empty":                               {nil, "ends too early"},
		"another format":                      {[]byte("PK\x03\x04 something else entirely"), "does not begin with GGUF"},
		"version 1":                           {raw(1, 0, 0).Bytes(), "version 1"},
		"version 99":                          {raw(99, 0, 0).Bytes(), "version 99"},
		"2^60 keys":                           {raw(3, 0, huge).Bytes(), "too many"},
		"2^60 tensors":                        {raw(3, huge, 0).Bytes(), "too many"},
		"a key of 2^62 bytes":                 {raw(3, 0, 1).num(uint64(1) << 62).Bytes(), "too long"},
		"a string of 2^33 bytes":              {raw(3, 0, 2).arch().key("x", ggufString).num(uint64(1) << 33).Bytes(), "too long"},
		"a string longer than the file":       {raw(3, 0, 2).arch().key("x", ggufString).num(uint64(1000)).Bytes(), "ends too early"},
		"a list of 2^60 numbers":              {raw(3, 0, 2).arch().key("x", ggufArray).num(uint32(4)).num(huge).Bytes(), "does not fit"},
		"a list of 2^61 numbers of 8 bytes":   {raw(3, 0, 2).arch().key("x", ggufArray).num(uint32(10)).num(uint64(1) << 61).Bytes(), "elements"},
		"a list of 2^40 strings":              {raw(3, 0, 2).arch().key("x", ggufArray).num(uint32(ggufString)).num(uint64(1) << 40).Bytes(), "more than the file"},
		"a list of lists":                     {raw(3, 0, 2).arch().key("x", ggufArray).num(uint32(ggufArray)).num(uint64(1)).Bytes(), "unknown type"},
		"a value of unknown type":             {raw(3, 0, 2).arch().key("x", 77).Bytes(), "unknown type"},
		"no architecture":                     {tinyRaw(raw(3, 0, 0)), "architecture is missing"},
		"the architecture is a number":        {raw(3, 0, 1).key("general.architecture", ggufUint32).num(uint32(1)).Bytes(), "not a string"},
		"the alignment is a string":           {raw(3, 0, 2).arch().key("general.alignment", ggufString).str("x").Bytes(), "not a uint32"},
		"the alignment is 0":                  {raw(3, 0, 2).arch().key("general.alignment", ggufUint32).num(uint32(0)).Bytes(), "power of two"},
		"the alignment is 3":                  {raw(3, 0, 2).arch().key("general.alignment", ggufUint32).num(uint32(3)).Bytes(), "power of two"},
		"a key twice":                         {raw(3, 0, 2).arch().arch().Bytes(), "twice"},
		"tokens are numbers":                  {raw(3, 0, 2).arch().key("tokenizer.ggml.tokens", ggufArray).num(uint32(4)).num(uint64(1)).num(uint32(1)).Bytes(), "list of strings"},
		"no token":                            {raw(3, 0, 2).arch().key("tokenizer.ggml.tokens", ggufArray).num(uint32(ggufString)).num(uint64(0)).Bytes(), "list of strings"},
		"a token twice":                       {tinyGGUF(t, map[string]any{"tokenizer.ggml.tokens": []string{"a", "a", "c", "d", "e", "f", "g"}}), "twice"},
		"fewer types than tokens":             {tinyGGUF(t, map[string]any{"tokenizer.ggml.token_type": []int32{1}}), "1 entries for 7 tokens"},
		"a tensor of 2^32 dimensions":         {raw(3, 1, 1).arch().str("t").num(uint32(math.MaxUint32)).Bytes(), "dimensions"},
		"a tensor of 2^120 elements":          {raw(3, 1, 1).arch().str("t").num(uint32(2)).num(huge).num(huge).Bytes(), "too large"},
		"a tensor after the end":              {raw(3, 1, 1).arch().str("t").num(uint32(1)).num(uint64(4)).num(uint32(0)).num(huge).Bytes(), "after the end"},
		"a tensor that is cut off":            {whole[:len(whole)-8], "cut short"},
		"cut in the header":                   {whole[:100], "ends too early"},
		"as many head counts as no model has": {tinyGGUF(t, map[string]any{"llama.attention.head_count_kv": make([]uint32, 2000)}), "damaged"},
	}
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			d := addBlob(t, s, row.data)
			_, err := s.factsOf(d)
			wantFault(t, err, fault.Invalid, row.want)
			// and as a model that is already there, as another program may have left it
			err = s.Create(t.Context(), CreateRequest{Name: "x", Files: map[string]string{"x.gguf": d}}, nil)
			wantFault(t, err, fault.Invalid, "")
			n, _ := parseName("planted")
			mf := &manifest{SchemaVersion: 2, Layers: []layer{{MediaType: mediaModel, Digest: d, Size: 1}}}
			if err := s.writeManifest(n, mf); err != nil {
				t.Fatal(err)
			}
			_, err = s.Get("planted")
			wantFault(t, err, fault.Invalid, "planted")
			if list, err := s.List(); err != nil || len(list) != 0 {
				t.Errorf("a broken model is listed: %v, %v", list, err)
			}
		})
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 200 {
		t.Errorf("%d MiB were allocated for files of a few bytes", got)
	}
}

func tinyRaw(r *rawGGUF) []byte { return r.Bytes() }

func TestWholeFilePasses(t *testing.T) {
	data := tinyGGUF(t, nil)
	if err := checkHeader(bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
}

// FuzzDecode looks for a file that panics. The seeds are a whole file and files that it would take long to find from it.
func FuzzDecode(f *testing.F) {
	f.Add(tinyGGUF(f, nil))
	f.Add(raw(3, 1, 1).arch().str("t").num(uint32(1)).num(uint64(4)).num(uint32(39)).num(uint64(0)).Bytes())
	f.Add(raw(2, 0, 1).arch().Bytes())
	f.Add(append(raw(3, 2, 1).arch().info("a", 0, 0, 4, 4).info("b", 12, 64, 256).Bytes(), make([]byte, 512)...))
	f.Add(append(raw(3, 1, 2).arch().key("general.alignment", ggufUint32).num(uint32(64)).info("t", 2, 64, 32).Bytes(), make([]byte, 256)...))
	f.Add(append(raw(3, 1, 3).arch().key(keySplitNo, ggufUint16).num(uint16(0)).key(keySplitCount, ggufUint16).num(uint16(2)).info("t", 0, 0, 4).Bytes(), make([]byte, 64)...))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		g, err := decode(file, keepArray)
		if err == nil {
			checkTensors(t, data, g)
			_, err = readFacts(g)
		}
		if err != nil && fault.CodeOf(err) != fault.Invalid && !strings.Contains(err.Error(), "which this version does not know") {
			t.Errorf("%s: %v", fault.CodeOf(err), err)
		}
		if err != nil && strings.Contains(err.Error(), "panic: runtime error: makeslice") {
			t.Errorf("the header check let an allocation through: %v", err)
		}
	})
}
