package agent

import (
	"context"
	"strings"

	"sluice/rag"
	"sluice/sqlguard"
)

// know finds out what the asker may be told about the database, and what of it the question is about. ok is false when
// there is nothing that he may read.
func (k *ask) know(ctx context.Context) (ok bool, err error) {
	defer k.during("schema", "reading the schema")()
	look := k.src
	if r, ok := k.src.(recording); ok {
		look = r.Unrecorded()
	}
	if k.known, err = k.agent.cfg.Profiler.Knowledge(ctx, look, k.may); err != nil {
		return false, err
	}
	catalog, err := k.src.Catalog(ctx)
	if err != nil {
		return false, err
	}
	k.taken = takenIn(catalog)
	n := len(k.known.Relations())
	if n == 0 {
		k.decline("there is no table in '" + k.src.Name() + "' that you may read")
		return false, nil
	}
	if err := k.rememberEarlier(ctx); err != nil {
		return false, err
	}
	evidence := k.q.Evidence
	for _, e := range k.earlier {
		evidence += "\n" + e.question
	}
	k.focus = k.known.Focus(k.q.Question, evidence)
	for _, e := range k.earlier { // a follow-up is about what was asked before
		for _, r := range e.relations {
			k.addToFocus(r)
		}
	}
	if k.off().Values {
		k.focus.Links = nil
	}
	said := plural(n, "table")
	if len(k.focus.Tables) > 0 && len(k.focus.Tables) < n && !k.off().Focus {
		said += ", most likely " + k.names(k.focus.Tables)
	}
	k.tell("schema", said)
	return true, nil
}

// recording is a Source that keeps a record of what an ask runs. Looking at tables is no part of an ask: what was seen is
// kept for others, and it goes on when the ask has ended.
type recording interface{ Unrecorded() Source }

func (k *ask) off() Techniques { return k.agent.cfg.Without }

// addToFocus takes a relation in, with its joins to the others.
func (k *ask) addToFocus(r sqlguard.Relation) {
	in := map[sqlguard.Relation]bool{}
	for _, t := range k.focus.Tables {
		in[t] = true
	}
	if in[r] {
		return
	}
	in[r] = true
	k.focus.Tables = append(k.focus.Tables, r)
	k.focus.Joins = k.joinsAmong(in)
}

func (k *ask) joinsAmong(in map[sqlguard.Relation]bool) (out []rag.Join) {
	for _, j := range k.known.Joins() {
		if in[j.From.Relation] && in[j.To.Relation] {
			out = append(out, j)
		}
	}
	return out
}

func (k *ask) names(relations []sqlguard.Relation) string {
	names := make([]string, len(relations))
	for i, r := range relations {
		names[i] = k.known.Name(r)
	}
	return strings.Join(names, ", ")
}

// scope gives the tables and joins that statements of the first round are about: those of the focus, or all.
func (k *ask) scope() ([]sqlguard.Relation, []rag.Join) {
	if k.off().Focus || len(k.focus.Tables) == 0 {
		return k.known.Relations(), k.known.Joins()
	}
	return k.focus.Tables, k.focus.Joins
}
