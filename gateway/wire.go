package gateway

import (
	"fmt"
	"time"

	"sluice/runner"
	"sluice/units"
)

// keepAlive is how long a model stays loaded after a request.
type keepAlive struct{ time.Duration }

// UnmarshalJSON reads seconds, or a text with Go's duration or seconds.
func (k *keepAlive) UnmarshalJSON(b []byte) error {
	var s units.Seconds
	if err := s.UnmarshalJSON(b); err != nil {
		return fmt.Errorf("keep_alive: invalid duration: %w", err) // Go's words, which Ollama's clients look for
	}
	k.Duration = time.Duration(s)
	return nil
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

// counters stand on the last line of an answer only. Ollama drops those that are zero; clients add them up, so here
// they are always all there. Durations are nanoseconds.
type counters struct {
	TotalDuration      time.Duration `json:"total_duration"`
	LoadDuration       time.Duration `json:"load_duration"`
	PromptEvalCount    int           `json:"prompt_eval_count"`
	PromptEvalDuration time.Duration `json:"prompt_eval_duration"`
	EvalCount          int           `json:"eval_count"`
	EvalDuration       time.Duration `json:"eval_duration"`
	PromptCachedCount  int           `json:"prompt_cached_count,omitempty"` // ours: of prompt_eval_count, not read again (#14780)
	Truncated          bool          `json:"truncated,omitempty"`           // ours: a part of the prompt was left out
}

// countersOf adds up a request. What took less than the clock can tell took a nanosecond: clients read 0 as "unknown".
func countersOf(total, load time.Duration, u runner.Usage, truncated bool) *counters {
	return &counters{
		TotalDuration: max(total, 1), LoadDuration: max(load, 1),
		PromptEvalCount: u.PromptTokens, PromptEvalDuration: max(u.PromptDuration, 1),
		EvalCount: u.EvalTokens, EvalDuration: max(u.EvalDuration, 1), PromptCachedCount: u.CachedTokens,
		Truncated: truncated || u.Truncated,
	}
}
