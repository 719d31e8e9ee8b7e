package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/fault"
)

func askCmd() *cobra.Command {
	var database, model string
	var sql bool
	cmd := &cobra.Command{
		Use: "ask [QUESTION]", Short: "Ask a question about a database in plain language", Args: cobra.ArbitraryArgs,
		Long: "Ask a question about a database in plain language. Without a QUESTION, and with none on stdin, questions are read one by one:\n" +
			"each goes on from those before it. Exits with 3 when the question is declined, with 1 when no answer was found.",
		RunE: func(cmd *cobra.Command, args []string) error {
			question := strings.TrimSpace(strings.Join(args, " "))
			if question == "" && !isTerminal(os.Stdin) && isInput(os.Stdin) {
				text, err := io.ReadAll(cmd.InOrStdin())
				if err != nil {
					return err
				}
				if question = strings.TrimSpace(string(text)); question == "" {
					return usageError{fmt.Errorf("the question is empty; see %s --help", cmd.CommandPath())}
				}
			}
			a := &asking{client: newClient(), model: model, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), json: wantJSON(cmd), sql: sql}
			if isTerminal(os.Stdout) {
				a.width = func() int { return columns(os.Stdout) }
			}
			if isTerminal(os.Stderr) {
				a.line = func() int { return columns(os.Stderr) }
			}
			var err error
			if a.database, err = a.client.pickDatabase(cmd, database); err != nil {
				return err
			}
			if question == "" {
				return a.session(cmd.Context(), cmd.InOrStdin())
			}
			return a.ask(cmd.Context(), question)
		},
	}
	cmd.Flags().StringVarP(&database, "database", "d", "", "database; may be left out when there is only one")
	cmd.Flags().StringVar(&model, "model", "", "model; default: the configured one")
	cmd.Flags().BoolVar(&sql, "sql", false, "show the SQL whose rows the answer is made of")
	return cmd
}

// asking is a conversation about a database.
type asking struct {
	client          *client
	database, model string

	out   io.Writer  // answers
	notes io.Writer  // everything else
	json  bool       // answers are printed as the server gives them
	sql   bool       // show it
	width func() int // columns of out; nil: no terminal, so nothing is cut
	line  func() int // columns of notes; nil: no terminal, so a step is a line of its own

	turns []askTurn
}

// maxTurns is how much of a conversation is sent along; the server looks at fewer.
const maxTurns = 8

// askTurn is a question and the SQL that answered it, as the server takes it back.
type askTurn struct {
	Question string `json:"question"`
	SQL      string `json:"sql"`
}

// answer is the result of /v1/database/ask as far as the terminal shows it.
type answer struct {
	Outcome   string              `json:"outcome"`
	Answer    string              `json:"answer"`
	SQL       string              `json:"sql"`
	Columns   []column            `json:"columns"`
	Rows      [][]json.RawMessage `json:"rows"`
	Truncated bool                `json:"truncated"`
	Verified  bool                `json:"verified"`
	By        string              `json:"verified_by"`
	At        time.Time           `json:"verified_at"`
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// ask asks the next question, prints what comes of it, and remembers it when it was answered. An answer that is none is an
// error: declined is Refused, so that a script tells it from a failure.
func (a *asking) ask(ctx context.Context, question string) error {
	body := map[string]any{"database": a.database, "question": question, "stream": true}
	if a.model != "" {
		body["model"] = a.model
	}
	if len(a.turns) > 0 {
		body["conversation"] = a.turns
	}
	raw, err := a.answer(ctx, body)
	if err != nil {
		return err
	}
	var got answer
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	if err := a.print(raw, got); err != nil {
		return err
	}
	said := printable(got.Answer)
	switch got.Outcome {
	case "answered":
		if got.SQL != "" {
			a.turns = append(a.turns, askTurn{Question: question, SQL: got.SQL})
			a.turns = a.turns[max(0, len(a.turns)-maxTurns):]
		}
		return nil
	case "copy_requested":
		return nil
	case "declined":
		return fault.New(fault.Refused, "ask", "declined: %s", said)
	}
	return fault.New(fault.Internal, "ask", "%s: %s", printable(got.Outcome), said)
}

// answer sends a question, shows the steps, and gives the whole answer.
func (a *asking) answer(ctx context.Context, body any) (json.RawMessage, error) {
	resp, err := a.client.send(ctx, "POST", "/v1/database/ask", body, "text/event-stream")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	steps := &steps{out: a.notes, width: a.line, silent: a.json}
	defer steps.clear()
	var last json.RawMessage
	err = events(resp.Body, func(name string, payload []byte) error {
		switch name {
		case "error":
			return decodeError(payload, fault.Internal)
		case "done":
			var done data[json.RawMessage]
			if err := json.Unmarshal(payload, &done); err != nil {
				return err
			}
			last = done.Data
		case "answer": // comes again, whole, with done
		default:
			var e struct {
				Text string `json:"text"`
			}
			if json.Unmarshal(payload, &e) == nil {
				steps.show(name, e.Text)
			}
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, fault.New(fault.Canceled, "client", "cancelled")
	case err != nil:
		return nil, err
	case last == nil:
		return nil, errors.New("the server ended the answer without its last event")
	}
	return last, nil
}

// events reads a server-sent event stream.
func events(body io.Reader, each func(name string, payload []byte) error) error {
	in := bufio.NewScanner(body)
	in.Buffer(nil, 64<<20)
	name, payload := "", []byte(nil)
	for in.Scan() {
		switch line := in.Text(); {
		case line == "":
			if payload != nil {
				if err := each(name, payload); err != nil {
					return err
				}
			}
			name, payload = "", nil
		case strings.HasPrefix(line, "event:"):
			name = strings.TrimSpace(line[len("event:"):])
		case strings.HasPrefix(line, "data:"):
			payload = append(payload, strings.TrimSpace(line[len("data:"):])...)
		}
	}
	return in.Err()
}

// pickDatabase takes the named database, or the only one there is.
func (c *client) pickDatabase(cmd *cobra.Command, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	var got data[[]struct {
		Name string `json:"name"`
	}]
	if err := c.call(cmd.Context(), "GET", "/v1/databases", nil, &got); err != nil {
		return "", err
	}
	var names []string
	for _, d := range got.Data {
		names = append(names, d.Name)
	}
	switch len(names) {
	case 0:
		return "", fault.New(fault.NotFound, "client", "there is no database that you may read: an admin configures one, and grants it")
	case 1:
		return names[0], nil
	}
	slices.Sort(names)
	return "", usageError{fmt.Errorf("which database? -d with one of: %s", strings.Join(names, ", "))}
}
