package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sluice/fault"
)

// answer is the result of /v1/database/ask as far as the terminal shows it.
type answer struct {
	Outcome string              `json:"outcome"`
	Answer  string              `json:"answer"`
	SQL     string              `json:"sql"`
	Columns []column            `json:"columns"`
	Rows    [][]json.RawMessage `json:"rows"`
	Model   string              `json:"model"`
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func askCmd() *cobra.Command {
	var database, model string
	cmd := &cobra.Command{
		Use: "ask QUESTION", Short: "Ask a question about a database in plain language", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := newClient()
			db, err := c.pickDatabase(cmd, database)
			if err != nil {
				return err
			}
			body := map[string]any{"database": db, "question": strings.Join(args, " "), "stream": true}
			if model != "" {
				body["model"] = model
			}
			resp, err := c.send(cmd.Context(), "POST", "/v1/database/ask", body, "text/event-stream")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
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
					if !wantJSON(cmd) {
						var e struct {
							Text string `json:"text"`
						}
						if json.Unmarshal(payload, &e) == nil {
							fmt.Fprintf(cmd.ErrOrStderr(), "%-9s %s\n", name, strings.ReplaceAll(printable(e.Text), "\n", "\n          "))
						}
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			if last == nil {
				return errors.New("the server ended the answer without its last event")
			}
			return printAnswer(cmd, last)
		},
	}
	cmd.Flags().StringVarP(&database, "database", "d", "", "database; may be left out when there is only one")
	cmd.Flags().StringVar(&model, "model", "", "model; default: the configured one")
	return cmd
}

func printAnswer(cmd *cobra.Command, raw json.RawMessage) error {
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if wantJSON(cmd) {
		if err := printJSON(cmd, raw); err != nil {
			return err
		}
	} else if len(a.Rows) > 0 {
		if err := printRows(out, a.Columns, a.Rows); err != nil {
			return err
		}
	}
	switch a.Outcome {
	case "answered":
		if wantJSON(cmd) {
			return nil
		}
		_, err := fmt.Fprintln(out, printable(a.Answer))
		return err
	case "declined":
		return fault.New(fault.Refused, "ask", "declined: %s", printable(a.Answer))
	}
	return fault.New(fault.Internal, "ask", "%s: %s", a.Outcome, printable(a.Answer))
}

// events reads a server-sent event stream.
func events(body interface{ Read([]byte) (int, error) }, each func(name string, payload []byte) error) error {
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
	if len(names) == 1 {
		return names[0], nil
	}
	return "", usageError{fmt.Errorf("which database? -d with one of: %s", strings.Join(names, ", "))}
}
