package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice/bench/beside"
)

// ggufs are the models of the figures, by their sizes.
func ggufs() map[string]string {
	return map[string]string{"small": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "mid": "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"}
}

func main() {
	m := &measure{done: map[string]*result{}, sizes: []string{"small", "mid"}}
	files := ggufs()
	flag.Func("set", "folder of the question set", m.takeSet)
	flag.Func("sizes", "models to ask: small, mid or both (default small,mid)", func(list string) error { return m.takeSizes(list, files) })
	flag.Func("tags", "only questions with these tags, separated by commas: a quick look", m.takeTags)
	flag.StringVar(&m.keep, "keep", "", "folder for the lines of each run, which a later start goes on with")
	flag.StringVar(&m.postgres, "postgres", "", "URL of a PostgreSQL server to build the databases on; none: DuckDB files")
	flag.IntVar(&m.cold, "cold", 20, "questions for agent.latency")
	beside.Main(files, m.scenes(), "agent.")
}

func (m *measure) scenes() []beside.Scene {
	return []beside.Scene{
		{Name: "agent.ex_small", Run: m.accuracy("small")},
		{Name: "agent.ex_mid", Run: m.accuracy("mid")},
		{Name: "agent.gain_small", Run: m.gain("small")},
		{Name: "agent.gain_mid", Run: m.gain("mid")},
		{Name: "agent.declined_right", Run: m.declinedRight},
		{Name: "agent.declined_wrong", Run: m.declinedWrong},
		{Name: "agent.leaks", Run: m.leaks},
		{Name: "agent.latency", Run: m.latency},
		{Name: "agent.prefix", Run: m.prefix},
	}
}

func (m *measure) takeSet(dir string) error {
	if dir == "" {
		return errors.New("SET is the folder of the question set (the form is in testdata/nl2sql/README.md): make bench-agent SET=…")
	}
	if _, err := os.Stat(filepath.Join(dir, "questions.jsonl")); err != nil {
		return fmt.Errorf("there is no question set in SET=%s: %w", dir, err)
	}
	m.set = dir
	return nil
}

// takeSizes takes the models that are asked, and out of files those that are not.
func (m *measure) takeSizes(list string, files map[string]string) error {
	m.sizes = strings.Split(list, ",")
	known, asked := ggufs(), map[string]bool{}
	for _, size := range m.sizes {
		if known[size] == "" {
			return fmt.Errorf("SIZES=%s: the sizes are small and mid", list)
		}
		asked[size] = true
	}
	for size := range known {
		if !asked[size] {
			delete(files, size)
		}
	}
	return nil
}

func (m *measure) takeTags(list string) error {
	if list != "" {
		m.tags = strings.Split(list, ",")
		fmt.Printf("only questions with %s: these are no figures of the whole set\n", list)
	}
	return nil
}
