package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/gateway"
)

func learningCmd() *cobra.Command {
	return group(&cobra.Command{Use: "learning", Short: "What was asked, which answers were right, and questions with confirmed SQL",
		Long: "What was asked, which answers were right, and questions with confirmed SQL.\n\n" +
			"A question that is marked right is answered by the same SQL when it is asked again, and helps with questions like it.\n\n" +
			"  sluice learning list                       what was asked\n" +
			"  sluice learning show ask_…                 how it was answered: statements, verdicts, times\n" +
			"  sluice learning mark ask_… right           its SQL is confirmed, for you\n" +
			"  sluice learning mark ask_… right --sql '…' this SQL is the right one\n" +
			"  sluice learning mark ask_… wrong           what came of it is taken back\n" +
			"  sluice learning verified                   questions with confirmed SQL\n" +
			"  sluice learning export -d shop --out shop.yaml; sluice learning import shop.yaml"},
		learningListCmd(), learningShowCmd(), learningMarkCmd(), learningVerifiedCmd(), learningAddCmd(), learningRemoveCmd(), learningExportCmd(), learningImportCmd())
}

// pages is limit and cursor of a list with pages.
type pages struct {
	limit  int
	cursor string
}

func (p *pages) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", 50, "at most so many, up to 1000")
	cmd.Flags().StringVar(&p.cursor, "cursor", "", "where the page before ended")
}

func (p *pages) query(more map[string]string) string {
	q := url.Values{"limit": {strconv.Itoa(p.limit)}}
	if p.cursor != "" {
		q.Set("cursor", p.cursor)
	}
	for name, v := range more {
		if v != "" {
			q.Set(name, v)
		}
	}
	return q.Encode()
}

// paged is the answer of a list with pages.
type paged[T any] struct {
	Data []T `json:"data"`
	Meta struct {
		NextCursor string `json:"next_cursor"`
	} `json:"meta"`
}

// more tells that there is another page.
func (p *paged[T]) more(cmd *cobra.Command) {
	if p.Meta.NextCursor != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "there are more: --cursor "+p.Meta.NextCursor)
	}
}

func learningListCmd() *cobra.Command {
	var database, outcome, mark, user string
	var p pages
	cmd := &cobra.Command{
		Use: "list", Short: "List what you asked, newest first; as an admin what everybody asked", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got paged[gateway.QuestionInfo]
			query := p.query(map[string]string{"database": database, "outcome": outcome, "mark": mark, "user": user})
			if err := newClient().call(cmd.Context(), "GET", "/v1/learning/questions?"+query, nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var rows [][]string
			for _, q := range got.Data {
				rows = append(rows, []string{q.ID, whenText(&q.AskedAt), printable(q.User), printable(q.Database), q.Outcome, markText(q.Mark), shortLine(q.Question, 80)})
			}
			err := printTable(cmd.OutOrStdout(), []string{"ID", "ASKED", "USER", "DATABASE", "OUTCOME", "MARK", "QUESTION"}, rows)
			got.more(cmd)
			return err
		},
	}
	cmd.Flags().StringVarP(&database, "database", "d", "", "only those of this database")
	cmd.Flags().StringVar(&outcome, "outcome", "", "only answered, declined, failed, copy_requested, cancelled or error")
	cmd.Flags().StringVar(&mark, "mark", "", "only right, wrong or none")
	cmd.Flags().StringVar(&user, "user", "", "only what this user asked (admin)")
	p.add(cmd)
	return cmd
}

func markText(mark string) string {
	if mark == "" {
		return "-"
	}
	return mark
}

// shortLine puts a text of somebody's on one line and cuts it.
func shortLine(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(printable(text)), " "))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

func learningShowCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show how a question was answered: statements, verdicts, times", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got data[gateway.QuestionDetail]
			if err := newClient().call(cmd.Context(), "GET", "/v1/learning/questions/"+url.PathEscape(args[0]), nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), questionText(got.Data))
			return err
		},
	}
}

