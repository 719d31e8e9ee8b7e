package models

import (
	"strings"
	"testing"
)

// `ollama list` cuts a digest to twelve letters without looking how many there are.
func TestRemoteModelsHaveADigest(t *testing.T) {
	own := strings.Repeat("0a", 32)
	seen := map[string]string{}
	for name, told := range map[string]string{"none": "", "short": "abc", "no hex": strings.Repeat("x", 64), "its own": own} {
		m, err := Remote("m", Told{Digest: told})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Digest) != 64 || strings.Trim(m.Digest, "0123456789abcdef") != "" || (told == own) != (m.Digest == own) {
			t.Errorf("%s: %q", name, m.Digest)
		}
		if other := seen[m.Digest]; other != "" {
			t.Errorf("%s and %s have the same", name, other)
		}
		seen[m.Digest] = name
	}
}
