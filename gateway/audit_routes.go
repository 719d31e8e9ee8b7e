package gateway

import (
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// usualEntries is how many entries of the ledger are listed without a limit.
const usualEntries = 100

// auditEntries is GET /v1/audit: entries, newest first. kind (exactly, or a beginning such as "key."), principal and since
// choose; cursor is the next_cursor of the page before.
func (s *server) auditEntries(c *gin.Context) {
	f, err := auditFilter(c)
	var entries []AuditEntry
	if err == nil {
		want := f.Limit
		f.Limit++ // one more tells whether there is a next page
		entries, err = s.cfg.Ledger.Entries(c.Request.Context(), f)
		f.Limit = want
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	meta := gin.H{}
	if len(entries) > f.Limit {
		entries = entries[:f.Limit]
		meta["next_cursor"] = strconv.FormatInt(entries[f.Limit-1].Seq, 10)
	}
	if entries == nil {
		entries = []AuditEntry{}
	}
	reply(c, entries, meta)
}

func auditFilter(c *gin.Context) (AuditFilter, error) {
	const op = "gateway.audit"
	f := AuditFilter{Kind: c.Query("kind"), Principal: c.Query("principal"), Limit: usualEntries}
	number := func(name string, most int64) (int64, error) {
		n, err := strconv.ParseInt(c.Query(name), 10, 64)
		if err != nil || n < 1 || n > most {
			return 0, fault.New(fault.Invalid, op, "%s must be a number from 1 to %d", name, most)
		}
		return n, nil
	}
	query := c.Request.URL.Query()
	if query.Has("limit") {
		n, err := number("limit", maxList)
		if err != nil {
			return f, err
		}
		f.Limit = int(n)
	}
	if query.Has("cursor") {
		n, err := number("cursor", 1<<62)
		if err != nil {
			return f, fault.New(fault.Invalid, op, "cursor must be the next_cursor of another answer")
		}
		f.Before = n
	}
	if query.Has("since") {
		at, err := time.Parse(time.RFC3339, c.Query("since"))
		if err != nil {
			if at, err = time.Parse(time.DateOnly, c.Query("since")); err != nil {
				return f, fault.New(fault.Invalid, op, "since must be a time such as 2026-01-31T00:00:00Z, or a day such as 2026-01-31")
			}
		}
		f.Since = at
	}
	return f, nil
}

// auditVerify is GET /v1/audit/verify: a walk through the whole ledger.
func (s *server) auditVerify(c *gin.Context) {
	v, err := s.cfg.Ledger.Verify(c.Request.Context())
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, v)
}
