package sqlguard

import (
	"strconv"
	"testing"
)

// TestColumnsAreBounded: a star keeps some names of very many, and then any name may be there.
func TestColumnsAreBounded(t *testing.T) {
	var wide columns
	for i := range maxColumns - 1 {
		wide.names = append(wide.names, "c"+strconv.Itoa(i))
	}
	star := []any{node{"class": "STAR", "type": "STAR"}}
	one := &scope{sources: []*source{{name: "a", cols: wide}}}
	if out := one.output(star); len(out.names) != maxColumns-1 || out.open {
		t.Errorf("%d names, open %v", len(out.names), out.open)
	}
	two := &scope{sources: []*source{{name: "a", cols: wide}, {name: "b", cols: wide}}}
	for name, list := range map[string][]any{"one star": star, "two stars": {star[0], star[0]}} {
		if out := two.output(list); len(out.names) != maxColumns || !out.open {
			t.Errorf("%s: %d names, open %v", name, len(out.names), out.open)
		}
	}
}
