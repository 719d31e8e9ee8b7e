package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
)

// words is a fitter whose tokens are words and whose prompt is the messages' contents.
func words(numCtx int, truncate bool) (fitter, *int) {
	calls := 0
	return fitter{numCtx: numCtx, truncate: truncate,
		render: func(msgs []api.Message) (models.Rendered, error) {
			var parts []string
			for _, m := range msgs {
				parts = append(parts, m.Content)
			}
			return models.Rendered{Text: strings.Join(parts, " ")}, nil
		},
		tokenize: func(_ context.Context, text string, _ bool) ([]int, error) {
			calls++
			return make([]int, len(strings.Fields(text))), nil
		},
	}, &calls
}

func TestChatsThatAreTooLongLoseTheirOldestTurns(t *testing.T) {
	// A message is written role:content.
	for name, row := range map[string]struct {
		msgs    []string
		numCtx  int
		want    string
		note    string
		refused bool // with truncate:false
	}{
		"all fit":                                 {[]string{"user:one two three four five six seven", "assistant:b c", "user:d e f"}, 12, "one two three four five six seven b c d e f", "", false},
		"the first goes":                          {[]string{"user:one two three four five six seven", "assistant:bbbbbb c", "user:d e f"}, 11, "bbbbbb c d e f", "messages=1", true},
		"the system message stays":                {[]string{"system:sss", "user:one two three four", "assistant:b c", "user:d e"}, 5, "sss b c d e", "messages=1", true},
		"a later system message stays":            {[]string{"user:one two three four", "system:sss", "assistant:b c", "user:d e"}, 4, "sss d e", "messages=2", true},
		"the last is never left out":              {[]string{"user:one two", "assistant:b", "user:d e f g h"}, 3, "d e f g h", "messages=2, cut", true},
		"a result does not stay without its call": {[]string{"user:one two three four five", "assistant:c", "tool:r r", "tool:r", "user:d e"}, 5, "d e", "messages=4", true},
		"a result that is last stays":             {[]string{"user:one two three four five", "assistant:c c c c c", "tool:r r"}, 3, "r r", "messages=2", true},
		"a single message is cut":                 {[]string{"user:one two three four five six"}, 3, "one two three four five six", "cut", true},
		"system and last alone are too long":      {[]string{"system:s s s", "user:a b c", "user:d e f"}, 4, "s s s d e f", "messages=1, cut", true},
	} {
		t.Run(name, func(t *testing.T) {
			var msgs []api.Message
			for _, m := range row.msgs {
				role, content, _ := strings.Cut(m, ":")
				msgs = append(msgs, api.Message{Role: role, Content: content})
			}
			f, _ := words(row.numCtx, true)
			got, err := f.chat(t.Context(), msgs)
			if err != nil || got.prompt.Text != row.want || got.note() != row.note {
				t.Errorf("%q, %q, %v", got.prompt.Text, got.note(), err)
			}
			f, _ = words(row.numCtx, false)
			if _, err := f.chat(t.Context(), msgs); (fault.CodeOf(err) == fault.Invalid && err != nil) != row.refused {
				t.Errorf("truncate:false: %v", err)
			}
		})
	}
}

// Open WebUI's 36 tools have some 6800 tokens; contexts are what people set.
func TestToolsTakeAtMostThreeQuartersOfTheContext(t *testing.T) {
	for name, row := range map[string]struct {
		numCtx, tools, last int
		want                bool
	}{
		"the default context":               {4096, 6800, 10, false},
		"they fit, but fill it":             {8192, 6800, 10, false},
		"three quarters and no more":        {8192, 6144, 10, true},
		"a context that was set for them":   {32768, 6800, 10, true},
		"the question itself goes before":   {32768, 6800, 26000, false},
		"the question fits beside them":     {32768, 6800, 25968, true},
		"small tools, a question too large": {4096, 10, 5000, false},
	} {
		last := []api.Message{{Role: "user", Content: "old " + strings.Repeat("o ", 50)}, {Role: "user", Content: strings.Repeat("q ", row.last)}}
		without, _ := words(row.numCtx, true)
		with := without
		with.render = func(msgs []api.Message) (models.Rendered, error) {
			prompt, err := without.render(msgs)
			return models.Rendered{Text: strings.Repeat("t ", row.tools) + prompt.Text}, err
		}
		got, taken, err := with.hasRoomFor(t.Context(), last, without)
		if err != nil || got != row.want || taken != row.tools {
			t.Errorf("%s: %v, %d taken, %v", name, got, taken, err)
		}
	}
}

func TestTheTokenizersOwnTokensCount(t *testing.T) {
	f, _ := words(4, true)
	plain := f.tokenize
	f.tokenize = func(ctx context.Context, text string, special bool) ([]int, error) {
		if special {
			text = "BOS " + text
		}
		return plain(ctx, text, special)
	}
	got, err := f.text(t.Context(), models.Rendered{Text: "one two three four"})
	if err != nil || !got.cut {
		t.Errorf("four tokens and BOS fit into four: %+v, %v", got, err)
	}
}

func TestLongChatsAreNotTokenizedTurnByTurn(t *testing.T) {
	msgs := make([]api.Message, 1000)
	for i := range msgs {
		msgs[i] = api.Message{Role: "user", Content: "a b c d e"}
	}
	f, calls := words(50, true)
	got, err := f.chat(t.Context(), msgs)
	if err != nil || got.dropped != 990 || *calls > 12 {
		t.Errorf("%d dropped with %d calls, %v", got.dropped, *calls, err)
	}
	*calls = 0
	if _, err := f.chat(t.Context(), []api.Message{{Role: "user", Content: "short"}}); err != nil || *calls != 0 {
		t.Errorf("a prompt that fits by its bytes took %d calls, %v", *calls, err)
	}
}

func TestAFailingTokenizerFailsTheRequest(t *testing.T) {
	f, _ := words(3, true)
	boom := errors.New("boom")
	n := 0
	tokenize := f.tokenize
	f.tokenize = func(ctx context.Context, text string, special bool) ([]int, error) {
		if n++; n == 3 {
			return nil, boom
		}
		return tokenize(ctx, text, special)
	}
	msgs := make([]api.Message, 20)
	for i := range msgs {
		msgs[i].Content = "a b c d e f"
	}
	if _, err := f.chat(t.Context(), msgs); !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
}
