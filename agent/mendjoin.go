package agent

import (
	"slices"
	"strings"

	"sluice/rag"
	"sluice/sqlguard"
)

// maxHops bounds the tables between one that is in FROM and one that is joined for a column.
const maxHops = 3

// behindFrom gives the byte behind what stands in FROM.
func (s *statementText) behindFrom(b *block) int { return s.ts[b.end("FROM")-1].end }

// join writes the joins that bring a relation into a block, on the shortest known way from what is there. It joins
// nothing whose name is taken, and nothing to a FROM with a comma, where a join would bind to the last table alone.
func (s *statementText) join(b *block, to sqlguard.Relation) (string, bool) {
	if b.at["FROM"] == 0 {
		return "", false
	}
	for i := b.at["FROM"]; i < b.end("FROM"); i++ {
		if s.ts[i].depth == b.depth && s.ts[i].is(",") {
			return "", false
		}
	}
	as := map[sqlguard.Relation]string{} // how what is there is called
	var queue []sqlguard.Relation
	for _, n := range b.sources {
		if r, ok := s.relationOf(n); ok && as[r] == "" {
			as[r] = n.written
			queue = append(queue, r)
		}
	}
	type hop struct {
		join rag.Join
		from sqlguard.Relation
		n    int
	}
	came := map[sqlguard.Relation]hop{}
	for len(queue) > 0 && came[to].n == 0 {
		at := queue[0]
		queue = queue[1:]
		for _, j := range s.k.Joins() {
			next := j.To.Relation
			if j.From.Relation != at {
				next = j.From.Relation
			}
			if j.From.Relation != at && j.To.Relation != at || next == at || as[next] != "" || came[next].n > 0 || came[at].n >= maxHops {
				continue
			}
			came[next] = hop{j, at, came[at].n + 1}
			queue = append(queue, next)
		}
	}
	if came[to].n == 0 {
		return "", false
	}
	var parts []string
	for r := to; as[r] == ""; r = came[r].from {
		if slices.ContainsFunc(b.sources, func(n named) bool { return strings.EqualFold(n.name, r.Name) }) {
			return "", false
		}
		h := came[r]
		mine, theirs := h.join.From, h.join.To
		if mine.Relation != r {
			mine, theirs = theirs, mine
		}
		other := as[theirs.Relation]
		if other == "" {
			other = s.k.Identifier(theirs.Relation.Name)
		}
		parts = append(parts, " JOIN "+s.k.Name(r)+" ON "+s.k.Identifier(r.Name)+"."+s.k.Identifier(mine.Column)+" = "+other+"."+s.k.Identifier(theirs.Column))
	}
	slices.Reverse(parts)
	return strings.Join(parts, ""), true
}
