package gateway

import (
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"sluice/lakecopy"
)

// Bodies whose types the handlers keep to themselves, or write as maps. A test compares those that are read with the
// handlers' own, field by field, and another the answers with these.
type (
	ollamaErrorBody struct {
		Error string `json:"error"`
	}
	openaiErrorBody struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    *string `json:"code"`
		} `json:"error"`
	}
	anthropicErrorBody struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		RequestID string `json:"request_id"`
	}

	loginBody struct {
		User     string `json:"user"`
		Password string `json:"password"`
	}
	newUserBody struct {
		Name     string `json:"name"`
		Role     string `json:"role"`
		Password string `json:"password"`
		Disabled bool   `json:"disabled"`
	}
	userChangeBody struct {
		Role     *string `json:"role"`
		Disabled *bool   `json:"disabled"`
		Password *string `json:"password"`
		Current  string  `json:"current_password"`
	}
	keyChangeBody struct {
		Name      *string  `json:"name"`
		Role      *string  `json:"role"`
		Databases []string `json:"databases"` // null: not narrowed
		Tables    []string `json:"tables"`
		Models    []string `json:"models"`
		ExpiresIn *Life    `json:"expires_in"` // null: no end
	}
	lakeCopyBody struct {
		Database string `json:"database"`
		SQL      string `json:"sql"`
		Wait     *bool  `json:"wait"`
	}
	approveBody struct {
		Wait   *bool  `json:"wait"`
		SHA256 string `json:"sha256"` // of the request that the approver looked at
	}
	denyBody struct {
		Reason string `json:"reason"`
	}
	showBody struct {
		nameField
		System  string `json:"system"`
		Verbose bool   `json:"verbose"`
	}
	tokenizeBody struct {
		nameField
		Text      *string        `json:"text"`
		Content   *string        `json:"content"`
		Prompt    *string        `json:"prompt"`
		Special   bool           `json:"special"`
		Options   map[string]any `json:"options"`
		KeepAlive *keepAlive     `json:"keep_alive"`
	}
	detokenizeBody struct {
		nameField
		Tokens    []int          `json:"tokens"`
		Options   map[string]any `json:"options"`
		KeepAlive *keepAlive     `json:"keep_alive"`
	}

	createdKeyBody struct {
		ID        string     `json:"id"`
		Key       string     `json:"key"` // shown this once
		Owner     string     `json:"owner"`
		ExpiresAt *time.Time `json:"expires_at"`
	}
	deletedBody struct {
		Deleted string `json:"deleted"`
	}
	cancelledBody struct {
		Cancelled string `json:"cancelled"`
	}
	endedBody struct {
		Ended string `json:"ended"` // id of the login
	}
	meBody struct {
		Kind            string      `json:"kind"` // key, login
		KeyID           string      `json:"key_id"`
		User            string      `json:"user"`
		Owner           string      `json:"owner"`
		Name            string      `json:"name"`
		Role            string      `json:"role"`
		Agent           bool        `json:"agent"`
		Databases       []string    `json:"databases"` // null does not narrow
		Tables          []string    `json:"tables"`
		Models          []string    `json:"models"`
		Grants          []GrantInfo `json:"grants"`
		AuthenticatedAt *time.Time  `json:"authenticated_at"`
		ExpiresAt       *time.Time  `json:"expires_at"`
		Fresh           bool        `json:"fresh"`
	}

	versionBody struct {
		Version string `json:"version"` // the level of Ollama's API
	}
	healthBody struct {
		Status string `json:"status"`
	}
	readyBody struct {
		Status   string   `json:"status"`
		Warnings []string `json:"warnings,omitempty"`
	}
	cloudBody struct {
		Cloud struct {
			Disabled bool   `json:"disabled"`
			Source   string `json:"source"`
		} `json:"cloud"`
	}
	tagsBody struct {
		Models []listed `json:"models"`
	}
	psBody struct {
		Models []loadedModel `json:"models"`
	}
	embeddingBody struct {
		Embedding []float32 `json:"embedding"`
	}
	tokensBody struct {
		Model  string `json:"model"`
		Tokens []int  `json:"tokens"`
		Count  int    `json:"count"`
	}
	textBody struct {
		Model string `json:"model"`
		Text  string `json:"text"`
	}
	inputTokensBody struct {
		InputTokens int `json:"input_tokens"`
	}
)

// executed is what /v1/query/execute may answer with: rows, what a write changed, or what became of a statement on the lake.
func executed() *jsonschema.Schema {
	var b schemaBook
	named := func(field string) *jsonschema.Schema {
		return objectOf(map[string]*jsonschema.Schema{field: text()}, field)
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{b.inferred(table{}), b.inferred(written{}), b.inferred(lakecopy.Result{}), b.inferred(lakecopy.Plan{}), b.inferred(copyRequested{}), named("created"), named("dropped")}}
}

// copied is what /v1/lake/copy may answer with.
func copied() *jsonschema.Schema {
	var b schemaBook
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{b.inferred(lakecopy.Result{}), b.inferred(lakecopy.Plan{}), b.inferred(copyRequested{})}}
}

// anyObject is a JSON object of a form that is said elsewhere.
func anyObject() *jsonschema.Schema { return &jsonschema.Schema{Type: "object"} }

// example is a request as a newcomer would send it.
func example(body string) any { return json.RawMessage(body) }
