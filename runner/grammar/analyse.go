package grammar

// facts is what is known of a rule.
type facts struct {
	*definition
	nullable bool
	finite   bool // has a text of finite length
	state    int  // of the walk: 0 new, 1 open, 2 done
	measure
}

// measure is the work of finding the first characters of something, as llama.cpp does it (llama_grammar_advance_stack and
// llama_grammar_detect_left_recursion): it walks all ways, without remembering where it was.
type measure struct {
	empty  int // ways to be empty
	paths  int
	corner int
}

type analysis struct {
	bounds
	rules map[string]*facts
	order []*facts

	cyclic   map[string]bool // see recursive
	searched int             // work of growing so far
}

const tooMany = 1 << 40

func (a *analysis) run() error {
	elements := 0
	for _, f := range a.order {
		if err := a.sizes(f.body, 1, &elements); err != nil {
			return err
		}
	}
	a.settle()
	for _, f := range a.order {
		if err := a.loops(f.body); err != nil {
			return err
		}
	}
	total := 0
	for _, f := range a.order {
		if err := a.enter(f, f.at); err != nil {
			return err
		}
		if total = min(total+f.paths, tooMany); total > a.bounds.paths {
			return mistake(f.at, "share what alternatives begin with", "there are too many ways to begin rule %s and those before it", f.name)
		}
		if f.corner > a.bounds.corner {
			return mistake(f.at, "", "rule %s begins with too many rules in one another, or optional parts in a row", f.name)
		}
	}
	// Now groups that are not at a rule's beginning, with all rules known.
	for _, f := range a.order {
		if err := a.inner(f.body); err != nil {
			return err
		}
	}
	if err := a.growing(); err != nil {
		return err
	}
	if root := a.rules["root"]; a.finite && !root.finite {
		return mistake(root.at, "", "no text of it ever ends")
	}
	return nil
}

// sizes finds undefined rules, and counts the elements of llama.cpp's form.
func (a *analysis) sizes(e *expr, product int, elements *int) error {
	for _, way := range e.ways {
		for _, it := range way {
			inner := min(product*max(it.low, it.high, 1), tooMany)
			if a.product > 0 && inner > a.product {
				return mistake(it.at, "", "its nested repetitions multiply to %d; at most %d", inner, a.product)
			}
			n := 1
			switch it.op {
			case opText:
				n = len(it.text)
			case opSet:
				n = it.spans
			case opRef:
				if a.rules[it.name] == nil {
					return mistake(it.at, "define it: "+it.name+" ::= ...", "rule %s is used but not defined", it.name)
				}
			case opGroup:
				if err := a.sizes(it.group, inner, elements); err != nil {
					return err
				}
			}
			extra := max(it.high-it.low, 0)
			if it.high < 0 {
				extra = 1
			}
			*elements += 1 + n*max(it.low, 1) + extra*(n+3)
			if *elements > a.elements {
				return mistake(it.at, "", "with its repetitions written out it is too long")
			}
		}
		*elements++
	}
	return nil
}

// settle finds which rules may be empty, and which have a finite text: both grow until nothing changes. Rules wait for those that they
// use, so that a chain of rules does not take the square of its length.
func (a *analysis) settle() {
	users := map[string][]*facts{}
	for _, f := range a.order {
		for name := range uses(f.body, map[string]bool{}) {
			users[name] = append(users[name], f)
		}
	}
	work := append([]*facts(nil), a.order...)
	for len(work) > 0 {
		f := work[len(work)-1]
		work = work[:len(work)-1]
		nullable := f.nullable || a.all(f.body, func(it *item) bool { return a.mayBeEmpty(it) })
		finite := f.finite || a.all(f.body, func(it *item) bool { return a.ends(it) })
		if nullable != f.nullable || finite != f.finite {
			f.nullable, f.finite = nullable, finite
			work = append(work, users[f.name]...)
		}
	}
}

func uses(e *expr, names map[string]bool) map[string]bool {
	for _, way := range e.ways {
		for _, it := range way {
			if it.op == opRef {
				names[it.name] = true
			} else if it.op == opGroup {
				uses(it.group, names)
			}
		}
	}
	return names
}

