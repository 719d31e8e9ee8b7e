package grammar

import (
	"cmp"
	"maps"
	"slices"
)

// llama.cpp walks all ways in which a text can be read, each by itself: of ("a" | "a")* there are 2^n after n characters, and a
// vocabulary has tokens of over a hundred. It cannot be stopped in between. So the walk is tried here first, from each place that can
// come back to itself, on the texts that seem to have the most ways.
//
// It is a search, not a proof: it finds what doubles every few characters, on the texts that it tries. What grows slower is caught
// where tokens are sampled.
const (
	growthSteps = 100     // characters
	growthWord  = 24      // characters of a token that are not all one and the same
	growthWays  = 200_000 // at most that many ways to read them
	growthApart = 3000    // at most that many of which are not the same again
	growthBeam  = 4       // texts that are followed at a time
	growthLoop  = 8       // repetitions from this length on are places to begin
)

// frame is the rest of something that is being read, and what comes behind it. Equal frames are one.
type frame struct {
	frameKey
	set charset // of a class
}

type frameKey struct {
	it   *item // of a class, text or repetition
	e    *expr // else: of a sequence, which is its n-th, from an item on
	n    int
	from int
	k    int // characters of the text that were read
	low  int // repetitions that must follow, at most high; high < 0: without bound
	high int
	next *frame
}

type growth struct {
	rules  map[string]*facts
	frames map[frameKey]*frame
	work   int
	most   int // work at most
}

// ways is how many ways there are to read a text so far, by the frame that reads the next character.
type ways map[*frame]float64

func (w ways) total() (n float64) {
	for _, m := range w {
		n += m
	}
	return n
}

// growing refuses a grammar whose ways multiply.
func (a *analysis) growing() error {
	for _, f := range a.order {
		g := &growth{rules: a.rules, frames: map[frameKey]*frame{}, most: a.bounds.work}
		for _, start := range a.starts(f) {
			g.work, g.frames = 0, map[frameKey]*frame{}
			w := ways{}
			switch {
			case start == nil:
				g.body(f.body, nil, 1, w)
			default:
				g.repeat(start, start.low, start.high, nil, 1, w)
			}
			at := f.at
			if start != nil {
				at = start.at
			}
			many := g.search(w)
			if a.searched += g.work; many || a.searched > a.bounds.work {
				what := "the same text can be read in too many ways from here on: they multiply with its length"
				if !many {
					what = "there may be too many ways from here on to read a text: its repetitions take too long to look through"
				}
				return mistake(at, "let alternatives begin with different characters, and repeat nothing that repeats itself", "%s", what)
			}
		}
	}
	return nil
}

// starts are the places of a rule that can come back to themselves: the rule (nil), its long repetitions, and what follows where
// it uses itself, which is read as often as it did.
func (a *analysis) starts(f *facts) []*item {
	var out []*item
	recursive := a.recursive(f)
	if recursive {
		out = append(out, nil)
	}
	var walk func(e *expr)
	walk = func(e *expr) {
		for _, way := range e.ways {
			for i, it := range way {
				if recursive && it.op == opRef && a.cyclic[it.name] && i+1 < len(way) {
					tail := &expr{ways: [][]*item{way[i+1:]}}
					if !a.all(tail, a.mayBeEmpty) {
						out = append(out, &item{at: it.at, op: opGroup, group: tail, high: -1})
					}
				}
				if it.high < 0 || it.high >= growthLoop {
					out = append(out, it)
				}
				if it.op == opGroup {
					walk(it.group)
				}
			}
		}
	}
	walk(f.body)
	return out
}

// recursive: whether a rule may use itself, by whatever way. Taken away are, again and again, rules that use none of those left, and
// rules that none of those left uses.
func (a *analysis) recursive(f *facts) bool {
	if a.cyclic != nil {
		return a.cyclic[f.name]
	}
	a.cyclic = map[string]bool{}
	used, users := map[string][]string{}, map[string][]string{}
	for _, r := range a.order {
		a.cyclic[r.name] = true
		for name := range uses(r.body, map[string]bool{}) {
			used[r.name] = append(used[r.name], name)
			users[name] = append(users[name], r.name)
		}
	}
	a.peel(used, users)
	a.peel(users, used)
	return a.cyclic[f.name]
}

// peel takes rules away that have nothing left in the first map; back is its inverse.
func (a *analysis) peel(to, back map[string][]string) {
	open := map[string]int{}
	var done []string
	for name := range a.cyclic {
		for _, other := range to[name] {
			if a.cyclic[other] {
				open[name]++
			}
		}
		if open[name] == 0 {
			done = append(done, name)
		}
	}
	for len(done) > 0 {
		name := done[len(done)-1]
		done = done[:len(done)-1]
		delete(a.cyclic, name)
		for _, other := range back[name] {
			if open[other]--; open[other] == 0 && a.cyclic[other] {
				done = append(done, other)
			}
		}
	}
}

