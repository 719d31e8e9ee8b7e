package sqlguard

import "slices"

// views refuses what shows the tables behind a view, which the caller may not be able to read: its plan, and an error
// raised at will for a row that the view drops (the optimizer may evaluate a term of the statement before the view's own).
//
// A view is still no wall against somebody who may write any expression over it: a cast or a division fails for a dropped
// row as well, and that it failed is an answer, even though the engine's text is hidden. Data that a caller must not learn
// of belongs into a table without a grant, not behind a view.
//
// raises is the first call of a function that does nothing but fail; PostgreSQL has none that may be called.
func (r Request) views(relations []Relation, explain bool, raises node) error {
	if !explain && raises == nil {
		return nil
	}
	view := slices.ContainsFunc(relations, func(rel Relation) bool {
		return slices.ContainsFunc(r.Catalog.Tables, func(t Table) bool { return t.Relation == rel && t.View })
	})
	switch {
	case !view:
		return nil
	case explain:
		return refuse(0, kindQuery, "run it without EXPLAIN", "the plan of a view is not shown")
	}
	return refuse(place(raises), kindQuery, "read the view without error(…)", "error is not allowed in a statement that reads a view")
}
