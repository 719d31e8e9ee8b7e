package gateway

import (
	"maps"

	"github.com/google/jsonschema-go/jsonschema"
)

var openapiTags = []openapiTag{
	{"system", "health, version, numbers"},
	{"ollama", "Ollama's API"},
	{"openai", "OpenAI's API"},
	{"anthropic", "Anthropic's API"},
	{"access", "logins, users, keys, grants"},
	{"data", "databases, queries, questions"},
	{"lake", "copies to the lake, external tables"},
	{"learning", "what was asked, and questions with confirmed SQL"},
	{"rag", "documents, and searching them"},
	{"audit", "the ledger"},
	{"absent", "routes of the contract that this version answers with 501"},
}

// Statuses that rooms bring with them.
var (
	sqlFails   = []int{404, 409, 413, 422, 499, 501, 503} // whatever reads a database
	modelFails = []int{404, 409, 413, 501, 503}           // whatever asks a model
)

// operations says what each route of routes() takes and gives. A route that is only in one of the two fails a test.
func operations() map[string]operation {
	all := map[string]operation{}
	for _, part := range []map[string]operation{systemOperations(), ollamaOperations(), openaiOperations(), accessOperations(), dataOperations(), learningOperations(), collectionOperations()} {
		maps.Copy(all, part)
	}
	return all
}

func systemOperations() map[string]operation {
	return map[string]operation{
		"GET /":        {id: "root", tag: "system", summary: "The text by which Ollama's clients know a server", media: []string{"text/plain"}},
		"GET /healthz": {id: "health", tag: "system", summary: "The process lives", out: healthBody{}},
		"GET /readyz": {id: "ready", tag: "system", summary: "The server can take requests", out: readyBody{}, also: []int{503},
			detail: "Warnings say what it cannot do all the same, such as that no model is installed."},
		"GET /api/version": {id: "version", tag: "system", summary: "The level of Ollama's API that is spoken here", out: versionBody{},
			detail: "Sluice's own version is in the header X-Sluice-Version."},
		"GET /metrics":         {id: "metrics", tag: "system", summary: "Numbers for Prometheus", media: []string{"text/plain", "application/openmetrics-text"}},
		"GET /v1/openapi.json": {id: "openapi", tag: "system", summary: "This description", out: anyObject(), bare: true, status: []int{200, 304}},
	}
}

func accessOperations() map[string]operation {
	principalOf := parameter{Name: "principal", In: "query", Description: "a user's name or a key's id", Schema: text()}
	return map[string]operation{
		"POST /v1/auth/login": {id: "login", tag: "access", summary: "Log in", in: loginBody{}, need: []string{"user", "password"}, strict: true, out: loginInfo{},
			also: []int{401, 503}, detail: "Too many attempts answer 503 with Retry-After.", example: example(`{"user":"ada","password":"…"}`)},
		"POST /v1/auth/logout": {id: "logout", tag: "access", summary: "End this login", out: endedBody{}, also: []int{400}},
		"POST /v1/auth/reauth": {id: "reauth", tag: "access", summary: "Give the password again, which makes the login fresh", in: loginBody{}, need: []string{"password"},
			strict: true, out: loginInfo{}},
		"GET /v1/auth/me": {id: "me", tag: "access", summary: "Whom the server takes the caller for", out: meBody{}},

		"GET /v1/users":         {id: "listUsers", tag: "access", summary: "Users", list: true, out: []UserInfo{}},
		"POST /v1/users":        {id: "createUser", tag: "access", summary: "Make a user", in: newUserBody{}, need: []string{"name", "role"}, strict: true, out: UserInfo{}, also: []int{409}},
		"GET /v1/users/:id":     {id: "getUser", tag: "access", summary: "A user", out: UserInfo{}, also: []int{404}},
		"PATCH /v1/users/:id":   {id: "changeUser", tag: "access", summary: "Change a user", in: userChangeBody{}, strict: true, out: UserInfo{}, also: []int{404, 409}},
		"DELETE /v1/users/:id":  {id: "deleteUser", tag: "access", summary: "Delete a user, with keys, logins and grants", out: deletedBody{}, also: []int{404, 409}},
		"GET /v1/keys":          {id: "listKeys", tag: "access", summary: "Keys, without their secrets", list: true, out: []KeyInfo{}},
		"POST /v1/keys":         {id: "createKey", tag: "access", summary: "Make a key; its secret is shown this once", in: NewKey{}, need: []string{"name", "role"}, strict: true, out: createdKeyBody{}, also: []int{404, 409}},
		"GET /v1/keys/:id":      {id: "getKey", tag: "access", summary: "A key", out: KeyInfo{}, also: []int{404}},
		"PATCH /v1/keys/:id":    {id: "changeKey", tag: "access", summary: "Change a key: name, lists, end, a lower role", in: keyChangeBody{}, strict: true, out: KeyInfo{}, also: []int{404, 409}},
		"DELETE /v1/keys/:id":   {id: "deleteKey", tag: "access", summary: "Delete a key", out: deletedBody{}, also: []int{404}},
		"GET /v1/grants":        {id: "listGrants", tag: "access", summary: "Grants", list: true, params: []parameter{principalOf}, out: []GrantInfo{}},
		"POST /v1/grants":       {id: "createGrant", tag: "access", summary: "Grant a right", in: NewGrant{}, need: []string{"principal", "kind"}, strict: true, out: GrantInfo{}, also: []int{404, 409}},
		"GET /v1/grants/:id":    {id: "getGrant", tag: "access", summary: "A grant", params: []parameter{principalOf}, out: GrantInfo{}, also: []int{404}},
		"DELETE /v1/grants/:id": {id: "deleteGrant", tag: "access", summary: "Take a right back", params: []parameter{principalOf}, out: deletedBody{}, also: []int{404}},

		"GET /v1/audit": {id: "listAudit", tag: "audit", summary: "Entries of the ledger, newest first", out: []AuditEntry{}, also: []int{400},
			meta: map[string]*jsonschema.Schema{"next_cursor": text()}, params: []parameter{
				{Name: "kind", In: "query", Description: "exactly, or a beginning such as key.", Schema: text()}, principalOf,
				{Name: "since", In: "query", Description: "a time or a day", Schema: text()},
				{Name: "limit", In: "query", Schema: between("integer", 1, maxList)},
				{Name: "cursor", In: "query", Description: "next_cursor of the page before", Schema: text()}}},
		"GET /v1/audit/verify": {id: "verifyAudit", tag: "audit", summary: "Walk through the whole ledger", out: AuditVerdict{}},
	}
}

