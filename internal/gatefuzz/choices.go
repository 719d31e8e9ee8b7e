package gatefuzz

import "math/rand/v2"

// Choices turns bytes into decisions, one each. When they are used up every decision is the first, which a grammar keeps
// for what ends.
type Choices struct{ bytes []byte }

// NewChoices takes the bytes of a fuzzer.
func NewChoices(b []byte) *Choices { return &Choices{bytes: b} }

// RandomChoices makes up to n bytes, and at least 16.
func RandomChoices(rnd *rand.Rand, n int) *Choices {
	b := make([]byte, 16+rnd.IntN(n))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return NewChoices(b)
}

// Pick decides between n.
func (c *Choices) Pick(n int) int {
	if len(c.bytes) == 0 {
		return 0
	}
	p := int(c.bytes[0]) % n
	c.bytes = c.bytes[1:]
	return p
}

// One decides between texts.
func (c *Choices) One(of ...string) string { return of[c.Pick(len(of))] }

// Seldom is true once in n.
func (c *Choices) Seldom(n int) bool { return c.Pick(n) == n-1 }

// Left says how many decisions are left.
func (c *Choices) Left() int { return len(c.bytes) }
