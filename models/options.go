package models

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"sluice/fault"
)

// Options are Ollama's options with its defaults. Num* zero where absent and the scheduler decides.
type Options struct {
	NumCtx     int // 0: as loaded, or the default
	NumBatch   int
	NumGPU     int // -1 all
	NumThread  int
	UseMmap    bool
	NumPredict int
	NumKeep    int
	Stop       []string

	Temperature      float32
	TopK             int
	TopP             float32
	MinP             float32
	TypicalP         float32
	RepeatLastN      int
	RepeatPenalty    float32
	PresencePenalty  float32
	FrequencyPenalty float32
	Seed             int

	// What Ollama does not have.
	Draft   string // guessing tokens from what the prompt repeats, as runner.Draft: "" (also for "auto"), "off", "expect"
	Grammar string // GBNF that the answer must match, with a rule "root"; not together with a format
}

// DefaultOptions are Ollama's.
func DefaultOptions() Options {
	return Options{
		NumBatch: 512, NumGPU: -1, UseMmap: true, NumPredict: -1, NumKeep: 4,
		Temperature: 0.8, TopK: 40, TopP: 0.9, TypicalP: 1, RepeatLastN: 64, RepeatPenalty: 1.1, Seed: -1,
	}
}

// fields finds each option's place by its name on the wire. The types are *int, *float32, *bool, *string
// and *[]string.
func (o *Options) fields() map[string]any {
	return map[string]any{
		"num_ctx": &o.NumCtx, "num_batch": &o.NumBatch, "num_gpu": &o.NumGPU, "num_thread": &o.NumThread, "use_mmap": &o.UseMmap,
		"num_predict": &o.NumPredict, "num_keep": &o.NumKeep, "stop": &o.Stop,
		"temperature": &o.Temperature, "top_k": &o.TopK, "top_p": &o.TopP, "min_p": &o.MinP, "typical_p": &o.TypicalP,
		"repeat_last_n": &o.RepeatLastN, "repeat_penalty": &o.RepeatPenalty, "presence_penalty": &o.PresencePenalty,
		"frequency_penalty": &o.FrequencyPenalty, "seed": &o.Seed, "draft": &o.Draft, "grammar": &o.Grammar,
	}
}

// Options merges defaults, the model's parameters and a request's options, in that order of precedence (last wins).
// The request's unknown names are ignored and returned, sorted; null values count as absent; a wrong type is Invalid.
// A stop list of the request replaces the model's.
func (m *Model) Options(request map[string]any) (opts Options, unknown []string, err error) {
	opts = DefaultOptions()
	if _, err := opts.merge(m.Params); err != nil {
		return Options{}, nil, err
	}
	if unknown, err = opts.merge(request); err != nil {
		return Options{}, nil, err
	}
	return opts, unknown, nil
}

// merge sets the options that are in from, in the order of their names, so that the same mistake is always reported.
func (o *Options) merge(from map[string]any) (unknown []string, err error) {
	fields := o.fields()
	for _, key := range slices.Sorted(maps.Keys(from)) {
		v := from[key]
		field, ok := fields[key]
		if !ok {
			unknown = append(unknown, key)
			continue
		}
		if v == nil {
			continue
		}
		if want := set(field, v); want != "" {
			return nil, fault.New(fault.Invalid, "models.Options", "option %q must be of type %s", key, want)
		}
	}
	if len(o.Stop) > maxStops || slices.ContainsFunc(o.Stop, func(s string) bool { return len(s) > maxStop }) {
		return nil, fault.New(fault.Invalid, "models.Options", "option \"stop\" may hold at most %d texts of %d bytes", maxStops, maxStop)
	}
	if !slices.Contains([]string{"", "off", "expect", "auto"}, o.Draft) {
		return nil, fault.New(fault.Invalid, "models.Options", "option \"draft\" must be off, expect or auto")
	}
	if o.Draft == "auto" {
		o.Draft = ""
	}
	if len(o.Grammar) > maxGrammar {
		return nil, fault.New(fault.Invalid, "models.Options", "option \"grammar\" may have at most %d KiB", maxGrammar>>10)
	}
	return unknown, nil
}

// maxGrammar is far more than any grammar that a runner can follow.
const maxGrammar = 256 << 10

// Each stop text is looked for after each token.
const (
	maxStops = 64
	maxStop  = 1 << 10
)

// set puts a value into a field. It gives the type that it wanted when the value has another.
func set(field, v any) (want string) {
	switch f := field.(type) {
	case *int:
		n, ok := number(v)
		if !ok || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			return "integer"
		}
		*f = int(n)
	case *float32:
		n, ok := number(v)
		if !ok || math.Abs(n) > math.MaxFloat32 {
			return "float32"
		}
		*f = float32(n)
	case *bool:
		b, ok := v.(bool)
		if !ok {
			return "boolean"
		}
		*f = b
	case *string:
		text, ok := v.(string)
		if !ok {
			return "string"
		}
		*f = text
	case *[]string:
		list, want := stringList(v)
		if want != "" {
			return want
		}
		*f = list
	}
	return ""
}

// number reads what JSON, YAML or Go code gives for a number. NaN is none.
func number(v any) (float64, bool) {
	var f float64
	switch n := v.(type) {
	case float64:
		f = n
	case float32:
		f = float64(n)
	case int:
		f = float64(n)
	case int64:
		f = float64(n)
	case uint64:
		f = float64(n)
	case json.Number:
		var err error
		if f, err = n.Float64(); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return f, !math.IsNaN(f)
}

// stringList reads a list of strings. Empty ones are left out: every text ends with the empty string, so nothing would
// ever be generated.
func stringList(v any) (list []string, want string) {
	var items []any
	switch v := v.(type) {
	case []any:
		items = v
	case []string:
		for _, s := range v {
			items = append(items, s)
		}
	default:
		return nil, "array"
	}
	list = []string{}
	for _, item := range items {
		s, ok := item.(string)
		if !ok {
			return nil, "array of strings"
		}
		if s != "" {
			list = append(list, s)
		}
	}
	return list, ""
}
