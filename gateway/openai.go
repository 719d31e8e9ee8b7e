package gateway

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// openaiFields are what chat/completions and completions have in common. What is not here (user, logit_bias, …) is ignored,
// as Ollama does. keep_alive, options, truncate and shift are Ollama's, as extensions (#9355).
type openaiFields struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int      `json:"max_tokens"`
	MaxCompletionTokens *int      `json:"max_completion_tokens"` // the newer name (#7125)
	N                   *int      `json:"n"`
	Seed                *int      `json:"seed"`
	Stop                stopTexts `json:"stop"`
	Temperature         *float64  `json:"temperature"`
	TopP                *float64  `json:"top_p"`
	FrequencyPenalty    *float64  `json:"frequency_penalty"`
	PresencePenalty     *float64  `json:"presence_penalty"`

	KeepAlive *keepAlive     `json:"keep_alive"`
	Options   map[string]any `json:"options"`
	Truncate  *bool          `json:"truncate"`
	Shift     *bool          `json:"shift"`
}

func (f *openaiFields) usageWanted() bool {
	return f.StreamOptions != nil && f.StreamOptions.IncludeUsage
}
func (f *openaiFields) truncates() bool { return f.Truncate == nil || *f.Truncate }
func (f *openaiFields) shifts() bool    { return f.Shift == nil || *f.Shift }

func (f *openaiFields) answers() int {
	if f.N == nil {
		return 1
	}
	return *f.N
}

func (f *openaiFields) check() error {
	if n := f.answers(); n < 1 || n > maxAnswers {
		return invalid("n must be between 1 and %d", maxAnswers)
	}
	return nil
}

// ollamaOptions are the request's sampling options under Ollama's names. OpenAI's defaults go before the model's own, as in
// Ollama; what the request says under OpenAI's names goes before its options.
func (f *openaiFields) ollamaOptions() (map[string]any, error) {
	most := f.MaxTokens
	if f.MaxCompletionTokens != nil {
		most = f.MaxCompletionTokens
	}
	return openaiOptions(f.Options, most, "max_tokens", map[string]*float64{
		"temperature": f.Temperature, "top_p": f.TopP, "frequency_penalty": f.FrequencyPenalty, "presence_penalty": f.PresencePenalty,
	}, f.Seed, f.Stop)
}

func openaiOptions(given map[string]any, most *int, mostName string, numbers map[string]*float64, seed *int, stop stopTexts) (map[string]any, error) {
	o := map[string]any{"temperature": 1.0, "top_p": 1.0}
	maps.Copy(o, given)
	switch {
	case most == nil:
	case *most == 0: // for Ollama that is "no limit", which is not what was asked for
		return nil, invalid("%s must be at least 1; -1 is no limit", mostName)
	default:
		o["num_predict"] = *most
	}
	for name, v := range numbers {
		if v != nil {
			o[name] = *v
		}
	}
	if seed != nil {
		o["seed"] = *seed
	}
	if len(stop) > 0 {
		o["stop"] = []string(stop)
	}
	return o, nil
}

// stopTexts is a text or a list of texts. An empty one would end every answer before it began, and is left out.
type stopTexts []string

// UnmarshalJSON reads either form.
func (s *stopTexts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil { // null too
		*s = nil
		if one != "" {
			*s = stopTexts{one}
		}
		return nil
	}
	var list []string
	if json.Unmarshal(b, &list) != nil {
		return errors.New("stop must be a text or a list of texts")
	}
	*s = nil
	for _, text := range list {
		if text != "" {
			*s = append(*s, text)
		}
	}
	return nil
}

// effort reads how long a model shall think. Ollama's models know three lengths.
func effort(word string) (*api.ThinkValue, error) {
	switch strings.ToLower(word) {
	case "":
		return nil, nil
	case "none":
		return &api.ThinkValue{Value: false}, nil
	case "minimal", "low":
		return &api.ThinkValue{Value: "low"}, nil
	case "medium":
		return &api.ThinkValue{Value: "medium"}, nil
	case "high", "xhigh":
		return &api.ThinkValue{Value: "high"}, nil
	}
	return nil, invalid("reasoning effort %q is none of none, minimal, low, medium, high, xhigh", printable(word, 40))
}

// openaiUsage counts tokens. Several answers share one reading of the prompt.
type openaiUsage struct {
	PromptTokens        int           `json:"prompt_tokens"`
	CompletionTokens    int           `json:"completion_tokens"`
	TotalTokens         int           `json:"total_tokens"`
	PromptTokensDetails promptDetails `json:"prompt_tokens_details"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// usageOf counts an answer. Each of several answers to a prompt has the counters of all of them.
func usageOf(end *turnEnd) openaiUsage {
	var u openaiUsage
	if end != nil && end.counters != nil {
		u.PromptTokens, u.CompletionTokens = end.counters.PromptEvalCount, end.counters.EvalCount
		u.TotalTokens = u.PromptTokens + u.CompletionTokens
		u.PromptTokensDetails.CachedTokens = end.cached
	}
	return u
}

func (u *openaiUsage) add(more openaiUsage) {
	u.PromptTokens += more.PromptTokens
	u.CompletionTokens += more.CompletionTokens
	u.TotalTokens += more.TotalTokens
	u.PromptTokensDetails.CachedTokens += more.PromptTokensDetails.CachedTokens
}

// newID gives an id that nobody can guess and that does not come twice.
func newID(prefix string) string { return prefix + rand.Text() }

// fingerprint names what answered: the same seed gives the same text only while it stays the same.
func (s *server) fingerprint() string { return "fp_sluice_" + s.cfg.Version }

// invalid is a fault of the request of an OpenAI route.
func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "gateway.openai", format, args...)
}
