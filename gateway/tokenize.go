package gateway

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// maxTokens bounds a list of tokens in a request: more than any context holds.
const maxTokens = 1 << 20

// tokenize answers POST /api/tokenize: how a model's tokenizer cuts a text. special adds the tokens that it puts around a
// text, such as BOS. Ollama has no such route; clients that know one from other servers call the text content or prompt.
func (s *server) tokenize(c *gin.Context) {
	var req struct {
		nameField
		Text      *string        `json:"text"`
		Content   *string        `json:"content"`
		Prompt    *string        `json:"prompt"`
		Special   bool           `json:"special"`
		Options   map[string]any `json:"options"`
		KeepAlive *keepAlive     `json:"keep_alive"`
	}
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	var text *string
	for _, t := range []*string{req.Text, req.Content, req.Prompt} {
		if text == nil {
			text = t
		}
	}
	if text == nil {
		s.fail(c, fault.New(fault.Invalid, "gateway.tokenize", "text is required"))
		return
	}
	m, err := s.model(c, req.name())
	if err != nil {
		s.fail(c, err)
		return
	}
	lease, _, err := s.lease(c, m, req.Options, req.KeepAlive, nil)
	if err != nil {
		s.fail(c, err)
		return
	}
	defer lease.Release()
	tokens := []int{} // never null
	if *text != "" || req.Special {
		got, err := lease.Runner().Tokenize(c.Request.Context(), *text, req.Special)
		if err != nil {
			s.fail(c, err)
			return
		}
		tokens = append(tokens, got...)
	}
	writeJSON(c, http.StatusOK, gin.H{"model": req.name(), "tokens": tokens, "count": len(tokens)})
}

// detokenize answers POST /api/detokenize: the text of tokens.
func (s *server) detokenize(c *gin.Context) {
	var req struct {
		nameField
		Tokens    []int          `json:"tokens"`
		Options   map[string]any `json:"options"`
		KeepAlive *keepAlive     `json:"keep_alive"`
	}
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	err := checkTokens("tokens", req.Tokens)
	if err == nil && req.Tokens == nil {
		err = fault.New(fault.Invalid, "gateway.detokenize", "tokens is required")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	m, err := s.model(c, req.name())
	if err != nil {
		s.fail(c, err)
		return
	}
	lease, _, err := s.lease(c, m, req.Options, req.KeepAlive, nil)
	if err != nil {
		s.fail(c, err)
		return
	}
	defer lease.Release()
	text := ""
	if len(req.Tokens) > 0 {
		if text, err = lease.Runner().Detokenize(c.Request.Context(), req.Tokens); err != nil {
			s.fail(c, err)
			return
		}
	}
	writeJSON(c, http.StatusOK, gin.H{"model": req.name(), "text": text})
}

// checkTokens refuses what cannot be tokens of any model; field is the request's name for them.
func checkTokens(field string, tokens []int) error {
	if len(tokens) > maxTokens {
		return fault.New(fault.TooLarge, "gateway.tokens", "%d tokens: at most %d go into one request", len(tokens), maxTokens)
	}
	for i, token := range tokens {
		if token < 0 {
			return fault.New(fault.Invalid, "gateway.tokens", "%s holds %d at position %d, which is no token", field, token, i)
		}
	}
	return nil
}
