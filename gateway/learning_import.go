package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/agent"
	"sluice/fault"
)

// Imported is what became of a file.
type Imported struct {
	Added     int             `json:"added"`
	Replaced  int             `json:"replaced"` // had other SQL before, or another name or note
	Unchanged int             `json:"unchanged"`
	Refused   int             `json:"refused"`
	DryRun    bool            `json:"dry_run"` // it is what would become of it
	Entries   []ImportedEntry `json:"entries"` // as they stand in the file
}

// ImportedEntry is what became of one entry.
type ImportedEntry struct {
	Name     string `json:"name,omitempty"`
	Question string `json:"question"`
	Status   string `json:"status"` // added, replaced, unchanged, refused
	ID       string `json:"id,omitempty"`
	Error    string `json:"error,omitempty"`
}

// learningImport is POST /v1/learning/import. Each statement passes the gate for the caller; none of them runs. A file that was
// imported before changes nothing.
func (s *server) learningImport(c *gin.Context) {
	var req VerifiedFile
	who := principal(c)
	err := readVerifiedFile(c, &req)
	if err == nil {
		err = req.settings(c)
	}
	if err == nil {
		err = mayConfirm(who)
	}
	if err == nil {
		err = mayShare(who, req.Shared)
	}
	if err == nil {
		_, err = s.learning()
	}
	var out Imported
	var pairs []agent.Verified
	if err == nil {
		out, pairs, err = s.weighed(c, req)
	}
	if err == nil && out.Refused > 0 && !req.Partial && !req.DryRun {
		err = refusedEntries(out)
	}
	if err == nil && len(pairs) > 0 && !req.DryRun {
		details := map[string]any{"added": out.Added, "replaced": out.Replaced, "unchanged": out.Unchanged, "refused": out.Refused, "shared": req.Shared, "for": pairs[0].Owner}
		var ids []string
		for _, v := range pairs {
			ids = append(ids, v.ID)
		}
		details["verified"] = ids
		err = s.audited(c, "learning.import", details, func() error {
			_, err := s.cfg.Learning.PutVerified(context.WithoutCancel(c.Request.Context()), pairs)
			return err
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, out)
}

// settings takes what the address says over what the file says: a file is sent as it is.
func (f *VerifiedFile) settings(c *gin.Context) error {
	if database, given := c.GetQuery("database"); given {
		f.Database = database
	}
	for name, at := range map[string]*bool{"shared": &f.Shared, "partial": &f.Partial, "dry_run": &f.DryRun} {
		text, given := c.GetQuery(name)
		if !given {
			continue
		}
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fault.New(fault.Invalid, "gateway.import", "%s must be true or false", name)
		}
		*at = on
	}
	return nil
}

// weighed says what becomes of each entry, and gives the pairs that are to be stored.
func (s *server) weighed(c *gin.Context, f VerifiedFile) (out Imported, pairs []agent.Verified, err error) {
	out = Imported{DryRun: f.DryRun, Entries: make([]ImportedEntry, len(f.Queries))}
	seen := map[string]string{} // SQL, by database and question
	for i, e := range f.Queries {
		to := &out.Entries[i]
		to.Name, to.Question = printable(e.Name, 200), printable(e.Question, 500)
		v, err := s.entry(c, f, e)
		if ctx := c.Request.Context(); ctx.Err() != nil {
			return out, nil, fault.Wrap(context.Cause(ctx), fault.Canceled, "gateway.import", "the request was cancelled")
		}
		key := v.Database + "\x00" + v.Question
		if had, twice := seen[key]; err == nil && twice {
			if had == v.SQL {
				to.Status = "unchanged"
				out.Unchanged++
				continue
			}
			err = fault.New(fault.Invalid, "gateway.import", "the question stands in the file before, with other SQL")
		}
		if err == nil {
			to.Status, err = s.against(c, &v)
		}
		if err != nil {
			if code := fault.CodeOf(err); code == fault.Internal || code == fault.Busy {
				return out, nil, err // nothing that the entry could help
			}
			to.Status, to.Error = "refused", sentence(fault.Public(err))
			out.Refused++
			continue
		}
		seen[key], to.ID = v.SQL, v.ID
		switch to.Status {
		case "unchanged":
			out.Unchanged++
			continue
		case "added":
			out.Added++
		case "replaced":
			out.Replaced++
		}
		pairs = append(pairs, v)
	}
	return out, pairs, nil
}

// entry makes a pair of an entry. Who confirmed it, and when, is taken from the file for an admin alone: anybody else could
// write a name of his choice there.
func (s *server) entry(c *gin.Context, f VerifiedFile, e VerifiedEntry) (agent.Verified, error) {
	who, now := principal(c), s.now().UTC()
	v := agent.Verified{ID: "vq_" + rand.Text(), Database: e.Database, Name: e.Name, Question: strings.TrimSpace(e.Question), Note: e.Note, VerifiedBy: who.Owner, VerifiedAt: now}
	if v.Database == "" {
		v.Database = f.Database
	}
	v.Owner, v.KeyID = serves(who, f.Shared)
	if err := checkPair(e.Question, e.SQL, e.Name, e.Note, e.VerifiedBy); err != nil {
		return v, err
	}
	if access.MayAdminister(who) == nil {
		if by := strings.Join(strings.Fields(e.VerifiedBy), " "); by != "" {
			v.VerifiedBy = printable(by, 128)
		}
		if at := time.Unix(int64(e.VerifiedAt), 0).UTC(); e.VerifiedAt > 0 && at.Before(now) {
			v.VerifiedAt = at
		}
	}
	var err error
	v.SQL, err = s.approvedPair(c, v.Database, e.SQL)
	return v, err
}

// against compares a pair with the one that is there.
func (s *server) against(c *gin.Context, v *agent.Verified) (status string, err error) {
	old, err := s.cfg.Learning.VerifiedAs(c.Request.Context(), v.Database, v.Owner, v.KeyID, v.Question)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return "added", nil
	case err != nil:
		return "", err
	}
	v.ID = old.ID
	if v.SQL == old.SQL && (v.Name == "" || v.Name == old.Name || old.Name == "") && (v.Note == "" || v.Note == old.Note) {
		return "unchanged", nil
	}
	return "replaced", nil
}

// refusedEntries is the error of a file that is not imported, with the reasons of the first entries.
func refusedEntries(out Imported) error {
	const most = 10
	var reasons []string
	for i, e := range out.Entries {
		if e.Status == "refused" && len(reasons) < most {
			reasons = append(reasons, fmt.Sprintf("entry %d (%s): %s", i+1, printable(e.Question, 80), e.Error))
		}
	}
	text := strings.Join(reasons, "; ")
	if out.Refused > most {
		text += fmt.Sprintf("; and %d more", out.Refused-most)
	}
	return &fault.Error{Code: fault.Refused, Op: "gateway.import", Msg: fmt.Sprintf("%d of %d entries are refused, so nothing was imported: %s", out.Refused, len(out.Entries), text),
		Hint: "with partial=true the others are imported, with dry_run=true all are reported and none is"}
}
