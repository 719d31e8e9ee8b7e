package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"sluice/agent"
	"sluice/fault"
)

// yamlForm is the media type of verified questions in a file.
const yamlForm = "application/yaml"

// VerifiedFile is verified questions in a file, in the form of Snowflake's verified_queries (docs/LEARNING.md). The fields
// before them are of an import alone.
type VerifiedFile struct {
	Database string `json:"database,omitempty" yaml:"database,omitempty"` // of all that name none
	Shared   bool   `json:"shared,omitempty" yaml:"shared,omitempty"`     // for everybody: admins only
	Partial  bool   `json:"partial,omitempty" yaml:"partial,omitempty"`   // what is not refused is imported; else all or nothing
	DryRun   bool   `json:"dry_run,omitempty" yaml:"dry_run,omitempty"`   // nothing is imported

	Queries []VerifiedEntry `json:"verified_queries" yaml:"verified_queries"`
}

// VerifiedEntry is one verified question in a file.
type VerifiedEntry struct {
	Name       string `json:"name,omitempty" yaml:"name,omitempty"`
	Database   string `json:"database,omitempty" yaml:"database,omitempty"`
	Question   string `json:"question" yaml:"question"`
	SQL        string `json:"sql" yaml:"sql"`
	VerifiedBy string `json:"verified_by,omitempty" yaml:"verified_by,omitempty"`
	VerifiedAt Moment `json:"verified_at,omitempty" yaml:"verified_at,omitempty"`
	Note       string `json:"note,omitempty" yaml:"note,omitempty"`
	Onboarding bool   `json:"use_as_onboarding_question,omitempty" yaml:"use_as_onboarding_question,omitempty"` // Snowflake's; not used
}

// Moment is a time in seconds since 1970 UTC, as Snowflake writes it; read, it may be a time such as 2026-01-31T00:00:00Z or a
// day too.
type Moment int64

// UnmarshalJSON reads all three forms.
func (m *Moment) UnmarshalJSON(text []byte) error {
	var seconds int64
	if err := json.Unmarshal(text, &seconds); err == nil {
		*m = Moment(seconds)
		return nil
	}
	var said string
	if err := json.Unmarshal(text, &said); err == nil {
		for _, form := range []string{time.RFC3339, time.DateOnly} {
			if at, err := time.Parse(form, said); err == nil {
				*m = Moment(at.Unix())
				return nil
			}
		}
	}
	return errors.New("verified_at must be seconds since 1970, or a time such as 2026-01-31T00:00:00Z, or a day such as 2026-01-31")
}

// Bounds of a file.
const (
	maxYAML    = 4 << 20 // bytes
	maxEntries = 5000
)

// readVerifiedFile reads JSON or YAML, by the Content-Type or else by the first byte. YAML is read as the JSON that it stands for.
func readVerifiedFile(c *gin.Context, into *VerifiedFile) error {
	const op = "gateway.import"
	media, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	body, err := io.ReadAll(c.Request.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return fault.Wrap(err, fault.TooLarge, op, "the request body is larger than %d bytes", tooLarge.Limit)
	case err != nil:
		return fault.Wrap(err, fault.Invalid, op, "the request body could not be read")
	case len(body) > maxYAML:
		return fault.New(fault.TooLarge, op, "a file of verified questions has %d bytes at most", maxYAML)
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && (strings.Contains(media, "yaml") || trimmed[0] != '{') {
		if body, err = jsonOf(body); err != nil {
			return err
		}
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	if err := decodeStrict(c, into); err != nil {
		return err
	}
	switch {
	case len(into.Queries) == 0:
		return fault.New(fault.Invalid, op, "verified_queries is required: a list of questions, each with its sql")
	case len(into.Queries) > maxEntries:
		return fault.New(fault.TooLarge, op, "a file of verified questions has %d entries at most", maxEntries)
	}
	return nil
}

// jsonOf reads YAML. Anchors and aliases are refused: a few of them make gigabytes of a small file.
func jsonOf(text []byte) ([]byte, error) {
	const op = "gateway.import"
	bad := func(err error) error {
		return fault.Wrap(err, fault.Invalid, op, "the request body is not valid YAML: %s", printable(yaml.FormatError(err, false, false), 300))
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, bad(err)
	}
	v := noAliases{}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			ast.Walk(&v, doc.Body)
		}
	}
	if v.found {
		return nil, fault.New(fault.Invalid, op, "a file of verified questions has no anchors and aliases")
	}
	if len(file.Docs) > 1 {
		return nil, fault.New(fault.Invalid, op, "a file of verified questions is one YAML document")
	}
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, bad(err)
	}
	return out, nil
}

type noAliases struct{ found bool }

func (v *noAliases) Visit(n ast.Node) ast.Visitor {
	switch n.Type() {
	case ast.AnchorType, ast.AliasType, ast.MergeKeyType:
		v.found = true
	}
	return v
}

// learningExport is GET /v1/learning/export: what serves the caller, as a file; with shared=true what serves everybody alone, with
// shared=false what serves only the caller.
func (s *server) learningExport(c *gin.Context) {
	keeps, err := s.learning()
	who, r := principal(c), s.reader(c)
	shared, only := c.GetQuery("shared")
	if err == nil && only && shared != "true" && shared != "false" {
		err = fault.New(fault.Invalid, "gateway.export", "shared must be true or false")
	}
	database := c.Query("database")
	if err == nil && database != "" {
		_, err = s.source(c, database)
	}
	file := VerifiedFile{Database: database, Queries: []VerifiedEntry{}}
	names := map[string]int{}
	f := agent.VerifiedFilter{Owner: who.Owner, Whole: wholly(who), KeyID: who.KeyID, Database: database, Limit: maxList}
	for more := true; err == nil && more; {
		var pairs []agent.Verified
		pairs, err = keeps.Verified(c.Request.Context(), f)
		more = len(pairs) == maxList
		for _, v := range pairs {
			f.Before = agent.Place{At: v.VerifiedAt, ID: v.ID}
			info, ok, failed := r.visible(v)
			if err == nil {
				err = failed
			}
			if err != nil || !ok || info.SQL == "" || only && info.Shared != (shared == "true") {
				continue
			}
			e := VerifiedEntry{Name: entryName(v, names), Question: v.Question, SQL: v.SQL, VerifiedBy: v.VerifiedBy, VerifiedAt: Moment(v.VerifiedAt.Unix()), Note: v.Note}
			if database == "" {
				e.Database = v.Database
			}
			file.Queries = append(file.Queries, e)
		}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	if strings.Contains(c.Request.Header.Get("Accept"), "application/json") {
		reply(c, file)
		return
	}
	text, err := yaml.MarshalWithOptions(file, yaml.UseLiteralStyleIfMultiline(true), yaml.IndentSequence(true))
	if err != nil {
		s.fail(c, fault.Bug("verified questions have no form as YAML: %v", err))
		return
	}
	c.Header("Content-Disposition", `attachment; filename="verified-questions.yaml"`)
	c.Data(http.StatusOK, yamlForm, text)
}

// entryName is the name of an entry: its own, or one made of the question; a second one of that name gets a number.
func entryName(v agent.Verified, had map[string]int) string {
	name := v.Name
	if name == "" {
		words := strings.FieldsFunc(strings.ToLower(v.Question), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
		name = strings.Join(words[:min(len(words), 8)], "_")
	}
	if name == "" {
		name = "question"
	}
	had[name]++
	if n := had[name]; n > 1 {
		name += "_" + strconv.Itoa(n)
	}
	return name
}
