package models

import (
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// tinyBERT is a sentence encoder of one layer, in the files that a publisher has. Its two config.json are the point: with
// their folders lost, one would replace the other.
func tinyBERT() map[string][]byte {
	type tensor struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	const width, inner, vocab = 4, 8, 6
	header, end := map[string]tensor{}, 0
	add := func(name string, shape ...int) {
		n := 4
		for _, d := range shape {
			n *= d
		}
		header[name] = tensor{"F32", shape, [2]int{end, end + n}}
		end += n
	}
	add("embeddings.word_embeddings.weight", vocab, width)
	add("embeddings.position_embeddings.weight", 16, width)
	add("embeddings.token_type_embeddings.weight", 2, width)
	norm := func(name string) { add(name+".weight", width); add(name+".bias", width) }
	linear := func(name string, out, in int) { add(name+".weight", out, in); add(name+".bias", out) }
	norm("embeddings.LayerNorm")
	for _, part := range []string{"query", "key", "value"} {
		linear("encoder.layer.0.attention.self."+part, width, width)
	}
	linear("encoder.layer.0.attention.output.dense", width, width)
	norm("encoder.layer.0.attention.output.LayerNorm")
	linear("encoder.layer.0.intermediate.dense", inner, width)
	linear("encoder.layer.0.output.dense", width, inner)
	norm("encoder.layer.0.output.LayerNorm")
	head, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	st := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	st = append(append(st, head...), make([]byte, end)...)
	return map[string][]byte{
		"model.safetensors": st,
		"config.json": []byte(`{"architectures":["BertModel"],"hidden_size":4,"intermediate_size":8,"max_position_embeddings":16,` +
			`"num_attention_heads":2,"num_hidden_layers":1,"vocab_size":6,"layer_norm_eps":1e-12}`),
		"1_Pooling/config.json": []byte(`{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false}`),
		"modules.json": []byte(`[{"path":"","type":"sentence_transformers.models.Transformer"},` +
			`{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},{"path":"2_Normalize","type":"sentence_transformers.models.Normalize"}]`),
		"tokenizer.json": []byte(`{"added_tokens":[{"id":0,"content":"[PAD]","special":true},{"id":1,"content":"[UNK]","special":true}],` +
			`"model":{"type":"WordPiece","vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"cat":4,"##s":5}}}`),
		"tokenizer_config.json": []byte(`{"do_lower_case":true}`),
	}
}

func TestCreateFromSafetensors(t *testing.T) {
	s := newStore(t)
	files := map[string]string{}
	for path, data := range tinyBERT() {
		files[path] = addBlob(t, s, data)
	}
	var said []string
	if err := s.Create(t.Context(), CreateRequest{Name: "tiny-bert", Files: files}, func(p api.ProgressResponse) { said = append(said, p.Status) }); err != nil {
		t.Fatal(err)
	}
	m, err := s.Get("tiny-bert")
	if err != nil {
		t.Fatal(err)
	}
	want := Facts{
		Architecture: "bert", Family: "bert", ParameterSize: m.Facts.ParameterSize, Quantization: "F16", ContextLength: 16,
		EmbeddingLength: 4, BlockCount: 1, HeadsKV: 1, Pooling: true,
	}
	m.Facts.Layout = Layout{} // layout_test.go
	if !reflect.DeepEqual(m.Facts, want) {
		t.Errorf("got %+v\nwant %+v", m.Facts, want)
	}
	if caps := m.Capabilities(); !reflect.DeepEqual(caps, []string{"embedding"}) {
		t.Errorf("capabilities: %v", caps)
	}
	kv, _, err := s.Info(m, false)
	if err != nil {
		t.Fatal(err)
	}
	if kv["bert.pooling_type"] != uint32(1) {
		t.Errorf("the pooling is %v: 1_Pooling/config.json was not read", kv["bert.pooling_type"])
	}
	if said[0] != "converting model" {
		t.Errorf("progress: %q", said)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, tempPrefix+"*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSafetensorsRefused(t *testing.T) {
	rows := map[string]struct {
		change func(map[string][]byte)
		want   string
	}{
		"no config":           {func(f map[string][]byte) { delete(f, "config.json") }, "config.json: no such file"},
		"another kind of net": {func(f map[string][]byte) { f["config.json"] = []byte(`{"architectures":["Poet"]}`) }, `unsupported architecture "Poet"`},
		"a header of 2^36 bytes": {func(f map[string][]byte) {
			f["model.safetensors"] = binary.LittleEndian.AppendUint64(nil, 1<<36)
		}, "header is longer than the file"},
		"a tensor of 2^40 bytes": {func(f map[string][]byte) {
			head := `{"embeddings.word_embeddings.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,1099511627776]}}`
			f["model.safetensors"] = append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)
		}, "lies outside the file"},
		"more elements than bytes": {func(f map[string][]byte) {
			head := `{"embeddings.word_embeddings.weight":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4]}}    `
			f["model.safetensors"] = append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head+"1234"...)
		}, "more elements than bytes"},
		"a cut tensor":        {func(f map[string][]byte) { f["model.safetensors"] = f["model.safetensors"][:2100] }, "lies outside the file"},
		"a file for a folder": {func(f map[string][]byte) { f["1_Pooling"] = []byte("x") }, "collides"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			data, files := tinyBERT(), map[string]string{}
			row.change(data)
			for path, d := range data {
				files[path] = addBlob(t, s, d)
			}
			before := blobs(t, s)
			err := s.Create(t.Context(), CreateRequest{Name: "x", Files: files}, nil)
			wantFault(t, err, fault.Invalid, row.want)
			if strings.Contains(fault.Public(err).Msg, s.dir) {
				t.Errorf("the message has a path of the server: %s", fault.Public(err).Msg)
			}
			if after := blobs(t, s); !reflect.DeepEqual(after, before) {
				t.Errorf("blobs before: %v, after: %v", before, after)
			}
			if left, err := filepath.Glob(filepath.Join(s.dir, tempPrefix+"*")); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
