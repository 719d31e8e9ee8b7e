package gateway

import (
	"strings"
	"testing"
)

// contract is the table of routes that users were promised, whether this version has them or not.
var contract = []string{
	"POST /v1/auth/login", "POST /v1/auth/logout", "POST /v1/auth/reauth", "GET /v1/auth/me",
	"GET /v1/users", "POST /v1/users", "GET /v1/users/x", "PATCH /v1/users/x", "DELETE /v1/users/x",
	"GET /v1/keys", "POST /v1/keys", "GET /v1/keys/x", "PATCH /v1/keys/x", "DELETE /v1/keys/x",
	"GET /v1/grants", "POST /v1/grants", "GET /v1/grants/x", "DELETE /v1/grants/x",
	"GET /v1/databases", "GET /v1/schema/tables",
	"POST /v1/query/execute", "GET /v1/queries", "DELETE /v1/queries/x",
	"POST /v1/database/ask",
	"POST /v1/lake/copy", "GET /v1/lake/copy/jobs", "GET /v1/lake/copy/jobs/x", "POST /v1/lake/copy/jobs/x/cancel",
	"GET /v1/lake/runs", "GET /v1/lake/runs/x", "GET /v1/lake/runs/x/files",
	"GET /v1/lake/copy/requests", "GET /v1/lake/copy/requests/x", "POST /v1/lake/copy/requests/x/approve", "POST /v1/lake/copy/requests/x/deny",
	"GET /v1/lake/connections", "GET /v1/lake/external-tables",
	"GET /v1/audit", "GET /v1/audit/verify",
	"GET /v1/learning/questions", "GET /v1/learning/questions/x", "POST /v1/learning/questions/x/mark",
	"GET /v1/learning/verified", "POST /v1/learning/verified", "GET /v1/learning/verified/x", "DELETE /v1/learning/verified/x",
	"GET /v1/learning/export", "POST /v1/learning/import",
	"GET /v1/rag/collections", "POST /v1/rag/collections", "GET /v1/rag/collections/x", "DELETE /v1/rag/collections/x",
	"GET /v1/rag/collections/x/documents", "POST /v1/rag/collections/x/documents", "POST /v1/rag/search",
	"GET /v1/devices", "GET /v1/nodes",
	"GET /api/version", "GET /healthz", "GET /readyz", "GET /metrics",
	"GET /v1/mcp", "POST /v1/mcp", "DELETE /v1/mcp", "GET /console", "GET /console/", "GET /console/x", "GET /v1/openapi.json",

	"GET /api/tags", "GET /api/ps", "POST /api/show", "POST /api/chat", "POST /api/generate", "POST /api/embed", "POST /api/embeddings",
	"POST /api/create", "POST /api/copy", "DELETE /api/delete", "HEAD /api/blobs/x", "POST /api/blobs/x", "POST /api/pull", "POST /api/push",
	"POST /v1/chat/completions", "POST /v1/completions", "POST /v1/embeddings", "GET /v1/models", "GET /v1/models/x", "POST /v1/responses",
	"POST /v1/messages", "POST /v1/messages/count_tokens",
	"GET /api/status", "POST /api/tokenize", "POST /api/detokenize", "POST /api/rerank", "POST /v1/rerank",
}

// TestEveryRouteOfTheContractAnswers: what is not here yet says so, instead of looking like a mistyped address.
func TestEveryRouteOfTheContractAnswers(t *testing.T) {
	f := newFixture(t, nil)
	for _, r := range contract {
		method, path := cutMethod(r)
		w := f.do(call{method: method, path: path, bearer: adminKey})
		if w.Code == 405 || w.Code == 404 && strings.Contains(w.Body.String(), "there is no route") || method == "HEAD" && w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %s", r, w.Code, w.Body)
		}
		if text := w.Body.String(); w.Code == 501 && !strings.Contains(text, "not part of this version of Sluice") && !strings.Contains(text, "this server ") {
			t.Errorf("%s: no sentence: %s", r, w.Body)
		}
	}
}
