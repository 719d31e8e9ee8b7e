package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/runner"
)

// keepAlive is how long a model stays loaded after a request. Ollama's own type refuses numeric texts such as "-1" and
// "300", which clients send; here they are seconds, as a number is. Negative keeps for ever.
type keepAlive struct{ time.Duration }

// UnmarshalJSON reads seconds, or a text with Go's duration or seconds.
func (k *keepAlive) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case float64:
		k.Duration = seconds(v)
		return nil
	case string:
		if d, err := time.ParseDuration(v); err == nil {
			k.Duration = d
			if d < 0 {
				k.Duration = -1
			}
			return nil
		}
		if n, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			k.Duration = seconds(n)
			return nil
		}
		return fmt.Errorf(`keep_alive %q is not a duration: use seconds, such as 300, or a text such as "5m"`, printable(v, 40))
	}
	return fmt.Errorf(`keep_alive must be seconds, such as 300, or a text such as "5m"`)
}

// seconds is a duration; negative, or beyond what a duration holds, is for ever.
func seconds(n float64) time.Duration {
	if n < 0 || n > math.MaxInt64/float64(time.Second) {
		return -1
	}
	return time.Duration(n * float64(time.Second))
}

// duration is nil where the request did not say.
func (k *keepAlive) duration() *time.Duration {
	if k == nil {
		return nil
	}
	return &k.Duration
}

// unloads tells whether 0 was asked for.
func (k *keepAlive) unloads() bool { return k != nil && k.Duration == 0 }

// nameField is a model's name; clients write either key.
type nameField struct {
	Model string `json:"model"`
	Name  string `json:"name"`
}

func (n nameField) name() string {
	if n.Model != "" {
		return n.Model
	}
	return n.Name
}

// inferenceFields are what chat and generate have in common.
type inferenceFields struct {
	nameField
	Stream      *bool           `json:"stream"`
	Format      json.RawMessage `json:"format"`
	KeepAlive   *keepAlive      `json:"keep_alive"`
	Options     map[string]any  `json:"options"`
	Think       *api.ThinkValue `json:"think"`
	Truncate    *bool           `json:"truncate"`
	Shift       *bool           `json:"shift"`
	Logprobs    bool            `json:"logprobs"`
	TopLogprobs int             `json:"top_logprobs"`
}

func (f *inferenceFields) common() *inferenceFields { return f }

func (f *inferenceFields) streams() bool   { return f.Stream == nil || *f.Stream }
func (f *inferenceFields) truncates() bool { return f.Truncate == nil || *f.Truncate }
func (f *inferenceFields) shifts() bool    { return f.Shift == nil || *f.Shift }

// check refuses what no model here can do.
func (f *inferenceFields) check() error {
	const op = "gateway.inference"
	switch {
	case f.TopLogprobs < 0 || f.TopLogprobs > 20:
		return fault.New(fault.Invalid, op, "top_logprobs must be between 0 and 20")
	case f.Logprobs || f.TopLogprobs > 0:
		return fault.New(fault.Unimplemented, op, "log probabilities are not part of this version of Sluice")
	case f.Think.Bool():
		return fault.New(fault.Invalid, op, "%q does not support thinking", f.name())
	}
	_, err := schemaOf(f.Format)
	return err
}

// schemaOf reads "format" as the schema that a runner takes: "" unconstrained, "null" any JSON, else a JSON Schema.
func schemaOf(format json.RawMessage) (string, error) {
	text := bytes.TrimSpace(format)
	switch {
	case len(text) == 0 || string(text) == "null" || string(text) == `""`:
		return "", nil
	case string(text) == `"json"`:
		return "null", nil
	case text[0] == '{':
		return string(text), nil
	}
	return "", fault.New(fault.Invalid, "gateway.format", `format must be "json" or a JSON Schema object`)
}

// counters stand on the last line of an answer only. Ollama drops those that are zero; clients add them up, so here
// they are always all there. Durations are nanoseconds.
type counters struct {
	TotalDuration      time.Duration `json:"total_duration"`
	LoadDuration       time.Duration `json:"load_duration"`
	PromptEvalCount    int           `json:"prompt_eval_count"`
	PromptEvalDuration time.Duration `json:"prompt_eval_duration"`
	EvalCount          int           `json:"eval_count"`
	EvalDuration       time.Duration `json:"eval_duration"`
	Truncated          bool          `json:"truncated,omitempty"` // ours: a part of the prompt was left out
}

// countersOf adds up a request. What took less than the clock can tell took a nanosecond: clients read 0 as "unknown".
func countersOf(total, load time.Duration, u runner.Usage, truncated bool) *counters {
	return &counters{
		TotalDuration: max(total, 1), LoadDuration: max(load, 1),
		PromptEvalCount: u.PromptTokens, PromptEvalDuration: max(u.PromptDuration, 1),
		EvalCount: u.EvalTokens, EvalDuration: max(u.EvalDuration, 1),
		Truncated: truncated || u.Truncated,
	}
}