// search follows the texts with the most ways. Ways that come together again count for as long as a token may be: of any
// characters, or of one.
func (g *growth) search(start ways) (tooMany bool) {
	for _, r := range g.best(start, 16) {
		for w, step := start, 1; step <= growthSteps && g.work < g.most; step++ {
			if w = g.read(w, r); len(w) == 0 || step == 20 && w.total() < 8 {
				break
			}
			if w.total() > growthWays {
				return true
			}
		}
	}
	beam := []ways{start}
	for step := 1; step <= growthSteps && g.work < g.most; step++ {
		var next []ways
		for _, w := range beam {
			for _, r := range g.best(w, growthBeam) {
				if after := g.read(w, r); len(after) > 0 {
					next = append(next, after)
				}
			}
		}
		if len(next) == 0 {
			return false
		}
		most := slices.MaxFunc(next, func(x, y ways) int { return cmp.Compare(x.total(), y.total()) }).total()
		apart := len(slices.MaxFunc(next, func(x, y ways) int { return cmp.Compare(len(x), len(y)) }))
		switch {
		case step <= growthWord && most > growthWays/2, apart > growthApart:
			return true
		case step == 20 && apart < 8, step == 50 && apart < 64: // it would have shown by now
			return false
		}
		slices.SortStableFunc(next, func(x, y ways) int {
			return cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(y.total(), x.total()))
		})
		if beam = next[:min(len(next), growthBeam-1)]; step <= growthWord { // and the one with the most ways, apart or not
			beam = append(beam, slices.MaxFunc(next, func(x, y ways) int { return cmp.Compare(x.total(), y.total()) }))
		}
	}
	return false
}

// best gives the characters that most ways go on with, at most so many.
func (g *growth) best(w ways, most int) []rune {
	count := map[rune]float64{}
	var classes []*frame
	for f, m := range w {
		if f.it.op == opText {
			count[f.it.text[f.k]] += m
			continue
		}
		classes = append(classes, f)
		// Where classes overlap, one of their spans begins there.
		for i, x := range f.set {
			if i == 64 {
				break
			}
			count[x.low] += 0
		}
	}
	runes := slices.Collect(maps.Keys(count))
	g.work += len(w) + len(runes)*len(classes)
	for _, r := range runes {
		for _, f := range classes {
			if f.set.has(r) {
				count[r] += w[f]
			}
		}
	}
	slices.SortFunc(runes, func(x, y rune) int { return cmp.Or(cmp.Compare(count[y], count[x]), cmp.Compare(x, y)) })
	return runes[:min(len(runes), most)]
}

func (f *frame) reads(r rune) bool {
	if f.it.op == opText {
		return f.it.text[f.k] == r
	}
	return f.set.has(r)
}

// read goes on by one character.
func (g *growth) read(w ways, r rune) ways {
	out := ways{}
	for f, m := range w {
		switch {
		case !f.reads(r):
		case f.it.op == opText && f.k+1 < len(f.it.text):
			out[g.frame(frameKey{it: f.it, k: f.k + 1, next: f.next})] += m
		default:
			g.resume(f.next, m, out)
		}
	}
	return out
}

func (g *growth) frame(k frameKey) *frame {
	g.work++
	f := g.frames[k]
	if f == nil {
		f = &frame{frameKey: k}
		if k.it != nil && k.it.op == opSet {
			f.set = k.it.set
		}
		g.frames[k] = f
	}
	return f
}

// resume goes on with what comes next, up to the frames that read a character.
func (g *growth) resume(f *frame, m float64, out ways) {
	if g.work++; f == nil || g.work > g.most {
		return
	}
	if f.e == nil {
		g.repeat(f.it, f.low, f.high, f.next, m, out)
		return
	}
	g.sequence(f.e, f.n, f.from, f.next, m, out)
}

func (g *growth) sequence(e *expr, n, from int, next *frame, m float64, out ways) {
	if from == len(e.ways[n]) {
		g.resume(next, m, out)
		return
	}
	if from+1 < len(e.ways[n]) {
		next = g.frame(frameKey{e: e, n: n, from: from + 1, next: next})
	}
	it := e.ways[n][from]
	if it.low == 1 && it.high == 1 {
		g.enter(it, next, m, out)
		return
	}
	g.repeat(it, it.low, it.high, next, m, out)
}

func (g *growth) repeat(it *item, low, high int, next *frame, m float64, out ways) {
	if low == 0 {
		g.resume(next, m, out)
	}
	if high != 0 {
		g.enter(it, g.frame(frameKey{it: it, low: max(low-1, 0), high: max(high-1, -1), next: next}), m, out)
	}
}

func (g *growth) enter(it *item, next *frame, m float64, out ways) {
	switch {
	case it.op == opGroup:
		g.body(it.group, next, m, out)
	case it.op == opRef:
		g.body(g.rules[it.name].body, next, m, out)
	case it.op == opText && len(it.text) == 0:
		g.resume(next, m, out)
	default:
		out[g.frame(frameKey{it: it, next: next})] += m
	}
}

func (g *growth) body(e *expr, next *frame, m float64, out ways) {
	for n := range e.ways {
		if g.work++; g.work > g.most {
			return
		}
		g.sequence(e, n, 0, next, m, out)
	}
}
