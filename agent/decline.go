package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice/rag"
	"sluice/sqlguard"
)

// An ask is declined for what the gate says (candidates.go), and for what stands here. All of it is general English and
// what is known of the data, and none of it is about a database.

// changing are verbs that wish a change of data when a sentence begins with them.
var changing = []string{"delete", "erase", "truncate", "insert", "update", "alter", "rename", "overwrite"}

// mostly are verbs that do so when an object follows.
var mostly = []string{"remove", "drop", "set", "change", "cancel", "mark", "move", "replace", "increase", "decrease", "raise", "lower", "assign", "reset",
	"clear", "grant", "revoke", "modify", "close", "archive", "merge", "fix", "correct", "restore", "approve", "reassign", "refund"}

// perhaps are verbs that may: how they are meant is left to the model, which then writes without a grammar.
var perhaps = []string{"add", "create", "make", "copy", "register", "put", "enter", "record", "save", "store", "import", "export"}

// objects are words that follow a verb of changing when it is meant so: "delete all …", and not "delete rate by month".
var objects = []string{"all", "every", "each", "the", "a", "an", "any", "my", "our", "this", "that", "these", "those", "from", "into", "table", "tables", "row", "rows",
	"record", "records", "everything", "column", "them", "it", "new", "another"}

// made are things that "add a …" and "create a …" are said of when nothing is to be stored.
var made = []string{"list", "report", "table", "summary", "ranking", "rank", "column", "chart", "overview", "breakdown", "total", "count", "sum", "percentage", "query", "view"}

// courtesy is left out at the beginning of a sentence.
var courtesy = []string{"please", "kindly", "now", "then", "and", "can", "could", "would", "will", "you", "just", "also", "go", "ahead", "to", "i", "want", "like", "need", "d"}

// wish finds a verb of a list that a sentence, or a part of one behind "and", begins with, and the words behind it.
func wish(question string, verbs []string) (verb string, behind []string, ok bool) {
	begins := true
	list := strings.Fields(strings.ToLower(question))
	bare := make([]string, len(list))
	for i, w := range list {
		bare[i] = strings.Trim(w, `.,;:!?"'()`)
	}
	for i, w := range list {
		if begins && slices.Contains(verbs, bare[i]) {
			return bare[i], bare[i+1:], true
		}
		begins = strings.HasSuffix(w, ".") || strings.HasSuffix(w, ";") || strings.HasSuffix(w, "!") || begins && slices.Contains(courtesy, bare[i]) ||
			slices.Contains([]string{"and", "then", "please"}, bare[i])
	}
	return "", nil, false
}

// asksToChange gives the verb of a question that plainly asks to change data.
func (k *ask) asksToChange() string {
	object := func(behind []string) bool {
		return len(behind) > 0 && (slices.Contains(objects, behind[0]) || k.isTable(behind[0]) || digit((behind[0] + " ")[0]))
	}
	if verb, behind, ok := wish(k.q.Question, append(slices.Clone(changing), mostly...)); ok && object(behind) {
		return verb
	}
	verb, behind, ok := wish(k.q.Question, []string{"add", "create", "register", "insert"})
	if ok && len(behind) > 1 && slices.Contains([]string{"a", "an", "new", "another"}, behind[0]) && !slices.Contains(made, behind[1]) &&
		(behind[0] == "new" || behind[1] == "new" || verb != "create") {
		return verb
	}
	return ""
}

// wishes says whether the question may wish a change. Then no grammar keeps the model from writing one, and the gate says
// what it is.
func (k *ask) wishes() bool {
	_, _, ok := wish(k.q.Question, slices.Concat(changing, mostly, perhaps))
	return ok && !k.off().Decline
}

// manyUnknown is how many words of a question must be found nowhere for the model to be told that it may say no. One is
// mostly another word for a column.
const manyUnknown = 2

// doubts says whether the model is told that it may say no: when the question has words that are nowhere in the schema or
// the data, or may wish a change.
func (k *ask) doubts() bool {
	return !k.off().Decline && (len(k.focus.Unknown) >= manyUnknown || k.wishes())
}

