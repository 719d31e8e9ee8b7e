package gateway

import (
	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// absentRoutes are routes that Ollama or API.md name and this version does not have. They say so in their own
// dialect, to those who would be allowed to call them.
func (s *server) absentRoutes() []route {
	groups := []struct {
		class class
		what  string // completes "… not part of this version"
		hint  string
		paths []string // "METHOD /path"
	}{
		{inference, "making and editing images is", "", []string{"POST /v1/images/generations", "POST /v1/images/edits"}},
		{inference, "transcribing audio is", "", []string{"POST /v1/audio/transcriptions"}},
		{manage, "model aliases are", "use /api/copy", []string{
			"GET /api/experimental/aliases", "POST /api/experimental/aliases", "DELETE /api/experimental/aliases"}},
		{inference, "Ollama's cloud account is", "", []string{
			"POST /api/me", "POST /api/signout", "DELETE /api/user/keys/:key",
			"POST /api/experimental/web_search", "POST /api/experimental/web_fetch"}},
		{member, "COPY as a job is", "POST /v1/lake/copy waits for the result", []string{
			"GET /v1/lake/copy/jobs", "GET /v1/lake/copy/jobs/:id", "POST /v1/lake/copy/jobs/:id/cancel"}},
		{member, "the detail of a run is", "GET /v1/lake/runs lists them", []string{"GET /v1/lake/runs/:id", "GET /v1/lake/runs/:id/files"}},
		{member, "the list of nodes is", "GET /v1/devices lists this machine's devices", []string{"GET /v1/nodes"}},
		{member, "MCP is", "", []string{"GET /v1/mcp", "POST /v1/mcp", "DELETE /v1/mcp"}},
		{public, "the console is", "", []string{"GET /console", "GET /console/*path"}},
	}
	var rs []route
	for _, g := range groups {
		handle := func(c *gin.Context) {
			s.fail(c, &fault.Error{Code: fault.Unimplemented, Op: "gateway.absent", Msg: g.what + " not part of this version of Sluice", Hint: g.hint})
		}
		for _, p := range g.paths {
			method, path := cutMethod(p)
			rs = append(rs, route{method: method, path: path, class: g.class, handle: handle})
		}
	}
	return rs
}
