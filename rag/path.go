package rag

import (
	"slices"

	"sluice/sqlguard"
)

// connect gives the chosen tables, the best first, each followed by the tables on the shortest way from it to those before
// it. Of ways that are equally long, it takes the one through tables that scored more, and of those the one with more
// declared joins. A table that cannot be reached is kept; one that does not fit into most any more is left out.
func connect(joins []Join, chosen []sqlguard.Relation, score map[sqlguard.Relation]float64, most int) []sqlguard.Relation {
	next := neighbours(joins)
	top := 1.0
	if len(chosen) > 0 {
		top = max(top, score[chosen[0]])
	}
	var out []sqlguard.Relation
	for _, r := range chosen {
		if slices.Contains(out, r) {
			continue
		}
		add := append([]sqlguard.Relation{r}, way(next, r, out, func(x sqlguard.Relation) float64 { return 1 - 0.4*score[x]/top })...)
		if len(out)+len(add) > most {
			continue
		}
		out = append(out, add...)
	}
	return out
}

// between adds to tables those that refer to two of the chosen ones which are not joined themselves, such as the lines of
// an order between orders and products: for each pair the one that scored most, while there is room.
func between(joins []Join, chosen, tables []sqlguard.Relation, score map[sqlguard.Relation]float64, most int) []sqlguard.Relation {
	refers := map[sqlguard.Relation][]sqlguard.Relation{}
	for _, j := range joins {
		refers[j.From.Relation] = append(refers[j.From.Relation], j.To.Relation)
	}
	for i, a := range chosen {
		for _, b := range chosen[:i] {
			if slices.Contains(refers[a], b) || slices.Contains(refers[b], a) {
				continue
			}
			best, found := sqlguard.Relation{}, false
			for r, to := range refers {
				if slices.Contains(to, a) && slices.Contains(to, b) && (!found || score[r] > score[best] || score[r] == score[best] && compareRelations(r, best) < 0) {
					best, found = r, true
				}
			}
			if found && !slices.Contains(tables, best) && len(tables) < most {
				tables = append(tables, best)
			}
		}
	}
	return tables
}

// step is a join as seen from one of its tables.
type step struct {
	to   sqlguard.Relation
	cost float64
}

// neighbours gives the joins of each table. An inferred one is a little longer than a declared one.
func neighbours(joins []Join) map[sqlguard.Relation][]step {
	out := map[sqlguard.Relation][]step{}
	for _, j := range joins {
		a, b, cost := j.From.Relation, j.To.Relation, 0.0
		if !j.Declared {
			cost = 0.01
		}
		if a != b {
			out[a] = append(out[a], step{b, cost})
			out[b] = append(out[b], step{a, cost})
		}
	}
	return out
}

// way gives the tables between start and the nearest of the targets, without either: nothing when they are neighbours or
// when there is no way. price is what it costs to pass through a table.
func way(next map[sqlguard.Relation][]step, start sqlguard.Relation, targets []sqlguard.Relation, price func(sqlguard.Relation) float64) []sqlguard.Relation {
	if len(targets) == 0 {
		return nil
	}
	cost := map[sqlguard.Relation]float64{start: 0}
	from := map[sqlguard.Relation]sqlguard.Relation{}
	done := map[sqlguard.Relation]bool{}
	for {
		at, found := sqlguard.Relation{}, false
		for r, c := range cost {
			if !done[r] && (!found || c < cost[at] || c == cost[at] && compareRelations(r, at) < 0) {
				at, found = r, true
			}
		}
		if !found {
			return nil
		}
		if slices.Contains(targets, at) {
			var out []sqlguard.Relation
			for r := from[at]; r != start; r = from[r] {
				out = append(out, r)
			}
			slices.Reverse(out)
			return out
		}
		done[at] = true
		for _, s := range next[at] {
			c := cost[at] + s.cost
			if !slices.Contains(targets, s.to) {
				c += price(s.to)
			}
			if old, ok := cost[s.to]; !done[s.to] && (!ok || c < old) {
				cost[s.to], from[s.to] = c, at
			}
		}
	}
}
