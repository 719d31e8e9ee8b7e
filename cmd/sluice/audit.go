package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sluice/fault"
	"sluice/gateway"
)

func auditCmd() *cobra.Command {
	return group(&cobra.Command{Use: "audit", Short: "Read and check the audit ledger (admin)"}, auditVerifyCmd(), auditListCmd())
}

func auditVerifyCmd() *cobra.Command {
	var known string
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the whole audit ledger; status 1 unless it is intact", Args: cobra.NoArgs,
		Long: "Check the whole audit ledger. It is intact, partial (entries are missing, or the head is), or tampered.\n" +
			"The number and hash of the last entry are printed: noted down outside the machine and given later with --since,\n" +
			"they show that nothing up to there was changed, whoever had store, head and key.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := verifyAudit(cmd.Context(), newClient(), known)
			if err != nil {
				return err
			}
			if wantJSON(cmd) {
				if err := printJSON(cmd, v); err != nil {
					return err
				}
			} else {
				fmt.Fprintln(cmd.OutOrStdout(), verdictText(v))
			}
			if v.Status != "intact" {
				return fault.New(fault.Conflict, "audit", "the audit ledger is %s", v.Status)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&known, "since", "", "NUMBER:HASH of an earlier check, which must still be in the ledger")
	return cmd
}

func verdictText(v gateway.AuditVerdict) string {
	text := v.Status + ": " + countOf(v.Entries)
	if v.Reason != "" {
		text += "; " + v.Reason
	}
	if v.FirstBad != 0 {
		text += fmt.Sprintf("; the first bad entry is %d", v.FirstBad)
	}
	if v.Seq > 0 {
		text += fmt.Sprintf("\nlast entry %d:%s", v.Seq, v.Hash)
	}
	return text
}

func countOf(entries int64) string {
	if entries == 1 {
		return "1 entry"
	}
	return strconv.FormatInt(entries, 10) + " entries"
}

// verifyAudit has the server check its ledger, and compares the entry that somebody noted down.
func verifyAudit(ctx context.Context, c *client, known string) (gateway.AuditVerdict, error) {
	var noted int64
	number, hash, given := strings.Cut(known, ":")
	if given || known != "" {
		var err error
		if noted, err = strconv.ParseInt(number, 10, 64); err != nil || noted < 1 || len(hash) != 64 {
			return gateway.AuditVerdict{}, usageError{fmt.Errorf("--since: %q is not NUMBER:HASH, as `sluice audit verify` prints it", known)}
		}
	}
	var got data[gateway.AuditVerdict]
	if err := c.call(ctx, "GET", "/v1/audit/verify", nil, &got); err != nil {
		return gateway.AuditVerdict{}, err
	}
	if noted == 0 {
		return got.Data, nil
	}
	var entries data[[]gateway.AuditEntry]
	if err := c.call(ctx, "GET", "/v1/audit?limit=1&cursor="+strconv.FormatInt(noted+1, 10), nil, &entries); err != nil {
		return gateway.AuditVerdict{}, err
	}
	return comparedTo(got.Data, entries.Data, noted, hash), nil
}

// comparedTo lays over a verdict what the entry of a number is now.
func comparedTo(v gateway.AuditVerdict, found []gateway.AuditEntry, noted int64, hash string) gateway.AuditVerdict {
	switch {
	case v.Status == "tampered":
	case len(found) == 0 || found[0].Seq != noted:
		v.Status, v.FirstBad, v.Reason = "partial", noted, fmt.Sprintf("entry %d, which was noted down, is missing", noted)
	case !strings.EqualFold(found[0].Hash, hash):
		v.Status, v.FirstBad, v.Reason = "tampered", noted, fmt.Sprintf("entry %d is not the one that was noted down: it, or an earlier one, was written anew", noted)
	}
	return v
}

func auditListCmd() *cobra.Command {
	var kind, who, since string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List entries, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			for name, v := range map[string]string{"kind": kind, "principal": who, "since": since} {
				if v != "" {
					query.Set(name, v)
				}
			}
			query.Set("limit", strconv.Itoa(limit))
			var got data[[]gateway.AuditEntry]
			if err := newClient().call(cmd.Context(), "GET", "/v1/audit?"+query.Encode(), nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var rows [][]string
			for _, e := range got.Data {
				rows = append(rows, []string{strconv.FormatInt(e.Seq, 10), e.Time.Format("2006-01-02 15:04:05Z"), e.Kind, e.Principal, string(e.Details)})
			}
			return printTable(cmd.OutOrStdout(), []string{"NUMBER", "TIME", "KIND", "PRINCIPAL", "DETAILS"}, rows)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only this kind, such as key.create; or all that begin so, such as key.")
	cmd.Flags().StringVar(&who, "principal", "", "only those of this key or login, by its id")
	cmd.Flags().StringVar(&since, "since", "", "only from this day or time on, such as 2026-01-31")
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so many, up to 1000")
	return cmd
}
