package engine_test

import (
	"testing"

	"sluice/internal/runnertest"
)

// TestCachedTokensAreToldToTheirOwner on both engines: the cache serves everybody, and tells nobody what another sent.
func TestCachedTokensAreToldToTheirOwner(t *testing.T) {
	for _, name := range []string{"llama", "olmo3"} {
		t.Run(name, func(t *testing.T) {
			p, _ := loadTiny(t, name, nil)
			cached := func(owner, prompt string) (cached, all int) {
				req := runnertest.Request(prompt, 2)
				req.Owner = owner
				_, last := runnertest.Answer(t, p, req)
				return last.Usage.CachedTokens, last.Usage.PromptTokens
			}
			const secret = "Hello world, the answer to one and two is three of the table"
			cached("a", secret)
			if n, _ := cached("b", secret); n != 0 {
				t.Errorf("b was told of %d tokens that a had sent", n)
			}
			for _, owner := range []string{"b", "a"} {
				if n, all := cached(owner, secret); owner == "b" && n != all-1 {
					t.Errorf("%s was told of %d of its own %d tokens", owner, n, all)
				}
			}
			if n, _ := cached("", secret); n != 0 {
				t.Errorf("nobody was told of %d tokens", n)
			}
		})
	}
}
