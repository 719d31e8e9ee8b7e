package engine

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/runner"
)

func TestAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		stops  []string
		pieces []string
		want   []string // what add gave each time, "|" appended where it stopped
		rest   string
	}{
		"without stops all goes at once":      {nil, []string{"a", "b"}, []string{"a", "b"}, ""},
		"a stop over three tokens":            {[]string{"\nObs"}, []string{"x\n", "O", "bs: y"}, []string{"x", "", "|"}, ""},
		"what only looked like a stop":        {[]string{"abc"}, []string{"xab", "d"}, []string{"x", "abd"}, ""},
		"the earliest of two":                 {[]string{"two", "one"}, []string{"zero one two"}, []string{"zero |"}, ""},
		"a stop that another begins with":     {[]string{"abc", "ab"}, []string{"xab"}, []string{"x|"}, ""},
		"held until the end":                  {[]string{"abc"}, []string{"xab"}, []string{"x"}, "ab"},
		"an empty stop is none":               {[]string{""}, []string{"a"}, []string{"a"}, ""},
		"an emoji in four tokens":             {nil, []string{"\xf0", "\x9f", "\x91", "\x8b!"}, []string{"", "", "", "👋!"}, ""},
		"half a character at the end":         {nil, []string{"a\xf0\x9f"}, []string{"a"}, ""},
		"a broken byte in the middle":         {nil, []string{"a\xf0", "b"}, []string{"a", "\uFFFDb"}, ""},
		"a stray byte":                        {nil, []string{"\x91a"}, []string{"\uFFFDa"}, ""},
		"a stop with half a character before": {[]string{"END"}, []string{"a\xf0\x9fEND"}, []string{"a|"}, ""},
		"a stop of characters in halves":      {[]string{"本"}, []string{"日\xe6", "\x9c", "\xac語"}, []string{"日", "", "|"}, ""},
		"a stop that repeats itself":          {[]string{"aab"}, []string{"a", "a", "a", "b"}, []string{"", "", "a", "|"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnswer(row.stops)
			for i, piece := range row.pieces {
				text, stopped := a.add(piece)
				if stopped {
					text += "|"
				}
				if text != row.want[i] {
					t.Errorf("piece %d gave %q, want %q", i, text, row.want[i])
				}
			}
			if rest := a.rest(); rest != row.rest {
				t.Errorf("rest %q, want %q", rest, row.rest)
			}
		})
	}
}

// FuzzAnswer: whatever the tokens, the text is valid UTF-8, has no stop string, and is what a search in the whole would give.
func FuzzAnswer(f *testing.F) {
	f.Add("some text, then END and more", "END", uint8(3))
	f.Add("日本語 👋", "語", uint8(1))
	f.Fuzz(func(t *testing.T, whole, stop string, size uint8) {
		a, got, stopped := newAnswer([]string{stop}), "", false
		for rest := whole; rest != "" && !stopped; {
			n := min(int(size%7)+1, len(rest))
			var text string
			text, stopped = a.add(rest[:n])
			if !utf8.ValidString(text) {
				t.Fatalf("%q is no valid UTF-8", text)
			}
			got, rest = got+text, rest[n:]
		}
		got += a.rest()
		want := whole
		if i := strings.Index(whole, stop); i >= 0 && stop != "" {
			want = whole[:i]
		}
		if utf8.ValidString(whole) && utf8.ValidString(stop) && got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestSampling(t *testing.T) {
	usual := runner.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9, TypicalP: 1, RepeatLastN: 64, RepeatPenalty: 1.1, Seed: -1}
	with := func(change func(*runner.Sampling)) runner.Sampling {
		s := usual
		change(&s)
		return s
	}
	nan := float32(math.NaN())
	for name, row := range map[string]struct {
		in   runner.Sampling
		want func(*sampling)
	}{
		"Ollama's defaults":                {usual, func(*sampling) {}},
		"typical_p 0 is off":               {with(func(s *runner.Sampling) { s.TypicalP = 0 }), func(*sampling) {}},
		"no penalty, no window":            {with(func(s *runner.Sampling) { s.RepeatPenalty = 1 }), func(p *sampling) { p.repeat, p.lastN = 1, 0 }},
		"a penalty of 0 would divide by 0": {with(func(s *runner.Sampling) { s.RepeatPenalty = 0 }), func(p *sampling) { p.repeat, p.lastN = 1, 0 }},
		"a window of -1 is the context":    {with(func(s *runner.Sampling) { s.RepeatLastN = -1 }), func(p *sampling) { p.lastN = 2048 }},
		"a seed is kept":                   {with(func(s *runner.Sampling) { s.Seed = 7 }), func(p *sampling) { p.seed = 7 }},
		"probabilities beyond 1":           {with(func(s *runner.Sampling) { s.TopP, s.MinP = 5, -2 }), func(p *sampling) { p.topP = 1 }},
		"what is no number is 0":           {with(func(s *runner.Sampling) { s.Temperature, s.MinP = nan, nan }), func(p *sampling) { p.temp = 0 }},
		"a temperature below 0 is greedy":  {with(func(s *runner.Sampling) { s.Temperature = -1 }), func(p *sampling) { p.temp = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			want := sampling{topK: 40, topP: 0.9, typicalP: 1, temp: 0.8, lastN: 64, repeat: 1.1, seed: randomSeed}
			row.want(&want)
			if got := samplingOf(row.in, 2048); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestCommonPrefix(t *testing.T) {
	for name, row := range map[string]struct {
		a, b []int
		want int
	}{
		"nothing held":     {nil, []int{1}, 0},
		"a longer prompt":  {[]int{1, 2}, []int{1, 2, 3}, 2},
		"a shorter prompt": {[]int{1, 2, 3}, []int{1, 2}, 2},
		"another middle":   {[]int{1, 2, 3}, []int{1, 9, 3}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := common(tokens(row.a), tokens(row.b)); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}
