package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/fault"
)

// Question is one line of questions.jsonl, or of unanswerable.jsonl.
type Question struct {
	ID       string   `json:"id"`
	DB       string   `json:"db"`
	Question string   `json:"question"`
	Evidence string   `json:"evidence"`
	Gold     []string `json:"gold"` // none: there is no answer, and the right one is to say so
	Tags     []string `json:"tags"`
	// OrderKey gives, for each gold, the index of the column that the question sorts by; null when it is not among them.
	OrderKey []*int `json:"order_key"`
	Kind     string `json:"kind"` // of one that has no answer: write, missing_column, …
}

// Unanswerable is the tag of the questions of unanswerable.jsonl.
const Unanswerable = "unanswerable"

func (q Question) tagged(tag string) bool { return slices.Contains(q.Tags, tag) }

func (q Question) answerable() bool { return len(q.Gold) > 0 }

// Load reads the questions of a set that have all the tags, in the order of the file: questions about one database
// stand together, so its schema is read by the engine once. No question at all is Invalid.
func Load(dir string, tags []string) ([]Question, error) {
	questions, err := load(filepath.Join(dir, "questions.jsonl"), true)
	if err != nil {
		return nil, err
	}
	return chosen(questions, dir, tags)
}

// LoadAll reads those of unanswerable.jsonl too, where the set has it. They have two tags: unanswerable and their kind.
func LoadAll(dir string, tags []string) ([]Question, error) {
	questions, err := load(filepath.Join(dir, "questions.jsonl"), true)
	if err != nil {
		return nil, err
	}
	more, err := load(filepath.Join(dir, "unanswerable.jsonl"), false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for i := range more {
		more[i].Tags = []string{Unanswerable, more[i].Kind}
	}
	return chosen(append(questions, more...), dir, tags)
}

func chosen(questions []Question, dir string, tags []string) ([]Question, error) {
	questions = slices.DeleteFunc(questions, func(q Question) bool {
		return slices.ContainsFunc(tags, func(tag string) bool { return !q.tagged(tag) })
	})
	if len(questions) == 0 {
		return nil, fault.New(fault.Invalid, "eval.Load", "%s has no question with tags %s", dir, strings.Join(tags, ", "))
	}
	return questions, nil
}

func load(path string, answerable bool) ([]Question, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "eval.Load", "cannot read %s", path)
	}
	var questions []Question
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var q Question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "eval.Load", "%s line %d is not a question", path, n)
		}
		switch {
		case q.ID == "" || q.answerable() != answerable || !plainName(q.DB):
			return nil, fault.New(fault.Invalid, "eval.Load", "%s line %d lacks an id, a gold query or the name of a database folder", path, n)
		case seen[q.ID]:
			return nil, fault.New(fault.Invalid, "eval.Load", "%s line %d has the id %s of an earlier line", path, n, q.ID)
		}
		seen[q.ID] = true
		questions = append(questions, q)
	}
	if err := lines.Err(); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "eval.Load", "cannot read %s", path)
	}
	return questions, nil
}

// plainName keeps a question file from naming a folder outside its set.
func plainName(name string) bool {
	return name != "" && filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}

// Sample is a part of the questions: N of them, drawn with a seed. The zero value is all.
type Sample struct {
	Seed uint64
	N    int
}

// of draws the sample and keeps the order.
func (s Sample) of(questions []Question) []Question {
	if s.N <= 0 || s.N >= len(questions) {
		return questions
	}
	picks := rand.New(rand.NewPCG(s.Seed, 0)).Perm(len(questions))[:s.N]
	slices.Sort(picks)
	out := make([]Question, len(picks))
	for i, at := range picks {
		out[i] = questions[at]
	}
	return out
}
