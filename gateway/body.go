package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// decode reads a body of Ollama's routes. Unknown keys are ignored, as clients send many of their own.
func decode(c *gin.Context, into any) error { return decodeBody(c, into, false) }

// decodeStrict reads a body of Sluice's own routes. An unknown key is an error: a mistyped limit must not be no limit.
func decodeStrict(c *gin.Context, into any) error { return decodeBody(c, into, true) }

func decodeBody(c *gin.Context, into any, strict bool) error {
	const op = "gateway.decode"
	body, err := io.ReadAll(c.Request.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return fault.Wrap(err, fault.TooLarge, op, "the request body is larger than %d bytes", tooLarge.Limit)
	case c.Request.Context().Err() != nil:
		return fault.Wrap(c.Request.Context().Err(), fault.Canceled, op, "the request was cancelled")
	case err != nil:
		return fault.Wrap(err, fault.Invalid, op, "the request body could not be read")
	case len(bytes.TrimSpace(body)) == 0:
		return fault.New(fault.Invalid, op, "missing request body")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(into); err != nil {
		return fault.Wrap(err, fault.Invalid, op, "%s", jsonProblem(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, op, "the request body goes on after its JSON value")
	}
	return nil
}

// jsonProblem says what is wrong with a body, without the names of our Go types.
func jsonProblem(err error) string {
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrongType):
		if wrongType.Field == "" {
			return "the request body must be a JSON object, not a " + wrongType.Value
		}
		return fmt.Sprintf("%q cannot be a %s", withoutEmbedded(wrongType.Field), wrongType.Value)
	case errors.As(err, &syntax):
		return fmt.Sprintf("the request body is not valid JSON: %s at byte %d", syntax.Error(), syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the request body is not valid JSON: it ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// withoutEmbedded leaves out of a field's path the structs of ours that the fields are embedded from: they are not in the
// caller's JSON.
func withoutEmbedded(path string) string {
	parts := slices.DeleteFunc(strings.Split(path, "."), func(p string) bool {
		return p == "inferenceFields" || p == "openaiFields" || p == "nameField"
	})
	return strings.Join(parts, ".")
}

// cutMethod splits "GET /path".
func cutMethod(s string) (method, path string) {
	method, path, _ = strings.Cut(s, " ")
	return method, path
}
