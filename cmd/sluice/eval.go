package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/spf13/cobra"

	"sluice/agent"
	"sluice/agent/eval"
)

func evalCmd() *cobra.Command {
	return group(&cobra.Command{Use: "eval", Short: "Measure the answers on a question set"}, evalNL2SQLCmd())
}

func evalNL2SQLCmd() *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use:   "nl2sql DIR",
		Short: "Ask every question of a set, judge the answers, and print the score",
		Long: "DIR holds questions.jsonl and, for each database, schema.sql and data.sql; questions without an answer are in\n" +
			"unanswerable.jsonl and have the tag unanswerable. The databases are built in a temporary folder, or, with\n" +
			"--engine postgres, on the server of --postgres, and are removed at the end; the model is the server's (SLUICE_URL).\n" +
			"The score is execution accuracy: a statement is right when its rows are those of one of the question's reference\n" +
			"statements. --out keeps each answer as it comes; after a break, --resume goes on from there.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "only questions with this tag; repeatable")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "only the first so many questions")
	cmd.Flags().StringVar(&f.sample, "sample", "", "only a part, SEED/N: N questions drawn with the seed")
	cmd.Flags().StringVar(&f.model, "model", "", "model; may be left out when only one is installed")
	cmd.Flags().StringVar(&f.engine, "engine", "duckdb", "where the statements run: duckdb or postgres")
	cmd.Flags().StringVar(&f.postgres, "postgres", "", "URL of a PostgreSQL server whose user may make databases and roles (default $SLUICE_EVAL_POSTGRES)")
	cmd.Flags().BoolVar(&f.plain, "plain", false, "the plain prompt: schema.sql as it is, one greedy call")
	cmd.Flags().StringArrayVar(&f.without, "without", nil, "leave a technique of the agent out: focus, values, candidates, mend, repair, vote, decline; repeatable")
	cmd.Flags().BoolVar(&f.grammar, "grammar", false, "bind the model to the grammar of the schema")
	cmd.Flags().StringVar(&f.verified, "verified", "", "cross: the other questions' reference statements as verified pairs, by 5-fold cross-validation")
	cmd.Flags().StringVar(&f.out, "out", "", "file for one JSON line per question")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "go on with the run whose lines are in --out")
	cmd.Flags().StringVar(&f.verdicts, "verdicts", "", "file for the verdict of each question")
	return cmd
}

// evalFlags are the flags of an evaluation.
type evalFlags struct {
	tags, without                                            []string
	model, engine, postgres, out, verdicts, sample, verified string
	plain, grammar, resume                                   bool
	limit                                                    int
}

// config checks the flags and makes an evaluation of them. No server is asked but for the name of its only model.
func (f *evalFlags) config(cmd *cobra.Command, dir string) (cfg eval.Config, err error) {
	usage := func(format string, args ...any) (eval.Config, error) {
		return eval.Config{}, usageError{fmt.Errorf(format, args...)}
	}
	cfg = eval.Config{Dir: dir, Tags: f.tags, Limit: f.limit, Plain: f.plain, Grammar: f.grammar, Cross: f.verified == "cross", Progress: cmd.ErrOrStderr()}
	switch {
	case f.engine != "duckdb" && f.engine != "postgres":
		return usage("--engine %q: it is duckdb or postgres", f.engine)
	case f.engine == "duckdb" && f.postgres != "":
		return usage("--postgres is for --engine postgres")
	case f.limit < 0:
		return usage("--limit %d: it is a number of questions", f.limit)
	case f.verified != "" && f.verified != "cross":
		return usage("--verified %q: it is cross", f.verified)
	case f.plain && (len(f.without) > 0 || f.grammar || f.verified != ""):
		return usage("--plain is one call without help: --without, --grammar and --verified say nothing about it")
	case f.resume && f.out == "":
		return usage("--resume needs --out, the file with the lines so far")
	}
	if f.engine == "postgres" {
		if cfg.Postgres = f.postgres; cfg.Postgres == "" {
			cfg.Postgres = os.Getenv("SLUICE_EVAL_POSTGRES")
		}
		if cfg.Postgres == "" {
			return usage("--engine postgres needs a server to build the databases on: --postgres URL or SLUICE_EVAL_POSTGRES, of a user who may make databases and roles")
		}
	}
	if f.sample != "" {
		seed, n, ok := strings.Cut(f.sample, "/")
		var errSeed, errN error
		cfg.Sample.Seed, errSeed = strconv.ParseUint(seed, 10, 64)
		cfg.Sample.N, errN = strconv.Atoi(n)
		if !ok || errSeed != nil || errN != nil || cfg.Sample.N < 1 {
			return usage("--sample %q: it is SEED/N, such as 1/40", f.sample)
		}
	}
	if cfg.Without, err = agent.Without(f.without...); err != nil {
		return usage("--without: %w", err)
	}
	c := newClient()
	cfg.Completer, cfg.Model = c, f.model
	if cfg.Model == "" {
		cfg.Model, err = c.onlyModel(cmd.Context())
	}
	return cfg, err
}

func (f *evalFlags) run(cmd *cobra.Command, dir string) (err error) {
	cfg, err := f.config(cmd, dir)
	if err != nil {
		return err
	}
	if f.out != "" {
		file, done, openErr := eval.OpenLines(f.out, f.resume, cfg.How())
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		cfg.Out, cfg.Done = file, done
	}
	report, err := eval.Run(cmd.Context(), cfg)
	if err != nil {
		if f.out != "" && len(report.Lines) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d questions are in %s: the same command with --resume goes on from there\n", len(report.Lines), f.out)
		}
		return err
	}
	if f.verdicts != "" {
		text, err := json.MarshalIndent(report.Verdicts, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.verdicts, text, 0o644); err != nil {
			return err
		}
	}
	summary := report.Summary()
	if wantJSON(cmd) {
		return printJSON(cmd, map[string]any{"accuracy": summary.Accuracy, "standard_error": summary.StandardError, "correct": summary.Right,
			"run": cfg.How(), "summary": summary, "by_database": report.By(eval.Database), "by_tag": report.By(eval.Tag),
			"verdicts": report.Verdicts, "declines": report.Declines})
	}
	if len(report.Verdicts) > 0 {
		if err := report.Print(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	return summary.Print(cmd.OutOrStdout())
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
