package gateway

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/access"
)

func TestPrefixes(t *testing.T) {
	msgs := func(texts ...string) (out []api.Message) {
		for i, text := range texts {
			out = append(out, api.Message{Role: []string{"user", "assistant"}[i%2], Content: text})
		}
		return out
	}
	c, other := ginFor(t, "k-1"), ginFor(t, "k-2")
	base := prefixOf(c, "m", msgs("a", "b", "c"), nil)
	if len(base) != 3 {
		t.Fatalf("%d links", len(base))
	}
	longer := prefixOf(c, "m", msgs("a", "b", "c", "d"), nil)
	if !slices.Equal(base, longer[:3]) {
		t.Error("a longer conversation does not begin as the shorter one")
	}
	many := prefixOf(c, "m", msgs(strings.Split(strings.Repeat("x ", 500), " ")...), nil)
	if len(many) != prefixLinks {
		t.Errorf("%d links of 500 messages", len(many))
	}
	different := map[string][]uint64{
		"another text":      prefixOf(c, "m", msgs("x", "b", "c"), nil),
		"cut elsewhere":     prefixOf(c, "m", msgs("ab", "", "c"), nil),
		"another model":     prefixOf(c, "n", msgs("a", "b", "c"), nil),
		"with tools":        prefixOf(c, "m", msgs("a", "b", "c"), []api.Tool{{Function: api.ToolFunction{Name: "f"}}}),
		"another caller's":  prefixOf(other, "m", msgs("a", "b", "c"), nil),
		"an image":          prefixOf(c, "m", []api.Message{{Role: "user", Content: "a", Images: []api.ImageData{[]byte("i")}}}, nil),
		"a text, no dialog": prefixOfText(c, "m", "", "a", nil),
	}
	for name, got := range different {
		if slices.ContainsFunc(got, func(h uint64) bool { return slices.Contains(base, h) }) {
			t.Errorf("%s has a link in common", name)
		}
	}
	text := strings.Repeat("0123456789", 400)
	if one, two := prefixOfText(c, "m", "", text, nil), prefixOfText(c, "m", "", text+"more", nil); len(one) != 3 || !slices.Equal(one, two[:3]) {
		t.Errorf("texts that begin alike: %v %v", one, two)
	}
}

// ginFor is a context of a request by a key.
func ginFor(t *testing.T, keyID string) *gin.Context {
	t.Helper()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Set(principalKey, access.Principal{KeyID: keyID, Owner: "o"})
	return c
}
