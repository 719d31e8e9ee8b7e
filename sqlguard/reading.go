package sqlguard

// reading is what a walk of a statement keeps in either dialect: how deep it is, and which relations it met.
type reading struct {
	depth     int
	seen      map[Relation]bool
	relations []Relation
}

// maxDepth bounds the nesting of a statement's tree. DuckDB's own bound is 1000, but planning 400 nested additions takes
// it 4 seconds, in which it cannot be interrupted; PostgreSQL's writer of trees kills the process at 4600.
const maxDepth = 250

func (r *reading) enter(at int) error {
	if r.depth++; r.depth > maxDepth {
		return refuse(at, kindQuery, "nest less deeply", "the statement nests more than %d levels deep", maxDepth)
	}
	return nil
}

func (r *reading) leave() { r.depth-- }

func (r *reading) reads(rel Relation) {
	if !r.seen[rel] {
		if r.seen == nil {
			r.seen = map[Relation]bool{}
		}
		r.seen[rel] = true
		r.relations = append(r.relations, rel)
	}
}
