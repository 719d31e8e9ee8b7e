package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sluice/fault"
)

// runningStatement is what queries reads of an entry of /v1/queries.
type runningStatement struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	Database  string    `json:"database"`
	Owner     string    `json:"owner"`
	Name      string    `json:"name"`
	Statement string    `json:"statement"`
	StartedAt time.Time `json:"started_at"`
	Rows      *int64    `json:"rows"`
}

func queriesCmd() *cobra.Command {
	list := queriesListCmd()
	cmd := group(&cobra.Command{
		Use: "queries", Short: "List the statements that run now, and cancel them: your own, or as an admin everybody's", Long: list.Long,
	}, list, queriesCancelCmd())
	cmd.RunE = list.RunE
	return cmd
}

func queriesListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the statements that run now, the oldest first", Args: cobra.NoArgs,
		Long: "List the statements that run now, the oldest first: queries, those that a model wrote for an ask, writes, COPY and\n" +
			"external tables. WHO: the user, and the key where one is used. ROWS: how many a query has read so far. On a terminal the\n" +
			"statement is cut; --json has it whole.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got data[json.RawMessage]
			if err := newClient().call(cmd.Context(), "GET", "/v1/queries", nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var all []runningStatement
			if err := json.Unmarshal(got.Data, &all); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return printTable(out, statementHeader, statementRows(all, time.Now(), widthOf(out)))
		},
	}
}

var statementHeader = []string{"ID", "KIND", "DATABASE", "WHO", "SINCE", "ROWS", "STATEMENT"}

// widthOf is how many columns a line may have; 0 is any number, where nobody looks at a terminal.
func widthOf(out io.Writer) int {
	if f, ok := out.(*os.File); ok && isTerminal(f) {
		return columns(f)
	}
	return 0
}

// leastStatement is how much of a statement is shown however narrow the terminal is.
const leastStatement = 24

// statementRows are the lines of the table. The statement, its last column, gets the room that the others leave.
func statementRows(all []runningStatement, now time.Time, width int) [][]string {
	var rows [][]string
	before := 0
	for i, name := range statementHeader[:len(statementHeader)-1] {
		widest := len(name)
		for j, st := range all {
			if i == 0 {
				rows = append(rows, st.row(now))
			}
			widest = max(widest, utf8.RuneCountInString(rows[j][i]))
		}
		before += widest + 2 // the gap that printTable leaves
	}
	if width == 0 {
		return rows
	}
	room := max(width-before, leastStatement)
	for _, row := range rows {
		last := &row[len(row)-1]
		if utf8.RuneCountInString(*last) > room {
			*last = cut(*last, room-1) + "…"
		}
	}
	return rows
}

func (st runningStatement) row(now time.Time) []string {
	who := st.Owner
	if st.Name != "" && st.Name != st.Owner {
		who += " (" + st.Name + ")"
	}
	rows := "-"
	if st.Rows != nil {
		rows = fmt.Sprint(*st.Rows)
	}
	since := max(now.Sub(st.StartedAt), 0).Truncate(time.Second).String() + " ago"
	return []string{oneLine(st.ID), oneLine(st.Kind), cmp.Or(oneLine(st.Database), "-"), oneLine(who), since, rows, oneLine(st.Statement)}
}

// oneLine is a text as a table may hold it.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

func queriesCancelCmd() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID...", Short: "Cancel running statements", Args: cobra.MinimumNArgs(1),
		Long: "Cancel running statements, by the ids that `sluice queries` shows. Whoever sent one is told by whom it was cancelled.\n" +
			"A COPY that is cancelled publishes nothing. One that is not there any more is an error (status 1); the others are\n" +
			"cancelled all the same.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := newClient()
			done := struct {
				Cancelled []string `json:"cancelled"`
				Missing   []string `json:"missing"`
			}{[]string{}, []string{}}
			var failed error
			for _, id := range args {
				err := c.call(cmd.Context(), "DELETE", "/v1/queries/"+url.PathEscape(id), nil, nil)
				switch {
				case err == nil:
					done.Cancelled = append(done.Cancelled, id)
					if !wantJSON(cmd) {
						fmt.Fprintln(cmd.ErrOrStderr(), "cancelled "+oneLine(id))
					}
				case fault.CodeOf(err) == fault.NotFound:
					done.Missing = append(done.Missing, id)
				default:
					failed = err
				}
				if failed != nil {
					break // the next one would end in the same way
				}
			}
			if wantJSON(cmd) {
				if err := printJSON(cmd, done); err != nil {
					return err
				}
			}
			if failed == nil && len(done.Missing) > 0 {
				failed = fault.New(fault.NotFound, "queries", "not running, or not yours: %s", oneLine(strings.Join(done.Missing, ", ")))
			}
			return failed
		},
	}
}
