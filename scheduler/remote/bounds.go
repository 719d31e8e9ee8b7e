package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ollama/ollama/api"

	"sluice/models"
	"sluice/runner"
)

// Bounds of what is kept of a server's lists, in bytes, entries and models.
const (
	maxModels  = 2000
	maxWord    = 400       // of a name of a family, a capability, a digest …
	maxWords   = 32        // of a list of such
	maxPage    = 256 << 10 // of a template, a system prompt, a license
	maxPages   = 32 << 20  // of all of them together
	maxEntries = 1 << 16   // of any list within an answer
)

// few is a list of which no more than maxEntries are read: each {} of an answer costs three bytes there and a hundred here.
type few[T any] []T

// UnmarshalJSON reads a list, or null.
func (f *few[T]) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	t, err := dec.Token()
	*f = nil
	switch {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != json.Delim('['):
		return fmt.Errorf("there is %.20s where a list should be", text)
	}
	for dec.More() {
		if len(*f) == maxEntries {
			return fmt.Errorf("a list has more than %d entries", maxEntries)
		}
		var one T
		if err := dec.Decode(&one); err != nil {
			return err
		}
		*f = append(*f, one)
	}
	return nil
}

// maxTokens is more than any context has.
const maxTokens = 1 << 40

// sane is what a server says of its work, within reason: counters that are fed with it can only grow.
func sane(u runner.Usage) runner.Usage {
	for _, n := range []*int{&u.PromptTokens, &u.CachedTokens, &u.EvalTokens} {
		*n = min(max(*n, 0), maxTokens)
	}
	u.CachedTokens = min(u.CachedTokens, u.PromptTokens)
	for _, d := range []*time.Duration{&u.PromptDuration, &u.EvalDuration} {
		*d = min(max(*d, 0), 1000*time.Hour)
	}
	return u
}

// word is a short foreign text that is shown to people, "" for one that is none.
func word(text string) string {
	if len(text) > maxWord || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return text
}

func words(list []string) (out []string) {
	for _, w := range list {
		if w = word(strings.TrimSpace(w)); w != "" && len(out) < maxWords {
			out = append(out, w)
		}
	}
	return out
}

// tame is what a server says of a model, within reason. left is how many bytes of long texts may still be kept of this server.
func tame(t models.Told, left *int) models.Told {
	t.Digest = word(t.Digest)
	t.Capabilities = words(t.Capabilities)
	d := &t.Details
	*d = api.ModelDetails{ParentModel: word(d.ParentModel), Format: word(d.Format), Family: word(d.Family), Families: words(d.Families),
		ParameterSize: word(d.ParameterSize), QuantizationLevel: word(d.QuantizationLevel)}
	for _, page := range []*string{&t.Template, &t.System, &t.License} {
		if len(*page) > min(maxPage, *left) {
			*page = ""
		}
		*left -= len(*page)
	}
	return t
}
