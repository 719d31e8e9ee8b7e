package sqlguard

import "strings"

// operator decides on an operator by its names, as A_Expr.name has them. schema is where it is: "" says PostgreSQL's own,
// which the pinned search path finds; else the text that runs must name the schema. The error is a refusal.
//
// The distances of pgvector are found under their plain names, as its users write them. <-> is also a distance of points and
// "followed by" of a tsquery, and + and = are both's: vectorOperator tells these by their operands.
func (w *pgWalker) operator(names []string, at int) (schema string, err error) {
	vector := w.req.Catalog.Extensions[pgVector]
	switch {
	case len(names) == 1 && vector != "" && pgVectorOperators[names[0]]:
		return vector, nil
	case len(names) == 1 && pgOperators[names[0]]:
		return "", nil
	case len(names) == 2 && names[0] == "pg_catalog" && pgOperators[names[1]]:
		return "", nil
	case len(names) == 2 && vector != "" && names[0] == vector && (pgVectorOperators[names[1]] || pgVectorOverloads[names[1]] != 0):
		return vector, nil
	}
	hint := "PostgreSQL's own operators are allowed"
	if len(names) == 1 && pgVectorOperators[names[0]] {
		hint = "it is one of the extension pgvector, which this source does not have"
	}
	return "", refuse(at, kindQuery, hint, "the operator %s is not allowed", strings.Join(names, "."))
}
