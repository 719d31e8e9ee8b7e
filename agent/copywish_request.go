package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
)

// CopyRequested is the outcome of a wish to copy: a person has to approve it, and nothing was copied.
const CopyRequested Outcome = "copy_requested"

// CopyDoor makes copy requests for the asker of one ask. It checks all rights.
type CopyDoor interface {
	// Places gives the connections to whose folder path the asker may ask for a copy, at least one. An error tells the
	// asker why there is none.
	Places(path string) ([]string, error)
	// Request makes a request of a COPY statement, or refuses it; ask is the ask's id.
	Request(ctx context.Context, ask, statement string) (access.CopyRequest, error)
}

// wishesCopy looks whether the question wishes a copy. Then the rest of the ask is about what is to be copied. done says that
// something is missing, or that no model is needed.
func (k *ask) wishesCopy() (done bool) {
	if k.q.Copy == nil {
		return false
	}
	w, ok := copyWishIn(k.q.Question)
	if !ok {
		return false
	}
	k.copy = &w
	if w.whole != "" {
		return true
	}
	if w.path == "" {
		k.noCopy("it does not say where to copy to; name a folder of the lake, as in: export … to lake 'exports/may'")
		return true
	}
	places, err := k.q.Copy.Places(w.path)
	if err != nil {
		k.noCopy(fault.Public(err).Msg)
		return true
	}
	for _, name := range places {
		if w.connection == "" && len(places) > 1 && slices.ContainsFunc(strings.Fields(w.around), func(f string) bool { return strings.Trim(f, `.,;:!?"'()`) == name }) {
			k.copy.connection = name
		}
	}
	switch {
	case k.copy.connection == "" && len(places) == 1:
		k.copy.connection = places[0]
	case k.copy.connection == "":
		k.noCopy("it does not say through which connection; add one of: connection " + strings.Join(places, ", connection "))
		return true
	case !slices.Contains(places, k.copy.connection):
		k.noCopy("you may not copy to '" + w.path + "' through a connection '" + k.copy.connection + "'; you may through " + strings.Join(places, ", "))
		return true
	}
	if w.subject != "" {
		k.q.Question = w.subject
		return false
	}
	if n := len(k.q.Earlier); n > 0 && strings.TrimSpace(k.q.Earlier[n-1].SQL) != "" { // "export that": what was answered last
		k.answer.SQL = strings.TrimSpace(k.q.Earlier[n-1].SQL)
		k.answer.Outcome = Answered
		return true
	}
	k.noCopy("it does not say what to copy; name it, as in: export all orders of May to lake 'exports/may'")
	return true
}

// asked is the question as the asker put it.
func (k *ask) asked() string {
	if k.copy != nil {
		return k.copy.asked
	}
	return k.q.Question
}

// innerOfCopy is the query of a COPY that the model wrote, where a copy is wished: where that would copy to is not looked at.
func (k *ask) innerOfCopy(stmt sqlguard.Statement) (string, bool) {
	if k.copy == nil || stmt.Copy == nil || stmt.Copy.Explain {
		return "", false
	}
	return strings.TrimSpace(stmt.Copy.Query), true
}

// requestCopy turns an answer into a copy request, where a copy was wished. No row is part of that answer.
func (k *ask) requestCopy(ctx context.Context) error {
	if k.copy == nil || k.answer.Outcome != Answered && k.copy.whole == "" {
		return nil
	}
	statement := k.copy.whole
	if statement == "" {
		statement = k.copy.statement(k.answer.SQL, k.answer.Table)
	}
	k.answer.Table = nil
	r, err := k.q.Copy.Request(ctx, k.answer.ID, statement)
	switch code := fault.CodeOf(err); {
	case err == nil:
	case code == fault.Canceled || code == fault.Internal || ctx.Err() != nil:
		return err
	default:
		k.noCopy(fault.Public(err).Msg)
		return nil
	}
	k.answer.Outcome, k.answer.Copy, k.answer.Reason, k.answer.Verified = CopyRequested, &r, "", false
	if k.answer.SQL == "" {
		k.answer.SQL = r.SQL
	}
	until := r.ExpiresAt.UTC().Format(time.RFC3339)
	k.answer.Text = presentable(fmt.Sprintf("Nothing was copied yet. A copy to '%s' (connection %s) was requested, and waits until %s for somebody to approve it: request %s.",
		r.Folder.Path, r.Folder.Connection, until, r.ID), "Nothing was copied yet. The copy was requested, and waits for somebody to approve it: request "+r.ID+".")
	return nil
}

// noCopy declines a wish to copy.
func (k *ask) noCopy(reason string) {
	k.answer.Table = nil
	k.answer.Outcome, k.answer.Reason = Declined, presentable(reason, "the copy was refused")
	k.answer.Text = "No copy was requested: " + k.answer.Reason + "."
}

// statement puts the COPY together.
func (w *copyWish) statement(sql string, table *Table) string {
	literal := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	options := []string{"CONNECTION = " + literal(w.connection)}
	if len(w.partition) > 0 {
		names := make([]string, len(w.partition))
		for i, name := range w.partition {
			if table != nil {
				for _, c := range table.Columns {
					if strings.EqualFold(c.Name, name) {
						name = c.Name
					}
				}
			}
			names[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
		options = append(options, "PARTITION_BY = ("+strings.Join(names, ", ")+")")
	}
	if w.mode == sqlguard.Append {
		options = append(options, "MODE = 'append'")
	}
	return "COPY (\n" + sql + "\n) TO LAKE " + literal(w.path) + " WITH (" + strings.Join(options, ", ") + ")"
}
