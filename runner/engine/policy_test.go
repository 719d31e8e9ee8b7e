package engine

import (
	"slices"
	"testing"
	"time"

	"sluice/runner"
)

// seq is a sequence of the numbers from a to b.
func seq(from, to int) []input {
	var ids []int
	for i := from; i < to; i++ {
		ids = append(ids, i)
	}
	return tokens(ids)
}

func join(parts ...[]input) []input { return slices.Concat(parts...) }

func TestChoose(t *testing.T) {
	schema, other := seq(0, 1000), seq(5000, 6000)
	busy := &generation{}
	for name, row := range map[string]struct {
		slots  []slot
		prompt []input
		clock  int
		exact  bool
		want   place
		none   bool
	}{
		"an empty cache":                          {slots: []slot{{}, {}}, prompt: schema, want: place{0, 0, 0}},
		"its own conversation goes on in place":   {slots: []slot{{held: other}, {held: seq(0, 900)}}, prompt: schema, want: place{1, 1, 900}},
		"the last token is read again":            {slots: []slot{{held: schema}}, prompt: schema, want: place{0, 0, 999}},
		"from a busy slot into an empty one":      {slots: []slot{{held: schema, g: busy}, {}}, prompt: join(schema, other), want: place{1, 0, 1000}},
		"a tail that is needed again is spared":   {slots: []slot{{held: join(schema, other)}, {}}, prompt: join(schema, seq(9000, 9010)), want: place{1, 0, 1000}},
		"an answer of a few tokens is not spared": {slots: []slot{{held: seq(0, 1020)}, {}}, prompt: schema, want: place{0, 0, 999}},
		"a few tokens are not worth a copy":       {slots: []slot{{held: schema, g: busy}, {}}, prompt: join(seq(0, 15), other), want: place{1, 1, 0}},
		"an unrelated prompt takes the shorter":   {slots: []slot{{held: schema}, {held: seq(5000, 5010)}}, prompt: seq(8000, 8100), want: place{1, 1, 0}},
		"what another slot has too is no loss":    {slots: []slot{{held: schema}, {held: seq(0, 990)}, {held: seq(5000, 5100)}}, prompt: seq(8000, 8100), want: place{1, 1, 0}},
		"what nobody asked for long is lost":      {slots: []slot{{held: schema, used: 1}, {held: seq(5000, 5300), used: 40}}, prompt: seq(8000, 8100), clock: 40, want: place{0, 0, 0}},
		"a neighbour of those that are busy":      {slots: []slot{{}, {}, {g: busy}, {}}, prompt: schema, want: place{1, 1, 0}},
		"no slot is idle":                         {slots: []slot{{g: busy}}, prompt: schema, none: true},
		"exact: the whole of a slot goes on":      {slots: []slot{{}, {held: seq(0, 10)}}, prompt: schema, exact: true, want: place{1, 1, 10}},
		"exact: a part is of no use":              {slots: []slot{{held: other}, {held: seq(0, 10)}}, prompt: seq(0, 9), exact: true, want: place{0, 0, 0}},
		"exact: not without a token to evaluate":  {slots: []slot{{held: seq(0, 10)}}, prompt: seq(0, 10), exact: true, want: place{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			slots := make([]*slot, len(row.slots))
			for i := range row.slots {
				slots[i] = &row.slots[i]
				slots[i].id = i
			}
			got, ok := choose(slots, row.prompt, row.clock, row.exact)
			if ok == row.none || ok && got != row.want {
				t.Errorf("got %+v, %t; want %+v", got, ok, row.want)
			}
		})
	}
}

