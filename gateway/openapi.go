package gateway

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/google/jsonschema-go/jsonschema"

	"sluice/fault"
)

// openapi answers GET /v1/openapi.json: every route there is, in OpenAPI 3.1. Nothing of this server's data is in it, so it
// is told before authentication. It is made once, when it is first asked for.
func (s *server) openapi() gin.HandlerFunc {
	made := sync.OnceValues(func() (body []byte, err error) {
		doc, err := s.describe()
		if err == nil {
			body, err = marshal(doc)
		}
		if err != nil {
			return nil, fault.Bug("the OpenAPI description cannot be made: %v", err)
		}
		return body, nil
	})
	return func(c *gin.Context) {
		body, err := made()
		if err != nil {
			s.fail(c, err)
			return
		}
		sum := sha256.Sum256(body)
		tag := fmt.Sprintf(`"%x"`, sum[:12])
		c.Header("ETag", tag)
		c.Header("Cache-Control", "no-cache") // kept, but asked for again each time: another version serves other routes
		if c.Request.Header.Get("If-None-Match") == tag {
			c.Status(http.StatusNotModified)
			return
		}
		c.Data(http.StatusOK, "application/json; charset=utf-8", body)
	}
}

// The parts of an OpenAPI document that are used here.
type (
	openapiDocument struct {
		OpenAPI    string                                  `json:"openapi"`
		Info       openapiInfo                             `json:"info"`
		Tags       []openapiTag                            `json:"tags"`
		Paths      map[string]map[string]*openapiOperation `json:"paths"`
		Components openapiComponents                       `json:"components"`
	}
	openapiInfo struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	}
	openapiTag struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	openapiOperation struct {
		ID          string                      `json:"operationId"`
		Tags        []string                    `json:"tags"`
		Summary     string                      `json:"summary"`
		Description string                      `json:"description,omitempty"`
		Security    []map[string][]string       `json:"security"` // [] nothing is asked for; an empty entry: nothing will do too
		Parameters  []parameter                 `json:"parameters,omitempty"`
		Body        *openapiBody                `json:"requestBody,omitempty"`
		Responses   map[string]*openapiResponse `json:"responses"`
	}
	openapiBody struct {
		Required bool                    `json:"required"`
		Content  map[string]openapiMedia `json:"content"`
	}
	openapiResponse struct {
		Description string                  `json:"description"`
		Headers     map[string]openapiMedia `json:"headers,omitempty"` // of a header only the schema is told
		Content     map[string]openapiMedia `json:"content,omitempty"`
	}
	openapiMedia struct {
		Schema  *jsonschema.Schema `json:"schema,omitempty"`
		Example any                `json:"example,omitempty"`
	}
	openapiComponents struct {
		Schemas         map[string]*jsonschema.Schema `json:"schemas"`
		SecuritySchemes map[string]any                `json:"securitySchemes"`
	}
	parameter struct {
		Name        string             `json:"name"`
		In          string             `json:"in"` // path, query, header
		Description string             `json:"description,omitempty"`
		Required    bool               `json:"required,omitempty"`
		Schema      *jsonschema.Schema `json:"schema"`
	}
)

const openapiDescription = "Models for every Ollama, OpenAI and Anthropic client, questions about databases, and query results into a lake. " +
	"An API key (`slc_…`) or a login's token (`slt_…`) goes into `Authorization: Bearer`. Sluice's own routes answer with " +
	"`{\"data\",\"meta\":{\"request_id\"}}` or `{\"error\":{\"code\",\"message\",…}}`; the others answer in the form of the API that they speak. " +
	"Every answer has its number in the header X-Request-Id."

