package models

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sluice/fault"
)

func TestOptions(t *testing.T) {
	base := map[string]any{"stop": []any{"<|im_end|>"}, "temperature": 0.2, "num_ctx": float64(2048)}
	with := func(change func(*Options)) Options {
		o := DefaultOptions()
		o.Stop, o.Temperature, o.NumCtx = []string{"<|im_end|>"}, 0.2, 2048
		change(&o)
		return o
	}
	rows := map[string]struct {
		request string
		want    Options
		unknown []string
		err     string
	}{
		"nothing asked":                      {request: `{}`, want: with(func(*Options) {})},
		"the request wins":                   {request: `{"temperature": 1, "seed": 42, "top_k": 1}`, want: with(func(o *Options) { o.Temperature, o.Seed, o.TopK = 1, 42, 1 })},
		"its stop list replaces the model's": {request: `{"stop": ["\n"]}`, want: with(func(o *Options) { o.Stop = []string{"\n"} })},
		"an empty stop list is one":          {request: `{"stop": []}`, want: with(func(o *Options) { o.Stop = []string{} })},
		"empty stop strings are left out":    {request: `{"stop": ["", "x"]}`, want: with(func(o *Options) { o.Stop = []string{"x"} })},
		"null is absent":                     {request: `{"temperature": null, "num_ctx": null}`, want: with(func(*Options) {})},
		"unknown names are given back":       {request: `{"zeta": 1, "alpha": {}, "min_p": 0.1}`, want: with(func(o *Options) { o.MinP = 0.1 }), unknown: []string{"alpha", "zeta"}},
		"a text for an integer":              {request: `{"num_ctx": "4096"}`, err: `option "num_ctx" must be of type integer`},
		"a fraction for an integer":          {request: `{"top_k": 0.5}`, err: `option "top_k" must be of type integer`},
		"an integer beyond all reason":       {request: `{"seed": 1e300}`, err: `option "seed" must be of type integer`},
		"a boolean for a number":             {request: `{"temperature": true}`, err: `option "temperature" must be of type float32`},
		"a number beyond float32":            {request: `{"temperature": 1e300}`, err: `option "temperature" must be of type float32`},
		"a number for a boolean":             {request: `{"use_mmap": 1}`, err: `option "use_mmap" must be of type boolean`},
		"a text for a list":                  {request: `{"stop": "x"}`, err: `option "stop" must be of type array`},
		"a draft":                            {request: `{"draft": "expect", "grammar": "root ::= \"x\""}`, want: with(func(o *Options) { o.Draft, o.Grammar = "expect", `root ::= "x"` })},
		"the usual draft":                    {request: `{"draft": "auto"}`, want: with(func(*Options) {})},
		"a draft that nobody knows":          {request: `{"draft": "often"}`, err: `option "draft" must be off, expect or auto`},
		"a grammar that is no text":          {request: `{"grammar": {}}`, err: `option "grammar" must be of type string`},
		"Ollama's options of the past":       {request: `{"mirostat": 2, "penalize_newline": true, "tfs_z": null}`, want: with(func(*Options) {}), unknown: []string{"mirostat", "penalize_newline", "tfs_z"}},
		"a list of numbers":                  {request: `{"stop": [1]}`, err: `option "stop" must be of type array of strings`},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var request map[string]any
			if err := json.Unmarshal([]byte(row.request), &request); err != nil {
				t.Fatal(err)
			}
			got, unknown, err := (&Model{Params: base}).Options(request)
			if row.err != "" {
				wantFault(t, err, fault.Invalid, row.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
			if !reflect.DeepEqual(unknown, row.unknown) {
				t.Errorf("unknown: %v, want %v", unknown, row.unknown)
			}
		})
	}
}

// TestDefaultOptions holds Ollama's defaults (reference: api/types.go of 0.17.4).
func TestStopsAreBounded(t *testing.T) {
	m := &Model{}
	many := make([]any, maxStops+1)
	for i := range many {
		many[i] = "x"
	}
	for name, stop := range map[string]any{"too many": many, "too long": []any{strings.Repeat("x", maxStop+1)}} {
		if _, _, err := m.Options(map[string]any{"stop": stop}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := m.Options(map[string]any{"stop": many[:maxStops]}); err != nil {
		t.Error(err)
	}
}

func TestDefaultOptions(t *testing.T) {
	want := Options{
		NumKeep: 4, Seed: -1, NumPredict: -1, TopK: 40, TopP: 0.9, MinP: 0, TypicalP: 1, RepeatLastN: 64, Temperature: 0.8,
		RepeatPenalty: 1.1, NumBatch: 512, NumGPU: -1, UseMmap: true,
	}
	got, _, err := (&Model{}).Options(nil)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	// every field can be set by some name: one that is forgotten would silently do nothing
	if n := reflect.TypeOf(want).NumField(); n != len((&Options{}).fields()) {
		t.Errorf("%d fields, %d names", n, len((&Options{}).fields()))
	}
}
