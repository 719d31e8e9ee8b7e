package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sluice/fault"
)

func TestKeepAlive(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`300`: 300 * time.Second, `0`: 0, `0.0`: 0, `1.5`: 1500 * time.Millisecond, `-1`: -1, `-1.0`: -1, `-0.5`: -1, `1e300`: -1, `-1e300`: -1,
		`"10m"`: 10 * time.Minute, `"0"`: 0, `"-1m"`: -1, `"-1"`: -1, `"300"`: 300 * time.Second, `" 300 "`: 300 * time.Second, `"1h30m"`: 90 * time.Minute,
	} {
		var k keepAlive
		if err := json.Unmarshal([]byte(text), &k); err != nil || k.Duration != want {
			t.Errorf("%s: %s, %v; want %s", text, k.Duration, err, want)
		}
	}
	for _, text := range []string{`true`, `false`, `"soon"`, `""`, `[]`, `{}`, `"NaN"`, `"inf"`} {
		var k keepAlive
		if err := json.Unmarshal([]byte(text), &k); err == nil || !strings.Contains(err.Error(), "keep_alive: invalid duration: ") {
			t.Errorf("%s is %s, %v", text, k.Duration, err)
		}
	}
	var f inferenceFields
	if err := json.Unmarshal([]byte(`{"keep_alive":null,"options":null,"think":null,"format":null,"stream":null,"truncate":null}`), &f); err != nil {
		t.Fatal(err)
	}
	if f.KeepAlive.duration() != nil || f.KeepAlive.unloads() || !f.streams() || !f.truncates() || !f.shifts() {
		t.Errorf("null is not unset: %+v", f)
	}
}

func TestFormat(t *testing.T) {
	for text, want := range map[string]string{``: "", `null`: "", `""`: "", `"json"`: "null", ` {"type":"object"} `: `{"type":"object"}`} {
		if got, err := schemaOf(json.RawMessage(text)); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{`"yaml"`, `1`, `true`, `[]`, `"{}"`} {
		if got, err := schemaOf(json.RawMessage(text)); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