func dataOperations() map[string]operation {
	database := parameter{Name: "database", In: "query", Schema: text()}
	needed := database
	needed.Required = true
	scan := objectOf(map[string]*jsonschema.Schema{"table": text(), "files_opened": {Type: "integer"}, "files_total": {Type: "integer"}}, "table", "files_opened", "files_total")
	return map[string]operation{
		"GET /v1/devices":   {id: "listDevices", tag: "system", summary: "What models are loaded on", list: true, out: []device{}, also: []int{503}},
		"GET /v1/databases": {id: "listDatabases", tag: "data", summary: "Databases that the caller may read", list: true, out: []databaseInfo{}},
		"GET /v1/schema/tables": {id: "listTables", tag: "data", summary: "Tables of a database that the caller may read", list: true, params: []parameter{needed},
			out: []tableInfo{}, also: sqlFails},
		"POST /v1/query/execute": {id: "execute", tag: "data", summary: "Run one statement", in: queryRequest{}, need: []string{"database", "sql"}, strict: true, out: executed(),
			also: sqlFails, status: []int{200, 202}, media: []string{csvForm, ndjsonForm, arrowForm}, meta: map[string]*jsonschema.Schema{"scans": {Type: "array", Items: scan}},
			detail:  "A query; or COPY … TO LAKE, EXPLAIN COPY, CREATE or DROP EXTERNAL TABLE. The Accept header chooses a form that streams the whole result.",
			example: example(`{"database":"shop","sql":"SELECT count(*) FROM orders"}`)},
		"GET /v1/queries":        {id: "listQueries", tag: "data", summary: "Statements that run now", list: true, out: []statementInfo{}},
		"DELETE /v1/queries/:id": {id: "cancelQuery", tag: "data", summary: "Cancel a running statement", out: cancelledBody{}, also: []int{404}},
		"POST /v1/database/ask": {id: "ask", tag: "data", summary: "Ask a question about a database", in: askRequest{}, need: []string{"database", "question"}, strict: true, out: answer{},
			also: sqlFails, media: []string{eventStream}, detail: "With stream, the events schema, candidate, gate, rows, answer, done come as they happen.",
			example: example(`{"database":"shop","question":"How many customers are there?"}`)},
		"POST /v1/lake/copy": {id: "copyToLake", tag: "lake", summary: "Copy a query's rows into the lake", in: lakeCopyBody{}, need: []string{"database", "sql"}, strict: true, out: copied(), also: sqlFails, status: []int{200, 202},
			detail: "Sent by an agent, it becomes a copy request: 202, and nothing is copied before a person approves it.",
			params: []parameter{{Name: "Idempotency-Key", In: "header", Description: "not part of this version: refused", Schema: text()}}},
		"GET /v1/lake/copy/requests": {id: "listCopyRequests", tag: "lake", summary: "Copies that agents asked for, newest first", out: []copyRequestInfo{}, also: []int{400},
			meta: map[string]*jsonschema.Schema{"next_cursor": text()}, params: []parameter{
				{Name: "state", In: "query", Description: "pending, approved, denied, withdrawn, expired, running, done or failed", Schema: text()},
				{Name: "limit", In: "query", Schema: between("integer", 1, maxList)},
				{Name: "cursor", In: "query", Description: "next_cursor of the page before", Schema: text()}}},
		"GET /v1/lake/copy/requests/:id":    {id: "getCopyRequest", tag: "lake", summary: "A copy that an agent asked for", out: copyRequestInfo{}, also: []int{404}},
		"DELETE /v1/lake/copy/requests/:id": {id: "withdrawCopyRequest", tag: "lake", summary: "Take a copy request back", out: copyRequestInfo{}, also: []int{404, 409}},
		"POST /v1/lake/copy/requests/:id/approve": {id: "approveCopyRequest", tag: "lake", summary: "Approve a copy request, which runs it", in: approveBody{}, strict: true, out: copyApproved{}, also: sqlFails,
			detail: "Needs a login with a fresh password and all that COPY needs; in one's own name an agent_copy grant too. It runs once. The body may be left out."},
		"POST /v1/lake/copy/requests/:id/deny": {id: "denyCopyRequest", tag: "lake", summary: "Deny a copy request", in: denyBody{}, strict: true, out: copyRequestInfo{}, also: []int{404, 409}, detail: "The body may be left out."},
		"GET /v1/lake/runs":                    {id: "listRuns", tag: "lake", summary: "Runs of copies, newest first", list: true, out: []runInfo{}, also: []int{503}},
		"GET /v1/lake/connections":             {id: "listConnections", tag: "lake", summary: "Connections to lakes", list: true, out: []connectionInfo{}},
		"GET /v1/lake/external-tables":         {id: "listExternalTables", tag: "lake", summary: "External tables", list: true, params: []parameter{database}, out: []tableInfo{}, also: sqlFails},
	}
}