// declinedUnasked declines what no statement can answer, before the model is asked.
func (k *ask) declinedUnasked() bool {
	if k.off().Decline {
		return false
	}
	if verb := k.asksToChange(); verb != "" {
		k.decline("it asks to " + verb + " something in the data")
		return true
	}
	if name := k.lacks(); name != "" {
		k.decline("nothing that you may read in '" + k.src.Name() + "' tells a " + name)
		return true
	}
	if first, _, _ := strings.Cut(words(k.q.Question), " "); first == "why" || first == "should" {
		k.decline("rows say what is so, and not why it is so or what should be done")
		return true
	}
	if k.offTopic() {
		k.decline("nothing that you may read in '" + k.src.Name() + "' is about this")
		return true
	}
	return false
}

func (k *ask) isTable(name string) bool {
	return slices.ContainsFunc(k.known.Relations(), func(r sqlguard.Relation) bool { return strings.EqualFold(r.Name, name) })
}

// offTopic says whether no word of the question names anything of the schema: only values at best, beside at least two
// words that are found nowhere.
func (k *ask) offTopic() bool {
	if len(k.earlier) > 0 || !k.unknownForSure() {
		return false
	}
	if len(k.focus.Tables) == 0 {
		return len(k.focus.Unknown) > 0
	}
	if len(k.focus.Unknown) < 2 || k.q.Evidence != "" {
		return false
	}
	rest := k.q.Question
	for _, l := range k.focus.Links {
		rest = strings.ReplaceAll(rest, l.Phrase, " ")
	}
	return len(k.known.Focus(rest, "").Tables) == 0
}

// unknownForSure says whether the words that were found nowhere are nowhere: every table was looked at, and where values may
// not be looked at, no name is among the words.
func (k *ask) unknownForSure() bool {
	hides := k.agent.cfg.HideValues != nil && k.agent.cfg.HideValues(k.src.Name())
	return k.known.Complete() && (!hides || !slices.ContainsFunc(k.focus.Unknown, func(w string) bool { return strings.ToLower(w) != w }))
}

// declinedByModel declines when most of the candidates say that it cannot be answered, and none of the others found
// anything else than they.
func (k *ask) declinedByModel() bool {
	if k.off().Decline {
		return false
	}
	no, all := 0, 0
	reason := ""
	for _, t := range k.tries {
		all += t.Candidate.Votes
		if t.Verdict == Cannot {
			if no += t.Candidate.Votes; reason == "" {
				reason = t.Reason
			}
		}
	}
	if no == 0 || 2*no <= all || k.tries[0].Verdict == Ran && k.against(k.tries[0]) < likely {
		return false
	}
	k.decline(reason)
	return true
}

// cannot gives a reason when the model says that it cannot answer; "" when it says something else. Its own words are not
// passed on: nobody has checked them.
func cannot(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if !strings.HasPrefix(line, "-- CANNOT:") {
		return ""
	}
	return "the tables do not hold what is asked for"
}

// declinedAfter declines when the answer found nothing, or nothing but 0, and that is because the question names what is
// not there: a value that no column has, or a time beyond that of the data.
func (k *ask) declinedAfter() {
	if k.off().Decline || !barren(k.answer.Table) {
		return
	}
	ts, ok := tokens(k.answer.SQL)
	if !ok {
		return
	}
	for _, p := range k.focus.Missing {
		if !p.Complete {
			continue
		}
		if column, ok := k.filters(ts, p.Text); ok {
			where := "in the data"
			if column != "" {
				where = "in " + column
			}
			k.retract("there is no '" + p.Text + "' " + where)
			return
		}
	}
	if reason := k.beyond(); reason != "" {
		k.retract(reason)
		return
	}
	if reason := k.toldNowhere(); reason != "" {
		k.retract(reason)
	}
}

// declinedUntold declines, when no statement worked, what the data has no words for: then the names that it was refused
// were no slip of the model's.
func (k *ask) declinedUntold() bool {
	for _, t := range k.tries {
		if t.refusal == nil || !strings.HasPrefix(t.refusal.Msg, "there is no ") {
			return false
		}
	}
	reason := k.toldNowhere()
	if reason == "" || len(k.tries) == 0 || k.off().Decline {
		return false
	}
	k.decline(reason)
	return true
}