// describe makes the document: each route of the table of routes, with what the table of operations says of it.
func (s *server) describe() (*openapiDocument, error) {
	doc := &openapiDocument{OpenAPI: "3.1.0", Info: openapiInfo{Title: "Sluice", Version: s.cfg.Version, Description: openapiDescription},
		Tags: openapiTags, Paths: map[string]map[string]*openapiOperation{},
		Components: openapiComponents{SecuritySchemes: map[string]any{
			"bearer": map[string]string{"type": "http", "scheme": "bearer", "description": "an API key, slc_…, or the token of a login, slt_…"},
			"apiKey": map[string]string{"type": "apiKey", "in": "header", "name": "x-api-key", "description": "an API key where Anthropic's SDKs put it"},
		}}}
	b := schemaBook{schemas: map[string]*jsonschema.Schema{}}
	for d, v := range dialectErrors {
		b.add(errorNames[d], v)
	}
	known, absent := operations(), map[string]bool{}
	for _, rt := range s.absentRoutes() {
		absent[rt.method+" "+rt.path] = true
	}
	for _, rt := range s.routes() {
		name := rt.method + " " + rt.path
		op, described := known[name]
		switch {
		case absent[name]:
			op = operation{id: strings.ToLower(rt.method) + wordsOf(rt.path), tag: "absent", absent: true,
				summary: "Not part of this version of Sluice"}
		case !described && rt.method == http.MethodHead:
			op = known["GET "+rt.path]
			op.id += "Head"
		case !described:
			op = operation{id: strings.ToLower(rt.method) + wordsOf(rt.path), tag: "system", summary: "Not described"}
		}
		path := openapiPath(rt.path)
		if doc.Paths[path] == nil {
			doc.Paths[path] = map[string]*openapiOperation{}
		}
		doc.Paths[path][strings.ToLower(rt.method)] = b.operation(rt, op)
	}
	doc.Components.Schemas = b.schemas
	return doc, b.err
}

// openapiPath writes gin's /keys/:id and /models/*model as /keys/{id} and /models/{model}.
func openapiPath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			parts[i] = "{" + name + "}"
		} else if name, ok := strings.CutPrefix(p, "*"); ok {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

// wordsOf makes a part of an id of a path: /v1/lake/copy/jobs/:id → V1LakeCopyJobsId.
func wordsOf(path string) string {
	var b strings.Builder
	for _, p := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/:*_-.", r) }) {
		b.WriteString(strings.ToUpper(p[:1]) + p[1:])
	}
	return b.String()
}

// whoMay says in a sentence what a route's class asks of its caller.
var whoMay = map[class]string{
	public:    "Asks for no credential.",
	inference: "Asks for a credential, or for none while Ollama's routes are open (auth.ollama_routes).",
	manage:    "Asks for an admin's credential, or for none while auth.open_admin holds.",
	member:    "Asks for a credential. What is shown is what the caller may read.",
	person:    "Asks for a login, or for an admin's key that nothing narrows. Who is no admin sees their own.",
	adminOnly: "Asks for an admin's login, or for an admin's key that nothing narrows.",
}

func securityOf(cl class) []map[string][]string {
	keys := []map[string][]string{{"bearer": {}}, {"apiKey": {}}}
	switch cl {
	case public:
		return []map[string][]string{}
	case inference, manage:
		return append([]map[string][]string{{}}, keys...)
	}
	return keys
}

// operation writes one route.
func (b *schemaBook) operation(rt route, op operation) *openapiOperation {
	out := &openapiOperation{ID: op.id, Tags: []string{op.tag}, Summary: op.summary, Security: securityOf(rt.class), Parameters: slices.Clone(op.params),
		Description: strings.TrimSpace(op.detail + " " + whoMay[rt.class]), Responses: map[string]*openapiResponse{}}
	for p := range strings.SplitSeq(openapiPath(rt.path), "/") {
		if strings.HasPrefix(p, "{") {
			out.Parameters = append(out.Parameters, parameter{Name: strings.Trim(p, "{}"), In: "path", Required: true, Schema: pathPart()})
		}
	}
	if op.list {
		out.Parameters = append(out.Parameters, parameter{Name: "limit", In: "query", Description: "at most so many", Schema: between("integer", 1, maxList)})
	}
	if op.in != nil {
		out.Body = &openapiBody{Required: true, Content: map[string]openapiMedia{"application/json": {Schema: b.request(op), Example: op.example}}}
	}
	if op.file {
		out.Body = &openapiBody{Required: true, Content: map[string]openapiMedia{"application/octet-stream": {}}}
	}
	d := dialectOf(rt.path)
	for _, status := range op.succeeds() {
		res := &openapiResponse{Description: http.StatusText(status)}
		if status != http.StatusNotModified && (op.out != nil || len(op.media) > 0) {
			res.Content = map[string]openapiMedia{}
			if op.out != nil {
				res.Content["application/json"] = openapiMedia{Schema: b.answer(d, op)}
			}
			for _, media := range op.media {
				res.Content[media] = openapiMedia{Schema: mediaSchema(media)}
			}
		}
		out.Responses[strconv.Itoa(status)] = res
	}
	for _, status := range op.fails(rt, d) {
		res := &openapiResponse{Description: failures[status], Content: map[string]openapiMedia{"application/json": {Schema: refTo(errorNames[d])}}}
		switch status {
		case http.StatusServiceUnavailable, anthropicOverloaded:
			res.Headers = map[string]openapiMedia{"Retry-After": {Schema: &jsonschema.Schema{Type: "integer", Description: "seconds"}}}
		case http.StatusUnauthorized:
			res.Headers = map[string]openapiMedia{"WWW-Authenticate": {Schema: text()}}
		}
		out.Responses[strconv.Itoa(status)] = res
	}
	if rt.method == http.MethodHead { // no answer to HEAD has a body
		for _, res := range out.Responses {
			res.Content = nil
		}
	}
	return out
}