// questionText is a question with all that is kept of it, for a person.
func questionText(q gateway.QuestionDetail) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, strings.ReplaceAll(printable(text), "\n", "\n           "))
		}
	}
	line("question", q.Question)
	line("database", q.Database)
	line("asked", fmt.Sprintf("%s by %s (%s)", whenText(&q.AskedAt), q.User, q.KeyID))
	line("outcome", q.Outcome)
	line("reason", q.Reason)
	line("sql", q.SQL)
	line("model", fmt.Sprintf("%s, %d calls, %s", q.Model, q.ModelCalls, milliseconds(q.DurationMS)))
	line("verified", q.VerifiedID)
	if q.Mark != "" {
		line("mark", fmt.Sprintf("%s, by %s, %s", q.Mark, q.MarkedBy, whenText(q.MarkedAt)))
	}
	line("note", q.Note)
	line("tables", strings.Join(q.Tables, ", "))
	for i, c := range q.Candidates {
		what := fmt.Sprintf("%s, %s", c.Round, c.Verdict)
		if c.Verdict == "ran" {
			what += fmt.Sprintf(", %d rows, %d votes", c.Rows, c.Votes)
		}
		line("try "+strconv.Itoa(i+1), what+", "+milliseconds(c.TookMS))
		line("", c.Written)
		if c.Mended != "" {
			line("  mended", c.Mended)
		}
		line("  reason", c.Reason)
	}
	var steps []string
	for step, took := range q.Timings {
		steps = append(steps, step+" "+milliseconds(took))
	}
	slices.Sort(steps)
	line("times", strings.Join(steps, ", "))
	line("hidden", q.Hidden)
	return b.String()
}

func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }

func learningMarkCmd() *cobra.Command {
	var req gateway.MarkRequest
	cmd := &cobra.Command{
		Use: "mark ID right|wrong|none", Short: "Say whether an answer was right; none takes a mark away", Args: cobra.ExactArgs(2),
		Long: "Say whether an answer was right.\n\n" +
			"Right confirms the SQL that answered the question, or the one of --sql: it must pass the gate for you and run. From then on\n" +
			"the question is answered by it, for you; with --shared, which an admin may, for everybody who may read what it reads.\n" +
			"Wrong and none take that back.",
		RunE: func(cmd *cobra.Command, args []string) error {
			mark := args[1]
			switch mark {
			case "right", "wrong":
			case "none":
				mark = ""
			default:
				return usageError{fmt.Errorf("%q is not right, wrong or none; see %s --help", mark, cmd.CommandPath())}
			}
			req.Mark = &mark
			var got data[gateway.Marked]
			if err := newClient().call(cmd.Context(), "POST", "/v1/learning/questions/"+url.PathEscape(args[0])+"/mark", req, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), markedText(got.Data))
			return nil
		},
	}
	cmd.Flags().StringVar(&req.SQL, "sql", "", "the right SQL, when the answer's was not")
	cmd.Flags().StringVar(&req.Question, "question", "", "the question as it is asked on its own, where it went on from another")
	cmd.Flags().StringVar(&req.Note, "note", "", "why")
	cmd.Flags().BoolVar(&req.Shared, "shared", false, "for everybody who may read what it reads (admin)")
	return cmd
}

func markedText(m gateway.Marked) string {
	text := printable(m.ID) + " has no mark now"
	if m.Mark != "" {
		text = printable(m.ID) + " is marked " + m.Mark
	}
	if m.Verified != nil {
		text += "; it is answered so from now on, as " + m.Verified.ID
		if m.Verified.Shared {
			text += ", for everybody"
		}
	}
	if m.Why != "" {
		text += "; " + printable(m.Why)
	}
	if len(m.Withdrawn) > 0 {
		text += "; withdrawn: " + strings.Join(m.Withdrawn, ", ")
	}
	if len(m.Kept) > 0 {
		text += "; only an admin withdraws: " + strings.Join(m.Kept, ", ")
	}
	return text
}
