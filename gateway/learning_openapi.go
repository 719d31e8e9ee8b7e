package gateway

import (
	"github.com/google/jsonschema-go/jsonschema"
)

// learningOperations are the routes of the Learning Loop.
func learningOperations() map[string]operation {
	query := func(name, what string) parameter {
		return parameter{Name: name, In: "query", Description: what, Schema: text()}
	}
	flag := func(name, what string) parameter {
		return parameter{Name: name, In: "query", Description: what, Schema: &jsonschema.Schema{Type: "boolean"}}
	}
	one := func(name string, values ...any) parameter {
		return parameter{Name: name, In: "query", Schema: &jsonschema.Schema{Type: "string", Enum: values}}
	}
	database := query("database", "only those of this database")
	pages := []parameter{{Name: "limit", In: "query", Schema: between("integer", 1, maxList)}, query("cursor", "next_cursor of the page before")}
	next := map[string]*jsonschema.Schema{"next_cursor": text()}
	all := func(some ...parameter) []parameter { return append(some, pages...) }
	fails := []int{404, 409, 422, 499, 501, 503}
	return map[string]operation{
		"GET /v1/learning/questions": {id: "listQuestions", tag: "learning", summary: "What was asked, newest first", out: []QuestionInfo{}, meta: next, also: []int{400, 499, 501},
			detail: "One's own; everybody's for an admin. Never rows.",
			params: all(database, one("outcome", "answered", "declined", "failed", "copy_requested", "cancelled", "error"), one("mark", "right", "wrong", "none"),
				query("user", "only what this user asked; another's needs an admin"))},
		"GET /v1/learning/questions/:id": {id: "getQuestion", tag: "learning", summary: "How a question was answered: tables, statements, verdicts, times", out: QuestionDetail{}, also: []int{404, 499, 501}},
		"POST /v1/learning/questions/:id/mark": {id: "markQuestion", tag: "learning", summary: "Say whether an answer was right", in: MarkRequest{}, need: []string{"mark"}, strict: true, out: Marked{}, also: fails,
			detail:  "Right makes a verified question of it, with the SQL that answered it or a better one, which must pass the gate for the caller and run. Any other mark takes it back. Not for agent keys.",
			example: example(`{"mark":"right"}`)},
		"GET /v1/learning/verified": {id: "listVerified", tag: "learning", summary: "Verified questions, newest first", out: []VerifiedInfo{}, meta: next, also: []int{400, 499, 501},
			detail: "Those that serve the caller; all for an admin. A page may be shorter than limit and have a next one.", params: all(database)},
		"POST /v1/learning/verified": {id: "createVerified", tag: "learning", summary: "Confirm the SQL of a question", in: NewVerified{}, need: []string{"database", "question", "sql"}, strict: true,
			out: VerifiedInfo{}, also: fails, example: example(`{"database":"shop","question":"How many orders are there?","sql":"SELECT count(*) FROM orders"}`)},
		"GET /v1/learning/verified/:id":    {id: "getVerified", tag: "learning", summary: "A verified question", out: VerifiedInfo{}, also: []int{404, 499, 501}},
		"DELETE /v1/learning/verified/:id": {id: "deleteVerified", tag: "learning", summary: "Withdraw a verified question", out: deletedBody{}, also: []int{404, 499, 501}},
		"GET /v1/learning/export": {id: "exportVerified", tag: "learning", summary: "Verified questions as a file", out: VerifiedFile{}, media: []string{yamlForm}, also: []int{400, 404, 499, 501},
			detail: "YAML, or JSON where the Accept header asks for it.",
			params: []parameter{database, flag("shared", "true: only what serves everybody; false: only what serves the caller")}},
		"POST /v1/learning/import": {id: "importVerified", tag: "learning", summary: "Verified questions from a file", in: VerifiedFile{}, need: []string{"verified_queries"}, strict: true, out: Imported{}, also: fails,
			detail: "JSON, or YAML of the same form. Each statement passes the gate for the caller. All or nothing, unless partial; importing it again changes nothing. The address may say database, shared, partial and dry_run too.",
			params: []parameter{query("database", "of the entries that name none"), flag("shared", "for everybody: admins only"), flag("partial", "import what is not refused"), flag("dry_run", "import nothing")}},
	}
}
