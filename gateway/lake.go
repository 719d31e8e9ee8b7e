package gateway

import (
	"cmp"
	"context"
	"net/url"
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

// onLake runs a COPY, or says what it would do, or makes or drops an external table, and answers when that is done. Whoever
// may not is refused here, before the statement is looked at; the service checks again, with the path.
func (s *server) onLake(c *gin.Context, src *database.Source, stmt sqlguard.Statement, text string) {
	if s.asksForCopy(principal(c), stmt) {
		s.replyCopyRequest(c, src, text)
		return
	}
	who, may, kind := principal(c), access.MayExternal, externalKind
	if stmt.Copy != nil {
		may, kind = access.MayCopyFrom, copyKind
	}
	err := may(who, src.Name(), s.moment())
	if err == nil && stmt.Create != nil && src.Dialect() != sqlguard.DuckDB {
		err = &fault.Error{Code: fault.Invalid, Op: "gateway.lake", Kind: "syntax",
			Msg: "a database of PostgreSQL has no external tables: its server cannot read the lake", Hint: "make the external table in a database of the kind duckdb"}
	}
	var lake *lakecopy.Service
	if err == nil {
		lake, err = s.lake()
	}
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	if err == nil {
		_, done := s.begin(c, kind, src.Name(), text, cancel)
		defer done()
	}
	var res any
	switch {
	case err != nil:
	case stmt.Copy != nil && stmt.Copy.Explain:
		res, err = lake.Explain(ctx, who, src, *stmt.Copy)
	case stmt.Copy != nil:
		res, err = lake.Copy(ctx, who, src, *stmt.Copy, text)
	case stmt.Create != nil:
		res, err = gin.H{"created": stmt.Create.Name}, lake.CreateExternal(ctx, who, src, *stmt.Create)
	case stmt.Drop != nil:
		res, err = gin.H{"dropped": stmt.Drop.Name}, lake.DropExternal(ctx, who, src.Name(), *stmt.Drop)
	default:
		err = fault.Bug("a statement of no kind that runs on the lake")
	}
	if fault.CodeOf(err) == fault.Canceled { // what failed in another way tells more than that it was to end
		err = ended(ctx, err)
	}
	s.meters.statement(kind, err)
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, res)
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
	}
	var src *database.Source
	var stmt sqlguard.Statement
	if err == nil {
		src, stmt, err = s.statement(c, req.Database, req.SQL)
	}
	if err == nil && stmt.Copy == nil {
		err = &fault.Error{Code: fault.Invalid, Op: "gateway.lakeCopy", Kind: "syntax", Msg: "the statement is not COPY (…) TO LAKE '…' WITH (…)"}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.onLake(c, src, stmt, req.SQL)
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

// usualRuns is how many runs are listed without a limit.
const usualRuns = 100

// lakeRuns lists runs, newest first: an admin's all, anybody else's own. Statements hold what others ask about. The
// latest maxList of all are looked through.
func (s *server) lakeRuns(c *gin.Context, limit int) ([]runInfo, error) {
	lake, err := s.lake()
	if err != nil {
		return nil, err
	}
	runs, err := lake.Runs(c.Request.Context(), maxList)
	if err != nil {
		return nil, err
	}
	who := principal(c)
	all := access.MayManage(who) == nil
	// A person sees what any of his logins and keys did; a key, which may be narrowed or in other hands, only its own.
	own := func(r lakecopy.Run) bool { return r.Principal == who.KeyID || who.Login && r.Owner == who.Owner }
	var found []runInfo
	for _, r := range runs {
		if len(found) == cmp.Or(limit, usualRuns) {
			break
		}
		if own(r) || all && access.MayWhole(who, r.Database) {
			found = append(found, wireRun(r))
		}
	}
	return found, nil
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

// lakeConnections lists the connections that the caller has a grant for, an admin all. Where they lead is shown to admins only, and never with a credential.
func (s *server) lakeConnections(c *gin.Context, _ int) ([]connectionInfo, error) {
	lake, err := s.lake()
	if err != nil {
		return nil, err
	}
	var all []connectionInfo
	for _, conn := range lake.Connections() {
		if !access.MaySeeConnection(principal(c), conn.Name) {
			continue
		}
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
		all = append(all, info)
	}
	return all, nil
}

// withoutSecrets keeps scheme, host and path of a URL: a user or a query may hold a credential.
func withoutSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
