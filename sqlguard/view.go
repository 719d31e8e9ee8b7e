package sqlguard

import "slices"

// views refuses what shows the tables behind a view, which the caller may not be able to read: its plan, and an error
// raised at will for a row that the view drops (the optimizer may evaluate a term of the statement before the view's own).
//
// A view is still no wall against somebody who may write any expression over it: a cast or a division fails for a dropped
// row as well, and that it failed is an answer, even though the engine's text is hidden. Data that a caller must not learn
// of belongs into a table without a grant, not behind a view.
func (w *walker) views(explain bool) error {
	if !explain && w.raises == nil {
		return nil
	}
	view := slices.ContainsFunc(w.relations, func(r Relation) bool {
		t := w.req.Catalog.find("", r.Schema, r.Name)
		return t != nil && t.View
	})
	switch {
	case !view:
		return nil
	case explain:
		return refuse(0, kindQuery, "run it without EXPLAIN", "the plan of a view is not shown")
	}
	return refuse(place(w.raises), kindQuery, "read the view without error(…)", "error is not allowed in a statement that reads a view")
}
