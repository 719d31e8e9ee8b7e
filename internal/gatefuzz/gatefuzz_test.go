package gatefuzz

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestMinimiseKeepsWhatFails(t *testing.T) {
	got := Minimise("SELECT a, b, lower('x y'), nextval('s') FROM t JOIN u USING (id) WHERE a > 3 AND b < 4", func(sql string) bool {
		return strings.Contains(sql, "nextval") && strings.Contains(sql, "FROM")
	})
	if got != "nextvalFROM" {
		t.Errorf("left: %q", got)
	}
}

func TestChoicesEnd(t *testing.T) {
	c := NewChoices([]byte{5, 3})
	if a, b, d := c.Pick(4), c.One("a", "b"), c.Seldom(2); a != 1 || b != "b" || d {
		t.Error(a, b, d)
	}
	if c.Left() != 0 || c.Pick(9) != 0 {
		t.Error("what is used up must decide for the first")
	}
}

func TestMutatorIsTheSameForTheSameSeed(t *testing.T) {
	m := NewMutator("SELECT id FROM orders WHERE status = 'paid'", "SELECT count(*) FROM customers", "SELECT '''' || $$x$$::text")
	different := map[string]bool{}
	for seed := range uint64(200) {
		a, b := m.Next(rand.New(rand.NewPCG(seed, 0))), m.Next(rand.New(rand.NewPCG(seed, 0)))
		if a != b {
			t.Fatalf("seed %d gives %q and %q", seed, a, b)
		}
		different[a] = true
	}
	if len(different) < 100 {
		t.Errorf("only %d texts of 200 seeds differ", len(different))
	}
}
