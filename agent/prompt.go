package agent

import (
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/prompts"
)

// The plain prompt. In a ChatML template it renders byte for byte to the prompt that the peers' figures were measured
// with (testdata/nl2sql/plain_prompt.txt; a test compares), so a change of one blank here is a change of the benchmark.
// The system text says PostgreSQL for DuckDB too: small models know that dialect best, and DuckDB reads it.
const (
	plainSystem = "You write one PostgreSQL SELECT statement that answers the question on the given schema. Reply with SQL only."
	plainUser   = "{{.schema}}\n\n-- Question: {{.question}}\n{{if .evidence}}-- Note: {{.evidence}}\n{{end}}"
	plainStart  = "```sql\n" // the answer's beginning is put into the model's mouth
)

// Decoding of the plain prompt, part of the same measurement.
const (
	plainMaxTokens = 300
	plainNumCtx    = 8192
	plainSeed      = 1
)

var plainStop = []string{"```", "<|im_end|>"}

// guidedStop ends an answer behind its first statement too: what a small model writes after it is another statement.
var guidedStop = append([]string{";"}, plainStop...)

var plain = prompts.NewChatPromptTemplate([]prompts.MessageFormatter{
	prompts.NewSystemMessagePromptTemplate(plainSystem, nil),
	prompts.NewHumanMessagePromptTemplate(plainUser, []string{"schema", "question", "evidence"}),
	prompts.NewAIMessagePromptTemplate(plainStart, nil),
})

// plainPrompt renders the prompt for one question.
func plainPrompt(schema, question, evidence string) ([]llms.MessageContent, error) {
	turns, err := plain.FormatMessages(map[string]any{"schema": schema, "question": question, "evidence": evidence})
	if err != nil {
		return nil, fmt.Errorf("agent: render the prompt: %w", err)
	}
	messages := make([]llms.MessageContent, len(turns))
	for i, turn := range turns {
		messages[i] = llms.TextParts(turn.GetType(), turn.GetContent())
	}
	return messages, nil
}
