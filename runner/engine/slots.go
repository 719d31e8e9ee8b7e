package engine

// slot is a sequence of the context. Between answers it keeps what it holds, so that a later prompt may begin with it.
type slot struct {
	id   int
	held []input // what the cache holds for it, by position
	used int     // the loop's clock when it was last used
	// owner is whose prompt it was last given: what it holds, that owner has sent or been answered.
	owner string
	g     *generation // nil: idle
}

const (
	// worthWaiting is how many tokens of a prompt must be coming up in another slot to wait for them instead of reading them too.
	worthWaiting = 64
	// copyCost, in tokens to read: a copy moves the whole context of a sequence, whatever it holds.
	copyCost = 16
	// gapCost, in tokens: sequences are computed together only when their numbers follow each other; a gap splits the batch.
	gapCost = 32
)

// place says where a prompt goes: the idle slot to use, and the slot whose first n positions it begins with.
type place struct{ to, from, n int }

// choose finds the idle slot that costs least: tokens of the prompt to be read, as neither it nor a copy of another slot has
// them, and half of what is lost in it, as neither the prompt nor another slot has it. What is lost counts half again for each
// round of requests that did not ask for it. ok is false when no slot is idle. exact: the model cannot cut a sequence, so that
// only a whole one serves, in its own place.
func choose(slots []*slot, prompt []input, clock int, exact bool) (p place, ok bool) {
	if exact {
		return chooseExact(slots, prompt)
	}
	// The last token is always evaluated again: its logits are not kept.
	begins := func(s *slot) int { return min(common(s.held, prompt), len(prompt)-1) }
	source := slots[0]
	for _, s := range slots {
		if begins(s) > begins(source) {
			source = s
		}
	}
	least := 0.0
	for _, s := range slots {
		if s.g != nil {
			continue
		}
		here := place{to: s.id, from: s.id, n: begins(s)}
		cost := 0.0
		if n := begins(source); n > here.n+copyCost {
			here.from, here.n, cost = source.id, n, copyCost
		}
		kept := common(s.held, prompt)
		for _, other := range slots {
			if other != s {
				kept = max(kept, common(s.held, other.held))
			}
		}
		forgotten := int(2) << min((clock-s.used)/len(slots), 30)
		cost += float64(len(prompt)-here.n) + float64(len(s.held)-kept)/float64(forgotten)
		if gap(slots, s.id) {
			cost += gapCost
		}
		if !ok || cost < least {
			p, least, ok = here, cost, true
		}
	}
	return p, ok
}

// known is how much of the first n inputs of a prompt its owner may be told is cached: as much as its own prompts left in some slot.
// Anybody's prefixes are taken from the cache, but who could count the tokens of others there could guess their prompts, one token
// after the other. (How long the prompt took still tells a little; to hide that too, nothing could be shared.)
func known(slots []*slot, prompt []input, owner string, n int) int {
	own := 0
	for _, s := range slots {
		if s.owner == owner {
			own = max(own, common(s.held, prompt))
		}
	}
	return min(own, n)
}

// gap says whether a slot would be computed apart from those that are busy.
func gap(slots []*slot, id int) bool {
	busy := false
	for _, s := range slots {
		if s.g != nil {
			busy = true
			if s.id == id-1 || s.id == id+1 {
				return false
			}
		}
	}
	return busy
}

func chooseExact(slots []*slot, prompt []input) (p place, ok bool) {
	for _, s := range slots {
		n := common(s.held, prompt)
		if n < len(s.held) || n == len(prompt) {
			n = 0
		}
		if s.g == nil && (!ok || n > p.n || n == p.n && s.used < slots[p.to].used) {
			p, ok = place{to: s.id, from: s.id, n: n}, true
		}
	}
	return p, ok
}

// promised says whether a slot is about to read much more of the prompt's beginning than any slot has now.
func promised(slots []*slot, prompt []input) bool {
	has, will := 0, 0
	for _, s := range slots {
		has = max(has, min(common(s.held, prompt), len(prompt)-1))
		if s.g != nil && s.g.isReading {
			will = max(will, min(common(s.g.prompt, prompt), len(prompt)-1))
		}
	}
	return will >= has+worthWaiting
}

// share gives each of the prompts that are being read, oldest first, its part of the room in a batch: half to the shortest,
// so that it need not wait for a long one, then as much as they take to the others by age.
func share(left []int, room int) []int {
	parts := make([]int, len(left))
	if len(left) == 0 || room <= 0 {
		return parts
	}
	shortest := 0
	for i, n := range left {
		if n < left[shortest] {
			shortest = i
		}
	}
	parts[shortest] = min(left[shortest], (room+1)/2)
	room -= parts[shortest]
	for i := range left {
		more := min(left[i]-parts[i], room)
		parts[i] += more
		room -= more
	}
	return parts
}