// toldNowhere names the words of the question that are in no name, comment or value, when they are enough to doubt that it
// can be answered.
func (k *ask) toldNowhere() string {
	if len(k.focus.Unknown) < manyUnknown || !k.unknownForSure() || len(k.earlier) > 0 {
		return ""
	}
	said := make([]string, len(k.focus.Unknown))
	for i, w := range k.focus.Unknown {
		said[i] = "'" + rag.OneLine(w, maxWord) + "'"
	}
	return "nothing that you may read in '" + k.src.Name() + "' tells of " + strings.Join(said, ", ")
}

// maxWord bounds a word of a question in a reason, in characters.
const maxWord = 40

// retract turns an answer into a decline. The statement stays, so that a person sees what was looked for.
func (k *ask) retract(reason string) {
	k.answer.Table = nil
	k.decline(reason)
}

// barren says whether a result is nothing, or only zeros and NULL in one row.
func barren(t *Table) bool {
	if len(t.Rows) == 0 {
		return !t.Truncated
	}
	if len(t.Rows) > 1 {
		return false
	}
	for _, c := range t.Rows[0] {
		if s := comparable(c); s != "null" && s != "0" {
			return false
		}
	}
	return true
}

// filters says whether a statement compares something with a phrase, and with which column.
func (k *ask) filters(ts []token, phrase string) (column string, ok bool) {
	for i, t := range ts {
		if t.kind != text || !sameText(strings.Trim(t.value(), "%"), phrase) {
			continue
		}
		for at := i - 1; at >= 0 && at > i-8; at-- { // the column stands shortly before
			ref, named := referenceTo(ts, at)
			if !named || ts[at].is("LIKE", "ILIKE", "NOT", "IN", "SIMILAR", "TO", "ESCAPE", "AND", "OR", "WHERE") {
				continue
			}
			s := &statementText{mender: mender{k: k.known}, ts: ts, blocks: blocks(ts)}
			if c, sure := s.meant(within(s.blocks, at), ref); sure {
				column = c.Relation.Name + "." + c.Column
			}
			break
		}
		return column, true
	}
	return "", false
}

// beyond compares the years that the question names with those that the dates of the tables in it cover.
func (k *ask) beyond() string {
	first, last := "", ""
	for _, r := range k.focus.Tables {
		t, _ := k.known.Table(r)
		for _, c := range t.Columns {
			f, ok := k.known.Facts(rag.ColumnRef{Relation: r, Column: c.Name})
			if !ok || f.Min == "" || f.Max == "" {
				continue
			}
			if f.Sampled {
				return ""
			}
			if first == "" || f.Min < first {
				first = f.Min
			}
			if last == "" || f.Max > last {
				last = f.Max
			}
		}
	}
	if len(first) < 10 || len(last) < 10 {
		return ""
	}
	from, errFrom := strconv.Atoi(first[:4])
	to, errTo := strconv.Atoi(last[:4])
	if errFrom != nil || errTo != nil {
		return ""
	}
	years := yearsIn(k.q.Question)
	if len(years) == 0 || slices.ContainsFunc(years, func(y int) bool { return y >= from && y <= to }) {
		return ""
	}
	return fmt.Sprintf("the dates go from %s to %s", first[:10], last[:10])
}

// yearsIn finds numbers of four digits that may be years.
func yearsIn(question string) (out []int) {
	for _, w := range strings.FieldsFunc(question, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(w); err == nil && len(w) == 4 && n >= 1000 && n < 2200 {
			out = append(out, n)
		}
	}
	return out
}

// decline says no, why, and what could be asked instead.
func (k *ask) decline(reason string) {
	k.answer.Outcome, k.answer.Reason = Declined, presentable(reason, "the gate refused the statement")
	k.answer.Text = "This was not done: " + k.answer.Reason + ". Questions only read data" + k.instead() + "."
}

// maxInstead is how many tables a decline names.
const maxInstead = 6

func (k *ask) instead() string {
	if k.known == nil || len(k.known.Relations()) == 0 {
		return ""
	}
	tables := k.focus.Tables
	if len(tables) == 0 {
		tables = k.known.Relations()
	}
	var names []string
	for _, r := range tables[:min(len(tables), maxInstead)] {
		names = append(names, r.Name)
	}
	return presentable("; ask, for example, about "+strings.Join(names, ", "), "")
}