// TestKnown: nobody is told of what others had read.
func TestKnown(t *testing.T) {
	slots := []*slot{{held: seq(0, 900), owner: "a"}, {held: seq(0, 300), owner: "b"}, {held: seq(0, 600)}}
	for name, row := range map[string]struct {
		owner string
		n     int
		want  int
	}{
		"one's own":                                 {"a", 900, 900},
		"no more than was taken":                    {"a", 500, 500},
		"another's is told as far as one has it":    {"b", 900, 300},
		"nothing to one who has sent nothing":       {"c", 900, 0},
		"nobody's prompts are known to nobody only": {"", 900, 600},
	} {
		if got := known(slots, seq(0, 1000), row.owner, row.n); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

func TestPromised(t *testing.T) {
	reading := func(prompt []input) *generation { return &generation{prompt: prompt, isReading: true} }
	for name, row := range map[string]struct {
		slot   slot
		prompt []input
		want   bool
	}{
		"the same prompt is being read":       {slot{g: reading(seq(0, 500)), held: seq(0, 100)}, seq(0, 500), true},
		"the common part has been read":       {slot{g: reading(seq(0, 500)), held: seq(0, 300)}, join(seq(0, 300), seq(900, 999)), false},
		"little is in common":                 {slot{g: reading(seq(0, 500))}, join(seq(0, 20), seq(900, 999)), false},
		"the other one has been read already": {slot{g: &generation{prompt: seq(0, 500)}, held: seq(0, 100)}, seq(0, 500), false},
		"nobody reads":                        {slot{held: seq(0, 100)}, seq(0, 500), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := promised([]*slot{&row.slot}, row.prompt); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestShare(t *testing.T) {
	for name, row := range map[string]struct {
		left []int
		room int
		want []int
	}{
		"nobody reads":                         {nil, 32, []int{}},
		"one takes all":                        {[]int{100}, 32, []int{32}},
		"one takes what it needs":              {[]int{5}, 32, []int{5}},
		"half to the shortest, half by age":    {[]int{1000, 40}, 32, []int{16, 16}},
		"the room that the short one leaves":   {[]int{1000, 4}, 32, []int{28, 4}},
		"the oldest is the shortest":           {[]int{10, 1000}, 32, []int{10, 22}},
		"the third has a turn when room is":    {[]int{3, 4, 100}, 32, []int{3, 4, 25}},
		"no room":                              {[]int{7}, 0, []int{0}},
		"a single token of room":               {[]int{7, 3}, 1, []int{0, 1}},
		"nothing left before an image is fine": {[]int{0, 3}, 8, []int{0, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := share(row.left, row.room); !slices.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestDrafter(t *testing.T) {
	d := newDrafter(runner.DraftAuto, tokens([]int{1, 2, 3, 4, 5, 6, 7, 9, 1, 2}))
	if got := d.guess(3); got != nil {
		t.Errorf("behind 9 1 2 it guesses %v", got)
	}
	d.add(3)
	if got := d.guess(3); !slices.Equal(got, []int{4, 5, 6}) {
		t.Errorf("behind 1 2 3 it guesses %v", got)
	}
	start := d.hits
	d.add(4)
	d.add(5)
	if d.hits <= start {
		t.Errorf("two right guesses: %f, then %f", start, d.hits)
	}
	high := d.hits
	d.add(8)
	if d.hits >= high {
		t.Errorf("a wrong guess: %f, then %f", high, d.hits)
	}
	image := newDrafter(runner.DraftAuto, []input{{token: 1}, {token: 2}, {token: 3}, {token: -1}, {token: 1}, {token: 2}, {token: 3}})
	if got := image.guess(3); got != nil {
		t.Errorf("it guesses an image: %v", got)
	}
}

func TestHowManyToGuess(t *testing.T) {
	for name, row := range map[string]struct {
		hits float64
		most int
		want int
		took map[int]time.Duration
	}{
		"at first none":                  {hits: hitsUsual, most: 8, want: 0},
		"expected: a batch of four":      {hits: hitsExpected, most: 8, want: 3},
		"almost always right":            {hits: 0.99, most: 8, want: 8},
		"no more than there is room for": {hits: 0.99, most: 2, want: 2},
		"half of them right":             {hits: 0.5, most: 8, want: 0},
		"no room":                        {hits: 0.99, most: -1, want: 0},
		"rows that cost nothing":         {hits: 0.6, most: 8, want: 8, took: map[int]time.Duration{1: 10, 2: 10, 3: 10, 4: 10, 5: 10, 6: 10, 7: 10, 8: 10, 9: 10}},
		"steps of four":                  {hits: 0.8, most: 8, want: 3, took: map[int]time.Duration{1: 73, 2: 107, 3: 142, 4: 125, 8: 220}},
		"rows as dear as batches":        {hits: 0.9, most: 2, want: 0, took: map[int]time.Duration{1: 10, 2: 20, 3: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			c := costs{perRow: cpuCostPerRow}
			for rows, took := range row.took {
				c.learn(rows, took)
			}
			c.learn(100, time.Hour) // no room to remember it
			if got := c.length(row.hits, worthUsual, row.most); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}

func TestPenalties(t *testing.T) {
	logits := []float32{2, -2, 3, 0}
	s := &sampler{sampling: sampling{lastN: 3, repeat: 2, frequency: 0.5, presence: 0.25}, counts: map[int]int{}}
	for _, id := range []int{3, 0, 1, 1} { // the first falls out of the window
		s.remember(id)
	}
	undo := s.penalize(logits)
	if want := []float32{2.0/2 - 0.5 - 0.25, -2*2 - 1 - 0.25, 3, 0}; !slices.Equal(logits, want) {
		t.Errorf("got %v, want %v", logits, want)
	}
	undo()
	if !slices.Equal(logits, []float32{2, -2, 3, 0}) {
		t.Errorf("undone: %v", logits)
	}
}
