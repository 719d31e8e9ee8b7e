package gateway

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
)

// maxAnswers is OpenAI's limit for n.
const maxAnswers = 128

// can tells whether a model has a capability.
func can(m *models.Model, capability string) bool {
	return slices.Contains(m.Capabilities(), capability)
}

// mustSupport refuses a model that lacks a capability; verb is how the sentence calls it.
func mustSupport(m *models.Model, asked, capability, verb string) error {
	if can(m, capability) {
		return nil
	}
	return fault.New(fault.Invalid, "gateway.capability", "%q does not support %s", printable(asked, 200), verb)
}

// asked is what a generation was asked for, before its model has looked at it.
type asked struct {
	name         string // of the model, as the caller writes it
	verb         string // chat, generate: what a model without completion does not support
	think        *api.ThinkValue
	lenientThink bool
	format       json.RawMessage
	options      map[string]any // as sent
	logprobs     bool
	topLogprobs  int
	n            int

	schema, grammar string // out: what binds the answer
}

// check refuses what this model cannot do, and what no model here can, before it is loaded for it. The result has think as
// the template takes it, and what binds the answer.
func (a asked) check(m *models.Model) (asked, error) {
	const op = "gateway.inference"
	if err := mustSupport(m, a.name, "completion", a.verb); err != nil {
		return a, err
	}
	switch {
	case a.topLogprobs < 0 || a.topLogprobs > 20:
		return a, fault.New(fault.Invalid, op, "top_logprobs must be between 0 and 20")
	case a.n < 0 || a.n > maxAnswers:
		return a, fault.New(fault.Invalid, op, "n must be between 1 and %d", maxAnswers)
	}
	var err error
	if a.think, err = a.thinking(m); err != nil {
		return a, err
	}
	if a.schema, err = schemaOf(a.format); err != nil {
		return a, err
	}
	if a.grammar, err = grammarOf(a.options); err != nil {
		return a, err
	}
	if a.schema != "" && a.grammar != "" {
		return a, fault.New(fault.Invalid, op, "format and options.grammar cannot both bind the answer: leave one out")
	}
	return a, nil
}

// thinking is Ollama's rule: a model that can think does unless told not to, and only gpt-oss knows levels.
func (a asked) thinking(m *models.Model) (*api.ThinkValue, error) {
	if a.think != nil && a.think.Value == nil {
		a.think = nil
	}
	switch {
	case !can(m, "thinking"):
		if !a.think.Bool() {
			return a.think, nil
		}
		if a.lenientThink {
			return nil, nil
		}
		return nil, fault.New(fault.Invalid, "gateway.think", "%q does not support thinking", printable(a.name, 200))
	case a.think == nil:
		return &api.ThinkValue{Value: true}, nil
	case a.think.IsString() && m.Parser() != models.Harmony:
		if a.lenientThink {
			return &api.ThinkValue{Value: true}, nil
		}
		return nil, fault.New(fault.Invalid, "gateway.think", "think value %q is not supported for this model", a.think.String())
	}
	return a.think, nil
}

// grammarOf reads options.grammar: GBNF of the caller's, which Ollama does not have. "" unconstrained.
func grammarOf(options map[string]any) (string, error) {
	switch v := options["grammar"].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	return "", fault.New(fault.Invalid, "gateway.grammar", `option "grammar" must be of type string`)
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
