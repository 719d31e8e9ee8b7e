package engine

import (
	"time"

	"sluice/runner"
)

const (
	maxGuess = 8 // tokens guessed at a time
	// hitWeight is how much the last token counts in the average of right guesses.
	hitWeight = 0.15
	// At first a guess counts as right this often. On text-to-SQL and prose 17 to 61 of 100 were, on repairs 75 to 86.
	hitsUsual, hitsExpected = 0.3, 0.85
	// What guessing must promise, in times of the speed without: more where nobody expects repetition, as a short answer may be
	// over before a wrong belief is unlearnt.
	worthUsual, worthExpected = 1.15, 1.03
)

// drafter guesses what follows from what followed the last time that the same three tokens stood in the prompt or the answer.
// It guesses at every token, also when nobody wants to know, and so learns without cost how often it is right.
type drafter struct {
	all     []int32
	follows map[[3]int32]int32 // where in all the token is that followed three
	hits    float64            // moving average of right guesses
	worth   float64            // what guessing must promise
	guessed int                // the last guess, -1 none
}

func newDrafter(draft runner.Draft, prompt []input) *drafter {
	d := &drafter{follows: make(map[[3]int32]int32, len(prompt)), hits: hitsUsual, worth: worthUsual, guessed: -1}
	for _, in := range prompt {
		d.push(in.token)
	}
	if draft == runner.DraftExpect {
		d.hits, d.worth = hitsExpected, worthExpected
	}
	return d
}

// push appends a token.
func (d *drafter) push(id int) {
	if n := len(d.all); n >= 3 {
		d.follows[[3]int32(d.all[n-3:])] = int32(n)
	}
	d.all = append(d.all, int32(id))
}

// add appends a token of the answer and counts whether it was guessed.
func (d *drafter) add(id int) {
	if d.guessed >= 0 {
		hit := 0.0
		if d.guessed == id {
			hit = 1
		}
		d.hits += hitWeight * (hit - d.hits)
	}
	d.push(id)
	d.guessed = -1
	if g := d.guess(1); len(g) == 1 {
		d.guessed = g[0]
	}
}

// guess gives up to n tokens that may follow; none across an image.
func (d *drafter) guess(n int) []int {
	if len(d.all) < 3 || n <= 0 {
		return nil
	}
	at, ok := d.follows[[3]int32(d.all[len(d.all)-3:])]
	if !ok {
		return nil
	}
	var out []int
	for _, id := range d.all[at:min(int(at)+n, len(d.all))] {
		if id < 0 {
			break
		}
		out = append(out, int(id))
	}
	return out
}

// costs is what a batch of a single answer costs, by its rows, in times of a batch of one. It is learnt from the batches that
// are computed anyway: with repacked weights it has steps of four, without it is nearly a line, and on a GPU nearly flat.
type costs struct {
	perRow  float64               // what each further row costs while nothing is known
	seconds [maxGuess + 2]float64 // by rows, 0 unknown
}

const (
	// The 0.5B on two cores had 0.5, 0.38, 0.43 and 0.4 a row for batches of 2, 3, 5 and 9.
	cpuCostPerRow, gpuCostPerRow = 0.4, 0.05
	costWeight                   = 0.2
)

func (c *costs) learn(rows int, took time.Duration) {
	if rows >= len(c.seconds) {
		return
	}
	known, seconds := &c.seconds[rows], took.Seconds()
	if *known == 0 {
		*known = seconds
		return
	}
	// One batch may have waited for another process: no more than double is believed at a time.
	*known += costWeight * (min(seconds, 2**known) - *known)
}

func (c *costs) of(rows int) float64 {
	if one, all := c.seconds[1], c.seconds[rows]; one > 0 && all > 0 {
		return max(all/one, 1)
	}
	return 1 + c.perRow*float64(rows-1)
}

// length is how many tokens to guess, at most most, when each guess is right with probability hits if those before it were:
// that which promises the most tokens for the time; 0 when none promises more than worth.
func (c *costs) length(hits, worth float64, most int) int {
	best, length := worth, 0
	tokens, p := 1.0, 1.0
	for n := 1; n <= min(most, maxGuess); n++ {
		p *= hits
		tokens += p
		if speed := tokens / c.of(n+1); speed > best {
			best, length = speed, n
		}
	}
	return length
}
