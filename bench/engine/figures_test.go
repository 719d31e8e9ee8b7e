package main

import (
	"path/filepath"
	"testing"

	"sluice/bench/beside"
)

// TestEveryFigureIsMeasured holds the table and the scenes to each other.
func TestEveryFigureIsMeasured(t *testing.T) {
	figures, err := beside.ReadFigures(filepath.Join("..", "figures.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenes {
		if _, ok := figures[s.Name]; !ok {
			t.Errorf("%s has no bound", s.Name)
		}
	}
	for _, name := range beside.Unmeasured(figures, scenes, "engine.", "gateway.") {
		t.Errorf("%s is in the table, but not measured", name)
	}
}
