package gateway

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// class says what a route asks of its caller. The zero value lets nobody through.
type class int

const (
	closed    class = iota
	public          // before authentication
	inference       // a credential, or nobody while Ollama's routes are open
	manage          // an admin, or nobody while open_admin holds
	member          // a credential
	person          // a person who logged in, or an admin's unrestricted key
	adminOnly       // an admin who logged in, or an admin's unrestricted key
)

type route struct {
	method, path string
	class        class
	handle       gin.HandlerFunc
	bigBody      bool // the body is a file, not a document: no size limit
}

// routes is every route there is. The order is of no importance.
func (s *server) routes() []route {
	rs := []route{
		{method: "GET", path: "/", class: public, handle: s.root},
		{method: "GET", path: "/healthz", class: public, handle: s.healthz},
		{method: "GET", path: "/readyz", class: public, handle: s.readyz},
		{method: "GET", path: "/api/version", class: public, handle: s.version},
		{method: "GET", path: "/v1/openapi.json", class: public, handle: s.openapi()},

		{method: "GET", path: "/api/tags", class: inference, handle: s.tags},
		{method: "GET", path: "/api/ps", class: inference, handle: s.ps},
		{method: "POST", path: "/api/show", class: inference, handle: s.show},
		{method: "POST", path: "/api/chat", class: inference, handle: s.chat},
		{method: "POST", path: "/api/generate", class: inference, handle: s.generate},
		{method: "POST", path: "/api/embed", class: inference, handle: s.embed},
		{method: "POST", path: "/api/embeddings", class: inference, handle: s.embeddings},
		{method: "POST", path: "/api/tokenize", class: inference, handle: s.tokenize},
		{method: "POST", path: "/api/detokenize", class: inference, handle: s.detokenize},
		{method: "POST", path: "/api/rerank", class: inference, handle: s.rerank},
		{method: "GET", path: "/api/status", class: inference, handle: s.status},
		{method: "GET", path: "/metrics", class: inference, handle: s.metrics},

		{method: "POST", path: "/v1/chat/completions", class: inference, handle: s.openaiChat},
		{method: "POST", path: "/v1/completions", class: inference, handle: s.openaiCompletions},
		{method: "POST", path: "/v1/embeddings", class: inference, handle: s.openaiEmbeddings},
		{method: "GET", path: "/v1/models", class: inference, handle: s.openaiModels},
		{method: "GET", path: "/v1/models/*model", class: inference, handle: s.openaiModel}, // a name may have slashes
		{method: "POST", path: "/v1/responses", class: inference, handle: s.openaiResponses},
		{method: "POST", path: "/v1/rerank", class: inference, handle: s.rerank},
		{method: "POST", path: "/v1/messages", class: inference, handle: s.anthropicMessages},
		{method: "POST", path: "/v1/messages/count_tokens", class: inference, handle: s.anthropicCountTokens},

		{method: "POST", path: "/api/pull", class: manage, handle: s.pull},
		{method: "POST", path: "/api/push", class: manage, handle: s.push},
		{method: "POST", path: "/api/create", class: manage, handle: s.create},
		{method: "POST", path: "/api/copy", class: manage, handle: s.copyModel},
		{method: "DELETE", path: "/api/delete", class: manage, handle: s.deleteModel},
		{method: "HEAD", path: "/api/blobs/:digest", class: manage, handle: s.hasBlob},
		{method: "POST", path: "/api/blobs/:digest", class: manage, handle: s.addBlob, bigBody: true},

		{method: "POST", path: "/v1/auth/login", class: public, handle: s.login},
		{method: "POST", path: "/v1/auth/logout", class: member, handle: s.logout},
		{method: "POST", path: "/v1/auth/reauth", class: member, handle: s.reauth},
		{method: "GET", path: "/v1/auth/me", class: member, handle: s.me},
		{method: "GET", path: "/v1/users", class: adminOnly, handle: list(s, s.listUsers)},
		{method: "POST", path: "/v1/users", class: adminOnly, handle: s.createUser},
		{method: "GET", path: "/v1/users/:id", class: person, handle: s.getUser},
		{method: "PATCH", path: "/v1/users/:id", class: person, handle: s.changeUser},
		{method: "DELETE", path: "/v1/users/:id", class: adminOnly, handle: s.deleteUser},
		{method: "GET", path: "/v1/keys", class: person, handle: list(s, s.listKeys)},
		{method: "POST", path: "/v1/keys", class: person, handle: s.createKey},
		{method: "GET", path: "/v1/keys/:id", class: person, handle: s.getKey},
		{method: "PATCH", path: "/v1/keys/:id", class: person, handle: s.changeKey},
		{method: "DELETE", path: "/v1/keys/:id", class: person, handle: s.deleteKey},
		{method: "GET", path: "/v1/grants", class: person, handle: list(s, s.listGrants)},
		{method: "POST", path: "/v1/grants", class: adminOnly, handle: s.createGrant},
		{method: "GET", path: "/v1/grants/:id", class: person, handle: s.getGrant},
		{method: "DELETE", path: "/v1/grants/:id", class: adminOnly, handle: s.deleteGrant},
		{method: "GET", path: "/v1/devices", class: member, handle: list(s, s.devices)},
		{method: "GET", path: "/v1/audit", class: adminOnly, handle: s.auditEntries},
		{method: "GET", path: "/v1/audit/verify", class: adminOnly, handle: s.auditVerify},

		{method: "GET", path: "/v1/databases", class: member, handle: list(s, s.databases)},
		{method: "GET", path: "/v1/schema/tables", class: member, handle: list(s, s.schemaTables)},
		{method: "POST", path: "/v1/query/execute", class: member, handle: s.execute},
		{method: "GET", path: "/v1/queries", class: member, handle: list(s, s.listQueries)},
		{method: "DELETE", path: "/v1/queries/:id", class: member, handle: s.cancelQuery},
		{method: "POST", path: "/v1/database/ask", class: member, handle: s.ask},
		{method: "GET", path: "/v1/learning/questions", class: member, handle: s.learningQuestions},
		{method: "GET", path: "/v1/learning/questions/:id", class: member, handle: s.learningQuestion},
		{method: "POST", path: "/v1/learning/questions/:id/mark", class: member, handle: s.learningMark},
		{method: "GET", path: "/v1/learning/verified", class: member, handle: s.learningVerified},
		{method: "POST", path: "/v1/learning/verified", class: member, handle: s.learningVerify},
		{method: "GET", path: "/v1/learning/verified/:id", class: member, handle: s.learningVerifiedOne},
		{method: "DELETE", path: "/v1/learning/verified/:id", class: member, handle: s.learningWithdraw},
		{method: "GET", path: "/v1/learning/export", class: member, handle: s.learningExport},
		{method: "POST", path: "/v1/learning/import", class: member, handle: s.learningImport},
		{method: "POST", path: "/v1/lake/copy", class: member, handle: s.lakeCopy},
		{method: "GET", path: "/v1/lake/copy/requests", class: member, handle: s.listCopyRequests},
		{method: "GET", path: "/v1/lake/copy/requests/:id", class: member, handle: s.getCopyRequest},
		{method: "DELETE", path: "/v1/lake/copy/requests/:id", class: member, handle: s.withdrawCopyRequest},
		{method: "POST", path: "/v1/lake/copy/requests/:id/approve", class: member, handle: s.approveCopyRequest},
		{method: "POST", path: "/v1/lake/copy/requests/:id/deny", class: member, handle: s.denyCopyRequest},
		{method: "GET", path: "/v1/lake/runs", class: member, handle: list(s, s.lakeRuns)},
		{method: "GET", path: "/v1/lake/connections", class: member, handle: list(s, s.lakeConnections)},
		{method: "GET", path: "/v1/lake/external-tables", class: member, handle: list(s, s.externalTables)},
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/api/version", "/api/tags"} {
		for _, rt := range rs {
			if rt.path == path && rt.method == http.MethodGet {
				rt.method = http.MethodHead // net/http drops the body
				rs = append(rs, rt)
				break
			}
		}
	}
	rs = append(rs, s.collectionRoutes()...)
	return append(rs, s.absentRoutes()...)
}

func (s *server) noRoute(c *gin.Context) {
	s.fail(c, fault.New(fault.NotFound, "gateway.route", "there is no route %s %s", c.Request.Method, printable(c.Request.URL.Path, 200)))
}

// noMethod answers 405 itself: no fault code means it, as no room but this one can know it.
func (s *server) noMethod(c *gin.Context) {
	err := fault.New(fault.Invalid, "gateway.route", "%s does not take the method %s", printable(c.Request.URL.Path, 200), printable(c.Request.Method, 20))
	s.failStatus(c, http.StatusMethodNotAllowed, err)
}

// printable cuts a text of the caller's for use in a message of ours.
func printable(text string, most int) string {
	runes := []rune(text)
	for i, r := range runes {
		if i == most {
			return string(runes[:i]) + "…"
		}
		if r < ' ' || r == 0x7f {
			runes[i] = '?'
		}
	}
	return string(runes)
}
