package beside

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

// Scene measures one figure.
type Scene struct {
	Name string
	Run  func(context.Context, *Bench) (float64, error)
}

// Bench is one run: its servers, and how often each side is measured.
type Bench struct {
	Dir     string            // of everything that the servers write
	Sluice  string            // our server; sluice-runner is beside it
	Ollama  string            // the peer's program
	Fake    string            // internal/fakerunner, built
	Models  string            // folder of the GGUF files
	Files   map[string]string // the files there, by the names that they get on the servers
	Pairs   int               // times that each side is measured
	Servers []*Server
}

// Main measures the scenes that the flag -only names, all without it, and ends the process: with status 1 when a figure is missing or
// short. Each figure of the table whose name begins with one of the prefixes must have a scene.
func Main(files map[string]string, scenes []Scene, prefixes ...string) {
	b := Bench{Files: files}
	var only, table string
	flag.StringVar(&b.Sluice, "sluice", "bin/sluice", "our server; sluice-runner is beside it")
	flag.StringVar(&b.Ollama, "ollama", "", "the peer's program")
	flag.StringVar(&b.Fake, "fakerunner", "", "internal/fakerunner, built")
	flag.StringVar(&b.Models, "models", "", "folder of the GGUF files")
	flag.StringVar(&table, "figures", "bench/figures.tsv", "names and bounds")
	flag.StringVar(&only, "only", "", "figures to measure, separated by commas")
	flag.IntVar(&b.Pairs, "pairs", 5, "times that each side is measured")
	flag.Parse()
	os.Exit(b.run(scenes, prefixes, only, table))
}

func (b *Bench) run(scenes []Scene, prefixes []string, only, table string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	figures, err := ReadFigures(table)
	if err != nil {
		return fail(err)
	}
	if b.Dir, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return fail(err)
	}
	defer os.RemoveAll(b.Dir)
	defer b.EndAll()
	if b.Sluice, err = filepath.Abs(b.Sluice); err != nil {
		return fail(err)
	}
	status := 0
	for _, s := range scenes {
		if only != "" && !strings.Contains(","+only+",", ","+s.Name+",") {
			continue
		}
		f, ok := figures[s.Name]
		if !ok {
			return fail(fmt.Errorf("%s has no bound in %s", s.Name, table))
		}
		fmt.Printf("\n%s  %s  %s\n", s.Name, f.bound(), f.what)
		value, err := s.Run(ctx, b)
		if ctx.Err() != nil {
			return fail(ctx.Err())
		}
		if err != nil {
			fmt.Printf("  MISSING: %v\n", err)
			status = 1
			continue
		}
		fmt.Printf("figure %s %.3g\n", s.Name, value)
		if !f.holds(value) {
			fmt.Printf("  SHORT of %s\n", f.bound())
			status = 1
		}
	}
	for _, name := range Unmeasured(figures, scenes, prefixes...) {
		if only == "" {
			fmt.Printf("  MISSING: %s is not measured\n", name)
			status = 1
		}
	}
	return status
}

// Unmeasured lists the figures with these prefixes that no scene measures.
func Unmeasured(figures map[string]Figure, scenes []Scene, prefixes ...string) (missing []string) {
	measured := map[string]bool{}
	for _, s := range scenes {
		measured[s.Name] = true
	}
	for name := range figures {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) && !measured[name] {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}
