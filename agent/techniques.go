package agent

import (
	"fmt"
	"slices"
	"strings"
)

// Techniques says which steps beyond the plain prompt are left out: true leaves one out. The zero value has them all. An
// evaluation switches them off one by one, to see what each is worth (docs/NL2SQL.md).
type Techniques struct {
	Focus      bool // the tables and joins that the question is about, at the end of the prompt
	Values     bool // stored values that the question names, and stored spellings of what a statement compares with
	Hints      bool // what wordings of the question mean in SQL
	Grammar    bool // the model can write only what the grammar of the granted schema allows
	Candidates bool // several statements for one question
	Mend       bool // mending of a statement by what the gate says, without the model
	Repair     bool // asking the model again, with the error
	Doubt      bool // looking for what speaks against a statement that ran, and preferring those without
	Vote       bool // of several results, the one that most candidates gave
	Decline    bool // saying that a question cannot be answered, for other reasons than the gate's
}

func (t *Techniques) all() map[string]*bool {
	return map[string]*bool{"focus": &t.Focus, "values": &t.Values, "hints": &t.Hints, "grammar": &t.Grammar, "candidates": &t.Candidates,
		"mend": &t.Mend, "repair": &t.Repair, "doubt": &t.Doubt, "vote": &t.Vote, "decline": &t.Decline}
}

// Without leaves out the techniques of these names, in any case. An unknown name is an error that lists them.
func Without(names ...string) (Techniques, error) {
	var t Techniques
	all := t.all()
	for _, name := range names {
		out, ok := all[strings.ToLower(name)]
		if !ok {
			var known []string
			for k := range all {
				known = append(known, k)
			}
			slices.Sort(known)
			return Techniques{}, fmt.Errorf("there is no technique %q: they are %s", name, strings.Join(known, ", "))
		}
		*out = true
	}
	return t, nil
}
