package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/ollama/ollama/api"
	"github.com/spf13/cobra"

	"sluice/agent"
	"sluice/agent/eval"
)

func evalCmd() *cobra.Command {
	return group(&cobra.Command{Use: "eval", Short: "Measure the answers on a question set"}, evalNL2SQLCmd())
}

func evalNL2SQLCmd() *cobra.Command {
	var tags, without []string
	var model, engine, out, verdicts string
	var plain, grammar bool
	cmd := &cobra.Command{
		Use:   "nl2sql DIR",
		Short: "Ask every question of a set, judge the answers, and print the score",
		Long: "DIR holds questions.jsonl and, for each database, schema.sql and data.sql. The databases are built in a temporary\n" +
			"folder; the model is the server's (SLUICE_URL). The score is execution accuracy: a statement is right when its rows\n" +
			"are those of one of the question's reference statements.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if engine != "duckdb" {
				return usageError{fmt.Errorf("--engine %q: only duckdb is there in this version", engine)}
			}
			left, err := agent.Without(without...)
			if err != nil {
				return usageError{fmt.Errorf("--without: %w", err)}
			}
			c := newClient()
			if model == "" {
				if model, err = c.onlyModel(cmd.Context()); err != nil {
					return err
				}
			}
			cfg := eval.Config{Dir: args[0], Tags: tags, Model: model, Plain: plain, Without: left, Grammar: grammar, Completer: c, Progress: cmd.ErrOrStderr()}
			if out != "" {
				var f *os.File
				if f, err = os.Create(out); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				cfg.Out = f
			}
			report, err := eval.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if verdicts != "" {
				text, err := json.MarshalIndent(report.Verdicts, "", " ")
				if err != nil {
					return err
				}
				if err := os.WriteFile(verdicts, text, 0o644); err != nil {
					return err
				}
			}
			if wantJSON(cmd) {
				percent, deviation := report.Accuracy()
				return printJSON(cmd, map[string]any{"accuracy": percent, "standard_error": deviation, "correct": report.Correct(), "verdicts": report.Verdicts})
			}
			return report.Print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "only questions with this tag; repeatable")
	cmd.Flags().StringVar(&model, "model", "", "model; may be left out when only one is installed")
	cmd.Flags().StringVar(&engine, "engine", "duckdb", "where the statements run")
	cmd.Flags().BoolVar(&plain, "plain", false, "the plain prompt: schema.sql as it is, one greedy call")
	cmd.Flags().StringArrayVar(&without, "without", nil, "leave a technique of the agent out: focus, values, candidates, mend, repair, vote, decline; repeatable")
	cmd.Flags().BoolVar(&grammar, "grammar", false, "bind the model to the grammar of the schema")
	cmd.Flags().StringVar(&out, "out", "", "file for one JSON line per question")
	cmd.Flags().StringVar(&verdicts, "verdicts", "", "file for the verdict of each question")
	return cmd
}

// Complete makes the client an agent.Completer: the model runs on the server. A conversation that ends with the
// assistant's turn is gone on with, which is how the start of the answer is given.
func (c *client) Complete(ctx context.Context, q agent.Completion) ([]string, error) {
	messages := make([]api.Message, 0, len(q.Messages))
	for _, m := range q.Messages {
		messages = append(messages, api.Message{Role: m.Role, Content: m.Content})
	}
	options := map[string]any{"temperature": q.Temperature, "seed": q.Seed, "num_predict": q.MaxTokens, "num_ctx": q.NumCtx, "stop": q.Stop}
	if q.RepeatPenalty > 0 {
		options["repeat_penalty"] = q.RepeatPenalty
	}
	if q.Grammar != "" {
		options["grammar"] = q.Grammar
	}
	if q.Expect {
		options["draft"] = "expect"
	}
	request := map[string]any{"model": q.Model, "messages": messages, "stream": false, "truncate": false, "options": options}
	if q.N > 1 {
		request["n"] = q.N
	}
	var got struct {
		Message api.Message `json:"message"`
		Choices []struct {
			Content string `json:"content"`
		} `json:"choices"`
	}
	if err := c.call(ctx, "POST", "/api/chat", request, &got); err != nil {
		return nil, err
	}
	out := []string{got.Message.Content}
	for i, choice := range got.Choices {
		if i == 0 {
			out[0] = choice.Content
			continue
		}
		out = append(out, choice.Content)
	}
	return out, nil
}

// onlyModel gives the name of the one installed model.
func (c *client) onlyModel(ctx context.Context) (string, error) {
	var got api.ListResponse
	if err := c.call(ctx, "GET", "/api/tags", nil, &got); err != nil {
		return "", err
	}
	if len(got.Models) != 1 {
		return "", usageError{fmt.Errorf("%d models are installed: say which with --model", len(got.Models))}
	}
	return got.Models[0].Name, nil
}
