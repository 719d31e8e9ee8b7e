package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// scene measures one figure.
type scene struct {
	name string
	run  func(context.Context, *bench) (float64, error)
}

// scenes in an order that starts servers anew as seldom as possible.
var scenes = []scene{
	{"engine.single_vs_ollama", single},
	{"engine.four_vs_ollama_default", many(4, 4, 1)},
	{"engine.four_vs_ollama_parallel4", many(4, 4, 4)},
	{"engine.gap_vs_ollama", gap},
	{"engine.nbest4", nbest},
	{"engine.prefix_ttft", prefix},
	{"engine.lookup_repair", lookup(repairs, "expect")},
	{"engine.lookup_elsewhere", lookup(elsewhere, "auto")},
	{"engine.grammar_ms", grammar},
	{"engine.eight_vs_ollama_parallel8", many(8, 8, 8)},
	{"engine.two_models_in_turn", twoModels},
	{"gateway.streams", streams},
}

type bench struct {
	dir     string // of everything that the servers write
	sluice  string
	ollama  string
	fake    string
	models  string
	pairs   int
	servers []*server
}

func main() {
	var b bench
	var only, table string
	flag.StringVar(&b.sluice, "sluice", "bin/sluice", "our server; sluice-runner is beside it")
	flag.StringVar(&b.ollama, "ollama", "", "the peer's program")
	flag.StringVar(&b.fake, "fakerunner", "", "internal/fakerunner, built")
	flag.StringVar(&b.models, "models", "", "folder of the GGUF files")
	flag.StringVar(&table, "figures", "bench/figures.tsv", "names and bounds")
	flag.StringVar(&only, "only", "", "figures to measure, separated by commas")
	flag.IntVar(&b.pairs, "pairs", 5, "times that each side is measured")
	flag.Parse()
	os.Exit(b.main(only, table))
}

func (b *bench) main(only, table string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	figures, err := readFigures(table)
	if err != nil {
		return fail(err)
	}
	if b.dir, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return fail(err)
	}
	defer os.RemoveAll(b.dir)
	defer b.keep()
	if b.sluice, err = filepath.Abs(b.sluice); err != nil {
		return fail(err)
	}
	status := 0
	known := map[string]bool{}
	for _, s := range scenes {
		known[s.name] = true
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			continue
		}
		f, ok := figures[s.name]
		if !ok {
			return fail(fmt.Errorf("%s has no bound in %s", s.name, table))
		}
		fmt.Printf("\n%s  %s  %s\n", s.name, f.bound(), f.what)
		value, err := s.run(ctx, b)
		if ctx.Err() != nil {
			return fail(ctx.Err())
		}
		if err != nil {
			fmt.Printf("  MISSING: %v\n", err)
			status = 1
			continue
		}
		fmt.Printf("figure %s %.3g\n", s.name, value)
		if !f.holds(value) {
			fmt.Printf("  SHORT of %s\n", f.bound())
			status = 1
		}
	}
	for name := range figures {
		if !known[name] && only == "" {
			fmt.Printf("  MISSING: %s is not measured\n", name)
			status = 1
		}
	}
	return status
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}
