package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/prompts"

	"sluice/rag"
	"sluice/sqlguard"
)

// The agent's prompt begins with what is equal for every question of an asker about a database, its card, so that the
// engine reads it once; what is of this question stands at the end.
const (
	guidedUser = "{{.notes}}-- Question: {{.question}}\n"
	cannotNote = "-- If the tables do not hold what is asked for, or it asks to change data, write only: -- CANNOT: and why\n"
)

var guided = prompts.NewChatPromptTemplate([]prompts.MessageFormatter{prompts.NewHumanMessagePromptTemplate(guidedUser, []string{"notes", "question"})})

// How much of a question's own notes there is at most.
const (
	maxLinks       = 8
	maxFocusNames  = 40 // columns of a table that are named again
	maxJoinsShown  = 12
	tokenBytes     = 3 // bytes of a token in schema text, at the least
	promptOverhead = 1500

	focusBytes = 1500 // of the card of a focus, beyond which what the question does not name is shortened
)

func tokensOf(text string) int { return len(text)/tokenBytes + 1 }

// focusRound asks about the focus under its grammar: the card of the whole schema when it is short enough, else that of
// the focus alone. Small models choose worse among many tables, and read them for long.
func (k *ask) focusRound() (*round, error) {
	tables, joins := k.scope()
	card := k.known.Card(nil)
	r := &round{name: "focus", short: tokensOf(card) > k.agent.cfg.CardTokens && len(k.focus.Tables) > 0 && !k.off().Focus}
	if r.short {
		card = k.known.FocusCard(k.focus, focusBytes)
	}
	if !k.off().Grammar && !k.wishes() {
		r.grammar = focusGrammar(k.known, tables, joins, k.src.Dialect(), k.doubts())
	}
	var err error
	r.messages, err = k.messages(card, !r.short)
	return r, err
}

// wholeRound asks about all that there is, or as much of it as a prompt holds.
func (k *ask) wholeRound() (*round, error) {
	card := k.known.Card(nil)
	if room := k.agent.cfg.NumCtx - promptOverhead; tokensOf(card) > room {
		card = k.known.Card(k.within(room))
	}
	r := &round{name: "whole"}
	if !k.off().Grammar && !k.wishes() {
		r.grammar = wideGrammar(k.known, k.src.Dialect(), k.taken, k.doubts())
	}
	var err error
	r.messages, err = k.messages(card, true)
	return r, err
}

// within gives the tables whose card has at most so many tokens: those of the focus, then others by their score. The first
// is always there.
func (k *ask) within(most int) []sqlguard.Relation {
	ranked := slices.Clone(k.focus.Tables)
	var rest []sqlguard.Relation
	for _, r := range k.known.Relations() {
		if !slices.Contains(ranked, r) {
			rest = append(rest, r)
		}
	}
	slices.SortStableFunc(rest, func(a, b sqlguard.Relation) int {
		switch x, y := k.focus.Score[a], k.focus.Score[b]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	out := []sqlguard.Relation{}
	used := 0
	for _, r := range append(ranked, rest...) {
		n := tokensOf(k.known.Card([]sqlguard.Relation{r}))
		if len(out) > 0 && used+n > most {
			break
		}
		out, used = append(out, r), used+n
	}
	return out
}

// messages renders the prompt: the card, the conversation so far, and the question with its notes. Where the card has more
// than the focus, the focus is named again.
func (k *ask) messages(card string, more bool) ([]llms.MessageContent, error) {
	out := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, plainSystem)}
	before := card + "\n"
	for _, e := range k.earlier {
		out = append(out,
			llms.TextParts(llms.ChatMessageTypeHuman, before+"-- Question: "+e.question+"\n"),
			llms.TextParts(llms.ChatMessageTypeAI, plainStart+e.sql+"\n```"))
		before = e.result
	}
	turns, err := guided.FormatMessages(map[string]any{"notes": before + k.notes(more), "question": rag.OneLine(k.q.Question, 0)})
	if err != nil {
		return nil, fmt.Errorf("agent: render the prompt: %w", err)
	}
	for _, turn := range turns {
		out = append(out, llms.TextParts(turn.GetType(), turn.GetContent()))
	}
	return append(out, llms.TextParts(llms.ChatMessageTypeAI, plainStart)), nil
}

// notes are what is known for this question: confirmed examples, the focus, values, a definition.
func (k *ask) notes(more bool) string {
	var b strings.Builder
	for _, p := range k.pairs {
		b.WriteString("-- Question: " + rag.OneLine(p.Question, 0) + "\n" + p.SQL + ";\n\n")
	}
	if more && !k.off().Focus {
		k.noteFocus(&b)
	}
	if !k.off().Values {
		for _, l := range k.links() {
			b.WriteString("-- " + l + "\n")
		}
	}
	if !k.off().Hints {
		for _, h := range k.hints() {
			b.WriteString("-- " + h + "\n")
		}
	}
	if k.doubts() {
		b.WriteString(cannotNote)
	}
	if k.q.Evidence != "" {
		b.WriteString("-- Note: " + rag.OneLine(k.q.Evidence, 0) + "\n")
	}
	return b.String()
}

// noteFocus names the tables of the focus again, with their columns and joins.
func (k *ask) noteFocus(b *strings.Builder) {
	if len(k.focus.Tables) == 0 {
		return
	}
	b.WriteString("-- Tables for this question:\n")
	for _, r := range k.focus.Tables {
		t, ok := k.known.Table(r)
		if !ok {
			continue
		}
		var names []string
		for _, c := range t.Columns[:min(len(t.Columns), maxFocusNames)] {
			names = append(names, k.known.Identifier(c.Name))
		}
		if len(t.Columns) > maxFocusNames {
			names = append(names, "…")
		}
		b.WriteString("-- " + rag.OneLine(k.known.Name(r)+"("+strings.Join(names, ", ")+")", 0) + "\n")
	}
	for _, j := range k.focus.Joins[:min(len(k.focus.Joins), maxJoinsShown)] {
		b.WriteString("-- Join: " + rag.OneLine(k.columnName(j.From)+" = "+k.columnName(j.To), 0) + "\n")
	}
}

func (k *ask) columnName(c rag.ColumnRef) string {
	return k.known.Identifier(c.Relation.Name) + "." + k.known.Identifier(c.Column)
}

// links says which words of the question are stored values: those that were found among the values, and those that a
// column's comment explains.
func (k *ask) links() []string {
	var out []string
	add := func(s string) {
		if len(out) < maxLinks && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, l := range k.focus.Links {
		if slices.Contains(k.focus.Tables, l.Column.Relation) || len(k.focus.Tables) == 0 {
			said := quote(l.Value) + " is a value of " + k.columnName(l.Column)
			if l.Value != l.Phrase {
				said += " (" + quote(l.Phrase) + ")"
			}
			add(rag.OneLine(said, 0))
		}
	}
	asked := " " + words(k.q.Question) + " "
	for _, r := range k.focus.Tables {
		t, _ := k.known.Table(r)
		for _, c := range t.Columns {
			for _, meaning := range codes(c.Comment) {
				if w := words(meaning.meaning); w != "" && strings.Contains(asked, " "+w+" ") {
					value := quote(meaning.code)
					if numericType(c.Type) {
						value = meaning.code
					}
					add(rag.OneLine(k.columnName(rag.ColumnRef{Relation: r, Column: c.Name})+" = "+value+" means "+meaning.meaning, 0))
				}
			}
		}
	}
	return out
}

// words gives the words of a text in small letters, with one blank between them.
func words(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 0x80)
	}), " ")
}
