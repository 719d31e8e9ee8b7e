package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/fault"
)

// Question is one line of questions.jsonl.
type Question struct {
	ID       string   `json:"id"`
	DB       string   `json:"db"`
	Question string   `json:"question"`
	Evidence string   `json:"evidence"`
	Gold     []string `json:"gold"`
	Tags     []string `json:"tags"`
	// OrderKey gives, for each gold, the index of the column that the question sorts by; null when it is not among them.
	OrderKey []*int `json:"order_key"`
}

func (q Question) tagged(tag string) bool { return slices.Contains(q.Tags, tag) }

// Load reads the questions of a set that have all the tags, in the order of the file: questions about one database
// stand together, so its schema is read by the engine once. No question at all is Invalid.
func Load(dir string, tags []string) ([]Question, error) {
	path := filepath.Join(dir, "questions.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "eval.Load", "cannot read %s", path)
	}
	var questions []Question
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
		if q.ID == "" || len(q.Gold) == 0 || !plainName(q.DB) {
			return nil, fault.New(fault.Invalid, "eval.Load", "%s line %d lacks an id, a gold query or the name of a database folder", path, n)
		}
		if !slices.ContainsFunc(tags, func(tag string) bool { return !q.tagged(tag) }) {
			questions = append(questions, q)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "eval.Load", "cannot read %s", path)
	}
	if len(questions) == 0 {
		return nil, fault.New(fault.Invalid, "eval.Load", "%s has no question with tags %s", path, strings.Join(tags, ", "))
	}
	return questions, nil
}

// plainName keeps a question file from naming a folder outside its set.
func plainName(name string) bool {
	return name != "" && filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}
