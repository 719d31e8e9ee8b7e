package agent

import "context"

// maxCuts bounds what is left out of one statement.
const maxCuts = 6

// pruned leaves out of a statement what speaks against it and can be left out: filters by what the question does not name,
// joins of tables that it does not need, joins by columns that do not refer to each other. A column that is out of reach
// then is brought back by mending, over the known joins.
func (k *ask) pruned(sql string, doubts []doubt) (string, bool) {
	cut := false
	for range maxCuts {
		var next *edit
		for _, d := range doubts {
			if d.cut != nil {
				next = d.cut
				break
			}
		}
		if next == nil {
			break
		}
		sql, cut = apply(sql, *next), true
		doubts = k.doubtsOf(sql)
	}
	return sql, cut
}

// prune puts a statement with less in the place of one that ran, when that runs too and less speaks against it.
func (k *ask) prune(ctx context.Context, t *try) error {
	if k.off().Doubt || k.off().Mend || t.table == nil {
		return nil
	}
	sql, ok := k.pruned(t.sql(), t.doubts)
	if !ok {
		return nil
	}
	less := &try{Candidate: t.Candidate, round: t.round, at: t.at}
	approved, mended, err := k.approve(ctx, sql)
	switch {
	case ctx.Err() != nil || err != nil && !blamesStatement(err):
		return err
	case err != nil || len(approved.Relations()) == 0:
		return nil
	}
	if mended == "" {
		mended = sql
	}
	less.approved, less.SQL, less.Mended = approved, approved.Shown(), mended
	if err := k.rows(ctx, less); err != nil {
		return err
	}
	if less.table != nil && k.against(less) < k.against(t) {
		k.tell("gate", "allowed, with less: "+less.SQL)
		*t = *less
	}
	return nil
}

// conditionAt gives the condition of a WHERE that holds a token, with the AND before or behind it, or the whole clause.
func (s *statementText) conditionAt(i int) *edit {
	b := within(s.blocks, i)
	if b == nil || b.at["WHERE"] == 0 || i < b.at["WHERE"] || i >= b.end("WHERE") {
		return nil
	}
	where, end := b.at["WHERE"], b.end("WHERE")
	var ands []int
	between := false
	for j := where + 1; j < end; j++ {
		t := s.ts[j]
		if t.depth != b.depth {
			continue
		}
		switch {
		case t.is("OR"):
			return nil
		case t.is("BETWEEN"):
			between = true
		case t.is("AND") && between:
			between = false
		case t.is("AND"):
			ands = append(ands, j)
		}
	}
	before, behind := where, end
	for _, a := range ands {
		if a < i {
			before = a
		} else {
			behind = a
			break
		}
	}
	switch {
	case before+1 >= behind: // there is nothing between them
		return nil
	case before == where && behind == end:
		return &edit{s.ts[where].start, s.ts[end-1].end, ""}
	case before == where && behind+1 >= len(s.ts):
		return nil
	case before == where:
		return &edit{s.ts[where+1].start, s.ts[behind+1].start, ""}
	}
	return &edit{s.ts[before].start, s.ts[behind-1].end, ""}
}

// joinAt gives the join whose condition holds a token.
func (s *statementText) joinAt(i int) *edit {
	b := within(s.blocks, i)
	if b == nil || b.at["FROM"] == 0 || i < b.at["FROM"] || i >= b.end("FROM") {
		return nil
	}
	for from, to := range s.joinsIn(b) {
		if from < i && i < to {
			return &edit{s.ts[from].start, s.ts[to-1].end, ""}
		}
	}
	return nil
}

// joinOf gives the join of a source; of the first one, itself with the JOIN behind it and the condition of that.
func (s *statementText) joinOf(b *block, source int) *edit {
	n := 0
	for from, to := range s.joinsIn(b) {
		if n++; n == source {
			return &edit{s.ts[from].start, s.ts[to-1].end, ""}
		}
	}
	return nil
}

// joinsIn gives the joins of a FROM that is joins alone, each by its tokens.
func (s *statementText) joinsIn(b *block) func(func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		var starts []int
		for i := b.at["FROM"] + 1; i < b.end("FROM"); i++ {
			if s.ts[i].depth != b.depth {
				continue
			}
			if s.ts[i].is(",") {
				return
			}
			if s.ts[i].is("JOIN") {
				from := i
				for s.ts[from-1].is("INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "NATURAL") {
					from--
				}
				starts = append(starts, from)
			}
		}
		for n, from := range starts {
			to := b.end("FROM")
			if n+1 < len(starts) {
				to = starts[n+1]
			}
			if !yield(from, to) {
				return
			}
		}
	}
}
