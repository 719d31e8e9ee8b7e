package gateway

import (
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/database"
	"sluice/fault"
	"sluice/lakecopy"
	"sluice/sqlguard"
)

// lake is the lake's service, or a sentence when none is configured.
func (s *server) lake() (*lakecopy.Service, error) {
	if s.cfg.Lake == nil {
		return nil, fault.New(fault.Unimplemented, "gateway.lake", "this server has no lake configured")
	}
	return s.cfg.Lake, nil
}

// copyToLake runs a COPY, or says what it would do, and answers when it is done. Whoever may not is refused here, before the statement is looked
// at; the service checks again, with the path.
func (s *server) copyToLake(c *gin.Context, src *database.Source, stmt sqlguard.Copy, text string) {
	err := access.MayCopy(principal(c))
	var lake *lakecopy.Service
	if err == nil {
		lake, err = s.lake()
	}
	var res any
	switch {
	case err != nil:
	case stmt.Explain:
		res, err = lake.Explain(c.Request.Context(), principal(c), src, stmt)
	default:
		res, err = lake.Copy(c.Request.Context(), principal(c), src, stmt, text)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, res)
}

func (s *server) createExternal(c *gin.Context, src *database.Source, stmt sqlguard.CreateExternal) {
	err := access.MayExternal(principal(c))
	var lake *lakecopy.Service
	if err == nil {
		lake, err = s.lake()
	}
	if err == nil {
		err = lake.CreateExternal(c.Request.Context(), principal(c), src, stmt)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"created": stmt.Name})
}

func (s *server) dropExternal(c *gin.Context, src *database.Source, stmt sqlguard.DropExternal) {
	err := access.MayExternal(principal(c))
	var lake *lakecopy.Service
	if err == nil {
		lake, err = s.lake()
	}
	if err == nil {
		err = lake.DropExternal(c.Request.Context(), principal(c), src.Name(), stmt)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"dropped": stmt.Name})
}

// lakeCopy is POST /v1/lake/copy. In this version it waits for the result.
func (s *server) lakeCopy(c *gin.Context) {
	var req struct {
		Database string `json:"database"`
		SQL      string `json:"sql"`
		Wait     *bool  `json:"wait"`
	}
	err := decodeStrict(c, &req)
	switch {
	case err != nil:
	case c.Request.Header.Get("Idempotency-Key") != "":
		// A client that sends one repeats the request when in doubt: better none of it than twice.
		err = fault.New(fault.Unimplemented, "gateway.lakeCopy", "Idempotency-Key is not part of this version of Sluice")
	case req.Wait != nil && !*req.Wait:
		err = &fault.Error{Code: fault.Unimplemented, Op: "gateway.lakeCopy", Msg: "COPY as a job is not part of this version of Sluice", Hint: "leave wait out: the answer comes when the copy is done"}
	case req.SQL == "":
		err = fault.New(fault.Invalid, "gateway.lakeCopy", "sql is required")
	}
	var src *database.Source
	if err == nil {
		src, err = s.source(c, req.Database)
	}
	var stmt sqlguard.Statement
	if err == nil {
		stmt, err = sqlguard.Classify(req.SQL)
	}
	if err == nil && stmt.Copy == nil {
		err = &fault.Error{Code: fault.Invalid, Op: "gateway.lakeCopy", Kind: "syntax", Msg: "the statement is not COPY (…) TO LAKE '…' WITH (…)"}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.copyToLake(c, src, *stmt.Copy, req.SQL)
}

type runInfo struct {
	ID         string     `json:"id"`
	JobID      string     `json:"job_id"`
	Key        string     `json:"key"`
	Owner      string     `json:"owner"`
	Database   string     `json:"database"`
	Statement  string     `json:"statement"`
	Connection string     `json:"connection"`
	Path       string     `json:"path"`
	State      string     `json:"state"`
	Kind       string     `json:"kind,omitempty"`
	Error      string     `json:"error,omitempty"`
	Rows       int64      `json:"rows"`
	Files      int64      `json:"files"`
	Bytes      int64      `json:"bytes"`
	Partitions int64      `json:"partitions"`
	StartedAt  time.Time  `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at,omitempty"`
}

// maxRuns bounds the list, and how far back a caller's own runs are looked for.
const maxRuns = 1000

// lakeRuns lists runs, newest first: an admin's all, anybody else's own. Statements hold what others ask about.
func (s *server) lakeRuns(c *gin.Context) {
	limit := 100
	var err error
	if text := c.Query("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxRuns {
			err = fault.New(fault.Invalid, "gateway.lakeRuns", "limit must be a number from 1 to %d", maxRuns)
		}
	}
	var lake *lakecopy.Service
	if err == nil {
		lake, err = s.lake()
	}
	var runs []lakecopy.Run
	if err == nil {
		runs, err = lake.Runs(c.Request.Context(), maxRuns)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	who := principal(c)
	all := access.MayManage(who) == nil
	list := []runInfo{}
	for _, r := range runs {
		if len(list) == limit {
			break
		}
		if r.Principal == who.KeyID || all && access.MayDatabase(who, r.Database) && who.Tables == nil {
			list = append(list, wireRun(r))
		}
	}
	reply(c, list)
}

func wireRun(r lakecopy.Run) runInfo {
	info := runInfo{ID: r.ID, JobID: r.JobID, Key: r.Principal, Owner: r.Owner, Database: r.Database, Statement: r.Statement, Connection: r.Connection,
		Path: r.Path, State: string(r.State), Kind: r.Kind, Error: r.Error, Rows: r.Rows, Files: r.Files, Bytes: r.Bytes, Partitions: r.Partitions, StartedAt: r.StartedAt}
	if !r.EndedAt.IsZero() {
		info.EndedAt = &r.EndedAt
	}
	return info
}

type connectionInfo struct {
	Name           string   `json:"name"`
	URL            string   `json:"url,omitempty"`
	WriteAllowlist []string `json:"write_allowlist"`
	Managed        []string `json:"managed"`
}

// lakeConnections lists the connections. Where they lead is shown to admins only, and never with a credential.
func (s *server) lakeConnections(c *gin.Context) {
	lake, err := s.lake()
	if err != nil {
		s.fail(c, err)
		return
	}
	list := []connectionInfo{}
	for _, conn := range lake.Connections() {
		info := connectionInfo{Name: conn.Name, WriteAllowlist: conn.WriteAllowlist, Managed: conn.Managed}
		if info.WriteAllowlist == nil {
			info.WriteAllowlist = []string{}
		}
		if info.Managed == nil {
			info.Managed = []string{}
		}
		if access.MayManage(principal(c)) == nil {
			info.URL = withoutSecrets(conn.URL)
		}
		list = append(list, info)
	}
	reply(c, list)
}

// withoutSecrets keeps scheme, host and path of a URL: a user or a query may hold a credential.
func withoutSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