// all: whether one alternative has the property in all its items.
func (a *analysis) all(e *expr, has func(*item) bool) bool {
	for _, way := range e.ways {
		ok := true
		for _, it := range way {
			if ok = has(it); !ok {
				break
			}
		}
		if ok {
			return true
		}
	}
	return false
}

func (a *analysis) mayBeEmpty(it *item) bool { return it.low == 0 || a.bare(it) }

// bare: whether the item without its repetition may be empty.
func (a *analysis) bare(it *item) bool {
	switch it.op {
	case opText:
		return len(it.text) == 0
	case opRef:
		return a.rules[it.name].nullable
	case opGroup:
		return a.all(it.group, a.mayBeEmpty)
	}
	return false
}

func (a *analysis) ends(it *item) bool {
	switch {
	case it.low == 0:
		return true
	case it.op == opRef:
		return a.rules[it.name].finite
	case it.op == opGroup:
		return a.all(it.group, a.ends)
	}
	return true
}

// loops refuses repetitions without end of what may be empty.
func (a *analysis) loops(e *expr) error {
	for _, way := range e.ways {
		for _, it := range way {
			if it.high < 0 && a.bare(it) {
				return mistake(it.at, "make sure that each round reads at least one character", "a repetition without end of what may be empty")
			}
			if it.op == opGroup {
				if err := a.loops(it.group); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *analysis) inner(e *expr) error {
	for _, way := range e.ways {
		for _, it := range way {
			if _, err := a.item(it); err != nil {
				return err
			}
			if it.op == opGroup {
				if err := a.inner(it.group); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// enter measures a rule. Coming back to one that is open is left recursion: nothing was read since.
func (a *analysis) enter(f *facts, at int) error {
	switch f.state {
	case 1:
		return mistake(at, "write repetition as item (\",\" item)*, or put the recursion behind something that reads a character", "rule %s is left-recursive: it comes back to itself without reading a character", f.name)
	case 2:
		return nil
	}
	f.state = 1
	m, err := a.measure(f.body, f.at)
	m.paths, m.corner = min(m.paths+1, tooMany), m.corner+1
	f.measure, f.state = m, 2
	return err
}

func (a *analysis) measure(e *expr, at int) (measure, error) {
	var out measure
	for _, way := range e.ways {
		empty, paths, corner, place := 1, 1, 0, at
		for _, it := range way {
			m, err := a.item(it)
			if err != nil {
				return out, err
			}
			place = it.at
			paths = min(paths+m.paths, tooMany)
			corner += m.corner
			if empty *= m.empty; empty == 0 {
				break
			}
		}
		out.empty += empty
		if out.empty > 1 {
			return out, mistake(place, "let one alternative, ? or * be empty, and not two of them", "this can be empty in more than one way")
		}
		out.paths = min(out.paths+paths, tooMany)
		out.corner = max(out.corner, corner)
	}
	return out, nil
}

func (a *analysis) item(it *item) (m measure, err error) {
	switch it.op {
	case opText:
		if m.paths = 1; len(it.text) == 0 {
			m.empty = 1
		}
	case opSet:
		m.paths = 1
	case opRef:
		f := a.rules[it.name]
		if err = a.enter(f, it.at); err != nil {
			return m, err
		}
		m = f.measure
	case opGroup:
		if m, err = a.measure(it.group, it.at); err != nil {
			return m, err
		}
		m.paths, m.corner = m.paths+1, m.corner+1
	}
	if it.low == 1 && it.high == 1 {
		return m, nil
	}
	if m.empty > 0 && (it.low == 0 || it.low != it.high) {
		return m, mistake(it.at, "take the repetition away, or what is empty inside of it", "this can be empty in more than one way")
	}
	rounds := 1
	if m.empty > 0 {
		rounds = it.low
	}
	m.paths, m.corner = min(m.paths*rounds+1, tooMany), m.corner*rounds+1
	if it.low == 0 {
		m.empty = 1
	}
	return m, nil
}
