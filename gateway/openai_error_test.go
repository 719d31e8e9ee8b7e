package gateway

import (
	"testing"

	"sluice/fault"
)

func TestEveryCodeHasAnOpenAIType(t *testing.T) {
	contract := map[fault.Code][2]any{
		fault.Invalid: {"invalid_request_error", nil}, fault.NotFound: {"invalid_request_error", nil}, fault.TooLarge: {"invalid_request_error", "request_too_large"},
		fault.Unauthenticated: {"invalid_request_error", "invalid_api_key"}, fault.Denied: {"permission_error", "insufficient_permissions"},
		fault.Busy: {"server_error", "overloaded"}, fault.Internal: {"server_error", nil}, fault.Unimplemented: {"invalid_request_error", "unsupported"},
		fault.Canceled: {"api_error", nil}, fault.Conflict: {"api_error", nil}, fault.Refused: {"api_error", nil},
	}
	for _, code := range fault.Codes() {
		want, ok := contract[code]
		if !ok {
			t.Errorf("%s has no line in the contract", code)
		}
		b, err := marshal(openaiError(&fault.Error{Code: code, Msg: "m", Hint: "h"}))
		if err != nil {
			t.Fatal(err)
		}
		e := object(t, b)["error"].(map[string]any)
		_, there := e["param"]
		if e["type"] != want[0] || e["code"] != want[1] || e["message"] != "m (h)" || !there {
			t.Errorf("%s: %v, want %v", code, e, want)
		}
	}
}