// mediaSchema is that of an answer which is not JSON; of a stream of events, that of each of them.
func mediaSchema(media string) *jsonschema.Schema {
	switch media {
	case yamlForm: // the JSON answer's data, in YAML; for those who read it as a text, a text
		return &jsonschema.Schema{Types: []string{"object", "string"}}
	case eventStream:
	default:
		return text()
	}
	return &jsonschema.Schema{Type: "object", Description: "one event", Required: []string{"data"}, Properties: map[string]*jsonschema.Schema{
		"event": text(), "data": {Type: "string", Description: "JSON, or the word [DONE] at the end of OpenAI's streams"}}}
}

// answer is the schema of a JSON answer: bare, or in Sluice's envelope.
func (b *schemaBook) answer(d dialect, op operation) *jsonschema.Schema {
	schema := b.response(op.out, op.id)
	if d != sluiceDialect || op.bare {
		return schema
	}
	meta := objectOf(map[string]*jsonschema.Schema{"request_id": {Type: "string"}}, "request_id")
	meta.AdditionalProperties = nil // a route may tell more
	for name, more := range op.meta {
		meta.Properties[name] = more
	}
	return objectOf(map[string]*jsonschema.Schema{"data": schema, "meta": meta}, "data", "meta")
}

// operation is what is said of one route besides its class.
type operation struct {
	id, tag, summary, detail string

	params  []parameter
	list    bool     // takes limit
	in      any      // a value of the type that the body is read into, or a *jsonschema.Schema; nil: there is no body
	need    []string // of its fields, those that must be there
	strict  bool     // unknown fields are refused
	file    bool     // the body is a file
	example any

	out    any      // a value of the type that is written, or a schema; nil: no JSON
	media  []string // that it may be written in besides
	meta   map[string]*jsonschema.Schema
	bare   bool  // not in the envelope
	status []int // of success; none: 200
	also   []int // of failure, besides those that every such route has

	absent bool
}

func (op *operation) succeeds() []int {
	switch {
	case op.absent:
		return nil
	case len(op.status) == 0:
		return []int{http.StatusOK}
	}
	return op.status
}

// clientClosed is nginx's status for a request whose client left; one whose statement somebody else cancelled has it too.
const clientClosed = 499

// failures are the statuses of failed requests.
var failures = map[int]string{
	http.StatusBadRequest:            "the request is malformed: change it",
	http.StatusUnauthorized:          "no credential, or a wrong one",
	http.StatusForbidden:             "the credential does not carry the right; or the Host or Origin header is not allowed",
	http.StatusNotFound:              "no such thing, or none that the caller may see",
	http.StatusConflict:              "the state of the thing forbids it now",
	http.StatusRequestEntityTooLarge: "over a limit: ask for less",
	http.StatusUnprocessableEntity:   "the gate does not let this statement through; the message says why and what would be allowed",
	clientClosed:                     "the statement was cancelled",
	http.StatusInternalServerError:   "a fault of the server; its log has the request id",
	http.StatusNotImplemented:        "not part of this version, or not configured on this server",
	http.StatusServiceUnavailable:    "try again later: the header Retry-After says when",
	anthropicOverloaded:              "try again later: the header Retry-After says when",
}

// fails are the statuses of a route's failures: what its class and its body bring with them, and its own.
func (op *operation) fails(rt route, d dialect) []int {
	all := append([]int{http.StatusForbidden, http.StatusInternalServerError}, op.also...)
	if rt.class != public {
		all = append(all, http.StatusUnauthorized, http.StatusServiceUnavailable) // the control store may be busy
	}
	switch {
	case op.absent:
		all = append(all, http.StatusNotImplemented)
	case op.in != nil:
		all = append(all, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
	}
	if op.list {
		all = append(all, http.StatusBadRequest, http.StatusNotImplemented) // cursor
	}
	if d == anthropicDialect {
		for i, status := range all {
			if status == http.StatusServiceUnavailable {
				all[i] = anthropicOverloaded
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
