package gateway

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/access"
	"sluice/agent"
	"sluice/database"
	"sluice/lakecopy"
	"sluice/store"
)

// withRequests is withShop with copy requests, on the clock of its accounts.
func withRequests(t testing.TB) *fixture {
	t.Helper()
	f := withShop(t)
	f.cfg.CopyRequests = f.people.store
	f.byTheirClock()
	return f
}

// asking is ann, whose agent asked for a copy, and bob, who could approve it.
type asking struct {
	*fixture
	t            *testing.T
	ann, bob     string   // their logins
	agent        string   // ann's agent's key
	agentID      string   // its id
	grants       []string // ids: ann's database, ann's lake_write, bob's database, bob's lake_write
	path, id, as string   // of the request; as completes names, so that one store serves many cases
}

var shopGrant = access.Grant{Kind: access.GrantDatabase, Database: "shop"}

func writeGrant(path string) access.Grant {
	return access.Grant{Kind: access.GrantLakeWrite, Connection: "local", Path: path}
}

func newAsking(t *testing.T, f *fixture, as string) *asking {
	t.Helper()
	a := &asking{fixture: f, t: t, as: as, path: "exports/" + as}
	a.person("ann"+as, access.ReadWrite)
	a.person("bob"+as, access.ReadWrite)
	for _, g := range []struct {
		to string
		g  access.Grant
	}{{"ann", shopGrant}, {"ann", writeGrant(a.path)}, {"bob", shopGrant}, {"bob", writeGrant(a.path)}} {
		a.grants = append(a.grants, f.grant(t, g.to+as, g.g).ID)
	}
	a.ann, a.bob = a.enter("ann"+as), a.enter("bob"+as)
	key := data[m](t, f.json("POST", "/v1/keys", a.ann, m{"name": "robot", "role": "read_write", "agent": true}))
	a.agent, a.agentID = key["key"].(string), key["id"].(string)
	return a
}

func (a *asking) statement() string { return copySQL(a.as) }

// ask has the agent send the COPY.
func (a *asking) ask() m {
	a.t.Helper()
	w := a.do(call{method: "POST", path: "/v1/lake/copy", bearer: a.agent, body: m{"database": "shop", "sql": a.statement()}})
	wantStatus(a.t, w, 202)
	got := object(a.t, w.Body.Bytes())["data"].(m)
	if got["outcome"] != "copy_requested" {
		a.t.Errorf("outcome: %v", got)
	}
	r := got["copy_request"].(m)
	a.id = r["id"].(string)
	return r
}

func (a *asking) route() string { return "/v1/lake/copy/requests/" + a.id }

func (a *asking) state() string {
	a.t.Helper()
	return data[m](a.t, a.json("GET", a.route(), adminKey, nil))["state"].(string)
}

// landed says whether anything was published.
func (a *asking) landed() bool {
	root := strings.TrimPrefix(a.cfg.Lake.Connections()[0].URL, "file://")
	_, err := os.Stat(filepath.Join(root, a.path))
	return err == nil
}

func (a *asking) takeAway(grant int) {
	a.t.Helper()
	if err := a.people.DeleteGrant(a.t.Context(), a.grants[grant]); err != nil {
		a.t.Fatal(err)
	}
}

// person makes a user without a password, whom enter logs in all the same: hashing many passwords takes its time.
func (a *asking) person(name string, role access.Role, grants ...access.Grant) {
	a.t.Helper()
	_, err := a.people.CreateUser(a.t.Context(), access.User{Name: name, Role: role}, "")
	must(a, err)
	for _, g := range grants {
		a.grant(a.t, name, g)
	}
}

// enter gives the token of a login that has just begun.
func (a *asking) enter(name string) string {
	a.t.Helper()
	file, err := sql.Open("sqlite", a.people.path+"?_pragma=busy_timeout(5000)")
	must(a, err)
	defer file.Close()
	token, now := "slt_"+rand.Text(), a.people.now()
	_, err = file.ExecContext(a.t.Context(), "INSERT INTO logins (id, hash, owner, created_at, authenticated_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
		"login_"+rand.Text(), store.HashSecret(token), name, now.UnixMicro(), now.UnixMicro(), now.Add(100*time.Hour).UnixMicro())
	must(a, err)
	return token
}

// exec changes the store behind the program's back, which only who has the file can.
func (a *asking) exec(change string, args ...any) {
	a.t.Helper()
	file, err := sql.Open("sqlite", a.people.path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		a.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.ExecContext(a.t.Context(), change, args...); err == nil || !strings.Contains(err.Error(), "never changes") {
		a.t.Errorf("the trigger lets it pass: %v", err)
	}
	for _, step := range []struct {
		text string
		args []any
	}{{"DROP TRIGGER copy_requests_bound", nil}, {change, args}, {boundTrigger, nil}} {
		if _, err := file.ExecContext(a.t.Context(), step.text, step.args...); err != nil {
			a.t.Fatal(err)
		}
	}
}

// boundTrigger is that of the migration.
const boundTrigger = `CREATE TRIGGER copy_requests_bound BEFORE UPDATE OF id, sha256, statement, database, connection, path, key_id, owner, login, created_at, expires_at ON copy_requests
BEGIN SELECT RAISE(ABORT, 'what a copy request is bound to never changes'); END`

// doIn is do in a context of the test's.
func (a *asking) doIn(ctx context.Context, c call) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, c.method, c.path, nil)
	r.Host = "127.0.0.1:11434"
	r.Header.Set("Authorization", "Bearer "+c.bearer)
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

func TestAnAgentsCopyWaitsForAPerson(t *testing.T) {
	f := withRequests(t)
	a := newAsking(t, f, "x")
	r := a.ask()
	sum := access.CopyRequestSum(a.statement(), "shop", "exports/x")
	for name, want := range map[string]any{"state": "pending", "statement": a.statement(), "database": "shop", "connection": "local", "path": "exports/x", "owner": "annx", "key": a.agentID,
		"key_name": "robot", "sha256": hex.EncodeToString(sum[:]), "sql": "SELECT id, sold, region FROM shop.main.sale"} {
		if r[name] != want {
			t.Errorf("%s is %v, want %v", name, r[name], want)
		}
	}
	if got := fmt.Sprint(r["columns"]); !strings.Contains(got, "name:region partition:true") || !strings.Contains(got, "name:id partition:false type:INT64") {
		t.Errorf("columns: %s", got)
	}
	made, _ := time.Parse(time.RFC3339, r["created_at"].(string))
	if ends, _ := time.Parse(time.RFC3339, r["expires_at"].(string)); ends.Sub(made) != 24*time.Hour {
		t.Errorf("from %s to %s", r["created_at"], r["expires_at"])
	}
	if again := a.ask(); again["id"] != r["id"] {
		t.Error("asked again, there is a second request")
	}
	if a.landed() {
		t.Fatal("copied without approval")
	}
	w := a.json("POST", a.route()+"/approve", a.bob, m{"sha256": r["sha256"]})
	got := data[m](t, w)
	if got["rows_written"] != 5000.0 || got["partitions_touched"] != 4.0 || got["job_id"] != a.id || !a.landed() {
		t.Errorf("approved: %v", got)
	}
	done := data[m](t, a.json("GET", a.route(), a.agent, nil)) // the agent sees what became of it
	if done["state"] != "done" || done["decided_by"] != "bobx" || done["run_id"] != got["run_id"] || done["ended_at"] == nil || done["error"] != nil {
		t.Errorf("done: %v", done)
	}
	var trail []string
	for _, e := range ledgerOf(f).entries {
		if strings.HasPrefix(e.Kind, "copy.") {
			d := object(t, e.Details)
			if d["asked_by"] != "annx" || d["copy_request"] != a.id || e.Kind != "copy.request" && d["decided_by"] != "bobx" || d["failed"] != nil {
				t.Errorf("%s: %v", e.Kind, d)
			}
			trail = append(trail, e.Kind)
		}
	}
	if got := fmt.Sprint(trail); got != "[copy.request copy.approve copy.run]" {
		t.Errorf("in the ledger: %s", got)
	}
	e := failure(t, a.json("POST", a.route()+"/approve", a.bob, nil), 409, "conflict")
	if !strings.Contains(fmt.Sprint(e["message"]), "has run already") {
		t.Errorf("replayed: %v", e)
	}
	// By execute, too; what is asked for again after it ran is a new request.
	w = f.sql(a.agent, a.statement())
	wantStatus(t, w, 202)
	if object(t, w.Body.Bytes())["data"].(m)["copy_request"].(m)["id"] == a.id {
		t.Error("the old request, again")
	}
}

// TestWaysAroundACopyRequest: each row tries to get around one condition. Nothing is copied in any of them but where it says so.
func TestWaysAroundACopyRequest(t *testing.T) {
	f := withRequests(t)
	approve := func(bearer func(*asking) string, body m) func(*asking) (int, m) {
		return func(a *asking) (int, m) {
			w := a.json("POST", a.route()+"/approve", bearer(a), body)
			return w.Code, object(a.t, w.Body.Bytes())
		}
	}
	ann, bob, agent := func(a *asking) string { return a.ann }, func(a *asking) string { return a.bob }, func(a *asking) string { return a.agent }
	keyOfBob := func(more m) func(*asking) string {
		return func(a *asking) string {
			body := m{"name": "k", "role": "read_write"}
			for k, v := range more {
				body[k] = v
			}
			return data[m](a.t, a.json("POST", "/v1/keys", a.bob, body))["key"].(string)
		}
	}
	someone := func(role access.Role, grants func(a *asking) []access.Grant) func(*asking) string {
		return func(a *asking) string {
			a.person("eve"+a.as, role, grants(a)...)
			return a.enter("eve" + a.as)
		}
	}
	none := func(*asking) {}
	agentCopy := func(a *asking) {
		a.grant(a.t, "ann"+a.as, access.Grant{Kind: access.GrantAgentCopy, Connection: "local", Path: a.path})
	}
	change := func(name string, change func(*access.UserChange)) func(*asking) {
		return func(a *asking) {
			c := access.UserChange{}
			change(&c)
			if _, err := a.people.ChangeUser(a.t.Context(), name+a.as, c); err != nil {
				a.t.Fatal(err)
			}
		}
	}
	reader, disabled := access.ReadOnly, true
	for sentence, row := range map[string]struct {
		between func(*asking) // the request and the approval
		approve func(*asking) (int, m)
		status  int
		state   string // after it
	}{
		"another person, with everything": {none, approve(bob, nil), 200, "done"},
		"an admin's login":                {none, approve(someone(access.Admin, func(*asking) []access.Grant { return nil }), nil), 200, "done"},
		"in one's own name, with a grant": {agentCopy, approve(ann, nil), 200, "done"},

		"the agent approves its own":          {none, approve(agent, nil), 403, "pending"},
		"the agent, with an agent_copy grant": {agentCopy, approve(agent, nil), 403, "pending"},
		"the person's key, with an agent_copy grant": {agentCopy, approve(func(a *asking) string {
			return data[m](a.t, a.json("POST", "/v1/keys", a.ann, m{"name": "k", "role": "read_write"}))["key"].(string)
		}, nil), 403, "pending"},
		"in one's own name, without agent_copy":       {none, approve(ann, nil), 403, "pending"},
		"a key of who could approve":                  {none, approve(keyOfBob(nil), nil), 403, "pending"},
		"an agent of who could approve sees none":     {none, approve(keyOfBob(m{"agent": true}), nil), 404, "pending"},
		"the admin's key":                             {none, approve(func(*asking) string { return adminKey }, nil), 403, "pending"},
		"an admin's agent":                            {none, approve(func(*asking) string { return agentKey }, nil), 404, "pending"},
		"nobody":                                      {none, approve(func(*asking) string { return "" }, nil), 401, "pending"},
		"a login without grants sees none":            {none, approve(someone(access.ReadWrite, func(*asking) []access.Grant { return nil }), nil), 404, "pending"},
		"a login without lake_write sees none":        {none, approve(someone(access.ReadWrite, func(*asking) []access.Grant { return []access.Grant{shopGrant} }), nil), 404, "pending"},
		"a login with lake_write elsewhere sees none": {none, approve(someone(access.ReadWrite, func(a *asking) []access.Grant { return []access.Grant{shopGrant, writeGrant(a.path + "2")} }), nil), 404, "pending"},
		"a login without the database sees none":      {none, approve(someone(access.ReadWrite, func(a *asking) []access.Grant { return []access.Grant{writeGrant(a.path)} }), nil), 404, "pending"},
		"a login with one table sees none": {none, approve(someone(access.ReadWrite, func(a *asking) []access.Grant {
			return []access.Grant{{Kind: access.GrantTable, Database: "shop", Table: "sale"}, writeGrant(a.path)}
		}), nil), 404, "pending"},
		"a reader's login sees none":                   {none, approve(someone(access.ReadOnly, func(a *asking) []access.Grant { return []access.Grant{shopGrant, writeGrant(a.path)} }), nil), 404, "pending"},
		"a stale login":                                {func(a *asking) { a.people.wait(time.Hour + time.Second) }, approve(bob, nil), 403, "pending"},
		"the asker's grant on the database is gone":    {func(a *asking) { a.takeAway(0) }, approve(bob, nil), 403, "pending"},
		"the asker's lake_write is gone":               {func(a *asking) { a.takeAway(1) }, approve(bob, nil), 403, "pending"},
		"the approver's grant on the database is gone": {func(a *asking) { a.takeAway(2) }, approve(bob, nil), 404, "pending"},
		"the approver's lake_write is gone":            {func(a *asking) { a.takeAway(3) }, approve(bob, nil), 404, "pending"},
		"the asker reads only now":                     {change("ann", func(c *access.UserChange) { c.Role = &reader }), approve(bob, nil), 403, "pending"},
		"the asker is disabled":                        {change("ann", func(c *access.UserChange) { c.Disabled = &disabled }), approve(bob, nil), 403, "pending"},
		"the asker is gone":                            {func(a *asking) { must(a, a.people.DeleteUser(a.t.Context(), "ann"+a.as)) }, approve(bob, nil), 403, "pending"},
		"the agent's key is gone":                      {func(a *asking) { must(a, a.people.DeleteKey(a.t.Context(), a.agentID)) }, approve(bob, nil), 403, "pending"},
		"the agent's key is narrowed to a table now": {func(a *asking) {
			a.grant(a.t, a.agentID, access.Grant{Kind: access.GrantTable, Database: "shop", Table: "sale"})
		}, approve(bob, nil), 403, "pending"},
		"the agent's key is gone, an admin approves": {func(a *asking) { must(a, a.people.DeleteKey(a.t.Context(), a.agentID)) }, approve(someone(access.Admin, func(*asking) []access.Grant { return nil }), nil), 403, "pending"},
		"the approver reads only now":                {change("bob", func(c *access.UserChange) { c.Role = &reader }), approve(bob, nil), 404, "pending"},
		"the approver is disabled":                   {change("bob", func(c *access.UserChange) { c.Disabled = &disabled }), approve(bob, nil), 401, "pending"},
		"its time is over": {func(a *asking) { a.people.wait(24 * time.Hour) }, func(a *asking) (int, m) {
			return approve(func(a *asking) string { return a.enter("bob" + a.as) }, nil)(a)
		}, 409, "expired"},
		"it was denied":         {func(a *asking) { data[m](a.t, a.json("POST", a.route()+"/deny", a.bob, m{"reason": "no"})) }, approve(bob, nil), 409, "denied"},
		"it was withdrawn":      {func(a *asking) { data[m](a.t, a.json("DELETE", a.route(), a.agent, nil)) }, approve(bob, nil), 409, "withdrawn"},
		"another was looked at": {none, approve(bob, m{"sha256": strings.Repeat("0", 64)}), 409, "pending"},
		"the statement was altered": {func(a *asking) {
			a.exec("UPDATE copy_requests SET statement = replace(statement, 'sale', 'payroll_secret') WHERE id = ?", a.id)
		}, approve(bob, nil), 409, "pending"},
		"the path was altered": {func(a *asking) { a.exec("UPDATE copy_requests SET path = path || '/y' WHERE id = ?", a.id) }, approve(bob, nil), 409, "pending"},
		"path and statement were altered": {func(a *asking) {
			a.exec("UPDATE copy_requests SET path = path || '/y', statement = replace(statement, path, path || '/y') WHERE id = ?", a.id)
		}, approve(bob, nil), 409, "pending"},
		"path and sum were altered": {func(a *asking) {
			sum := access.CopyRequestSum(a.statement(), "shop", a.path+"/y")
			a.exec("UPDATE copy_requests SET path = path || '/y', sha256 = ? WHERE id = ?", sum[:], a.id)
		}, approve(bob, nil), 409, "pending"},
		"the database was altered":                          {func(a *asking) { a.exec("UPDATE copy_requests SET database = 'other' WHERE id = ?", a.id) }, approve(func(*asking) string { return adminKey }, nil), 409, "pending"},
		"the connection was altered":                        {func(a *asking) { a.exec("UPDATE copy_requests SET connection = 'other' WHERE id = ?", a.id) }, approve(func(*asking) string { return adminKey }, nil), 409, "pending"},
		"not to be waited for":                              {none, approve(bob, m{"wait": false}), 501, "pending"},
		"a word that is not in the contract":                {none, approve(bob, m{"force": true}), 400, "pending"},
		"asker and approver both lost it, and it is denied": {func(a *asking) { a.takeAway(0); a.takeAway(3) }, approve(bob, nil), 404, "pending"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f.t, f.people.later = t, 0
			a := newAsking(t, f, fmt.Sprintf("%x", access.CopyRequestSum(sentence, "", ""))[:12])
			a.ask()
			row.between(a)
			status, body := row.approve(a)
			if status != row.status {
				t.Errorf("status %d, want %d: %v", status, row.status, body)
			}
			f.people.mu.Lock()
			if row.state != "expired" {
				f.people.later = 0
			}
			f.people.mu.Unlock()
			if got := a.state(); got != row.state {
				t.Errorf("it is %s, want %s", got, row.state)
			}
			if landed := a.landed(); landed != (status == 200) {
				t.Errorf("landed: %v", landed)
			}
		})
	}
}

func must(a *asking, err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// TestWhatIsNotEvenAskedFor: nobody is asked to approve what cannot run.
func TestWhatIsNotEvenAskedFor(t *testing.T) {
	f := withRequests(t)
	a := newAsking(t, f, "x")
	key := func(more m) string {
		body := m{"name": "k", "role": "read_write", "agent": true}
		for k, v := range more {
			body[k] = v
		}
		return data[m](t, f.json("POST", "/v1/keys", a.ann, body))["key"].(string)
	}
	a.person("poor", access.ReadWrite, shopGrant)
	poor := data[m](t, f.json("POST", "/v1/keys", a.enter("poor"), m{"name": "k", "role": "read_write", "agent": true}))["key"].(string)
	at := func(path string) string { return strings.Replace(a.statement(), "exports/x", path, 1) }
	for sentence, row := range map[string]struct {
		bearer, sql string
		status      int
		code        string
	}{
		"a key that only reads":         {key(m{"role": "read_only"}), a.statement(), 403, "denied"},
		"a key of some tables":          {key(m{"tables": []string{"shop.sale"}}), a.statement(), 403, "denied"},
		"a key of another database":     {key(m{"databases": []string{}}), a.statement(), 404, "not_found"},
		"without lake_write":            {poor, a.statement(), 403, "denied"},
		"a folder without a grant":      {a.agent, at("exports/y"), 403, "denied"},
		"a folder of nobody's":          {agentKey, at("other/x"), 403, "denied"},
		"a managed folder":              {agentKey, at("tables/x"), 400, "invalid"},
		"above a managed folder":        {agentKey, at("tables"), 400, "invalid"},
		"out of the lake":               {a.agent, at("../x"), 400, "invalid"},
		"the server's folder":           {agentKey, at(".sluice/x"), 400, "invalid"},
		"no such connection":            {agentKey, strings.Replace(a.statement(), "'local'", "'other'", 1), 400, "invalid"},
		"a table that is not there":     {a.agent, strings.Replace(a.statement(), "sale", "sales", 1), 422, "refused"},
		"a write inside":                {a.agent, strings.Replace(a.statement(), "SELECT id, sold, region FROM sale", "DELETE FROM sale", 1), 422, "refused"},
		"two statements":                {a.agent, a.statement() + "; " + a.statement(), 400, "invalid"},
		"a partition that is no column": {a.agent, strings.Replace(a.statement(), "(region)", "(regions)", 1), 400, "invalid"},
		"EXPLAIN is no request":         {a.agent, "EXPLAIN " + a.statement(), 403, "denied"},
		"an external table":             {a.agent, createSQL, 403, "denied"},
	} {
		t.Run(sentence, func(t *testing.T) { failure(t, f.sql(row.bearer, row.sql), row.status, row.code) })
	}
	if all := data[[]any](t, f.json("GET", "/v1/lake/copy/requests", adminKey, nil)); len(all) != 0 {
		t.Errorf("%d requests", len(all))
	}
	for _, e := range ledgerOf(f).entries {
		if e.Kind == "copy.request" {
			t.Errorf("recorded: %s", e.Details)
		}
	}
}

// withLakeOf gives the fixture another lake: what it may and its folders are settings, which can change between a request and
// its approval.
func (f *fixture) withLakeOf(t *testing.T, allow, managed []string) {
	t.Helper()
	conn := f.cfg.Lake.Connections()[0]
	conn.WriteAllowlist, conn.Managed = allow, managed
	lake, err := lakecopy.New(t.Context(), lakecopy.Config{Journal: f.people.store, Rights: f.people, FreshFor: time.Hour, Now: f.people.now, Connections: []lakecopy.Connection{conn}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lake.Close() })
	f.cfg.Lake = lake
	f.byTheirClock()
}

func TestSettingsThatChangedSinceTheRequest(t *testing.T) {
	for sentence, row := range map[string]struct {
		change func(*testing.T, *fixture)
		status int
		code   string
	}{
		"an empty write_allowlist, for an admin too": {func(t *testing.T, f *fixture) { f.withLakeOf(t, nil, nil) }, 403, "denied"},
		"a write_allowlist that does not cover it":   {func(t *testing.T, f *fixture) { f.withLakeOf(t, []string{"other"}, nil) }, 403, "denied"},
		"a managed folder":                           {func(t *testing.T, f *fixture) { f.withLakeOf(t, []string{"/"}, []string{"exports"}) }, 400, "invalid"},
		"the database is dropped": {func(_ *testing.T, f *fixture) {
			f.cfg.Sources = map[string]*database.Source{}
			f.byTheirClock()
		}, 409, "conflict"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := withRequests(t)
			f.t = t
			a := newAsking(t, f, "x")
			a.ask()
			a.person("root", access.Admin)
			row.change(t, f)
			failure(t, f.json("POST", a.route()+"/approve", a.enter("root"), nil), row.status, row.code)
			if a.state() != "pending" || a.landed() {
				t.Errorf("it is %s", a.state())
			}
		})
	}
}

// TestOfManyApprovalsOneRuns: all at once, and by two people.
func TestOfManyApprovalsOneRuns(t *testing.T) {
	f := withRequests(t)
	a := newAsking(t, f, "x")
	a.ask()
	f.grant(t, "annx", access.Grant{Kind: access.GrantAgentCopy, Connection: "local", Path: "exports"})
	const many = 24
	codes := make(chan int, many)
	var start, all sync.WaitGroup
	start.Add(1)
	for i := range many {
		all.Go(func() {
			start.Wait()
			bearer := a.bob
			if i%2 == 0 {
				bearer = a.ann
			}
			codes <- a.json("POST", a.route()+"/approve", bearer, nil).Code
		})
	}
	start.Done()
	all.Wait()
	close(codes)
	seen := map[int]int{}
	for c := range codes {
		seen[c]++
	}
	if seen[200] != 1 || seen[409] != many-1 {
		t.Errorf("statuses: %v", seen)
	}
	runs, err := f.people.store.Runs(context.Background(), 100)
	if err != nil || len(runs) != 1 || a.state() != "done" {
		t.Errorf("%d runs, it is %s, %v", len(runs), a.state(), err)
	}
}

// TestARunThatFailsIsNotTriedAgain, nor one whose server died in between.
func TestARunThatFailsIsNotTriedAgain(t *testing.T) {
	f := withRequests(t)
	a := newAsking(t, f, "x")
	a.ask()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the approver leaves
	w := a.doIn(ctx, call{method: "POST", path: a.route() + "/approve", bearer: a.bob})
	if w.Code == 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	// Whether it was decided or not before that was noticed, nothing was copied, and a decided one has failed for good.
	if got := a.state(); got != "failed" && got != "pending" || a.landed() {
		t.Errorf("it is %s", got)
	}

	b := newAsking(t, f, "y")
	b.ask()
	r, err := f.people.store.CopyRequest(t.Context(), b.id)
	if err != nil {
		t.Fatal(err)
	}
	r.State, r.DecidedBy, r.DecidedAt = access.CopyApproved, "boby", f.people.now()
	must(b, f.people.store.DecideCopyRequest(t.Context(), r)) // and then the server dies
	must(b, f.people.store.SettleCopyRequests(t.Context(), f.people.now()))
	if got := b.state(); got != "failed" {
		t.Errorf("after a start it is %s", got)
	}
	failure(t, b.json("POST", b.route()+"/approve", b.bob, nil), 409, "conflict")
	if b.landed() {
		t.Error("copied")
	}
}

func TestTheLedgerComesBeforeADecision(t *testing.T) {
	f := withRequests(t)
	a := newAsking(t, f, "x")
	a.ask()
	ledgerOf(f).broken = fmt.Errorf("the disk is full")
	for method, path := range map[string]string{"POST": a.route() + "/approve", "DELETE": a.route()} {
		failure(t, a.json(method, path, map[string]string{"POST": a.bob, "DELETE": a.agent}[method], nil), 500, "internal")
	}
	failure(t, a.json("POST", a.route()+"/deny", a.bob, nil), 500, "internal")
	other := a.do(call{method: "POST", path: "/v1/lake/copy", bearer: a.agent, body: m{"database": "shop", "sql": strings.Replace(a.statement(), "exports/x", "exports/x/z", 1)}})
	failure(t, other, 500, "internal")
	ledgerOf(f).broken = nil
	if all := data[[]any](t, f.json("GET", "/v1/lake/copy/requests", adminKey, nil)); len(all) != 1 || a.state() != "pending" || a.landed() {
		t.Errorf("%d requests, it is %s", len(all), a.state())
	}
}

func TestCopyRequestsAreListedForWhoMayKnow(t *testing.T) {
	f := withRequests(t)
	a := newAsking(t, f, "x")
	var ids []string
	for i := range 5 {
		a.path = fmt.Sprintf("exports/x/%d", i)
		w := a.do(call{method: "POST", path: "/v1/lake/copy", bearer: a.agent, body: m{"database": "shop", "sql": strings.Replace(a.statement(), "exports/x", a.path, 1)}})
		wantStatus(t, w, 202)
		ids = append(ids, object(t, w.Body.Bytes())["data"].(m)["copy_request"].(m)["id"].(string))
		f.people.wait(time.Second)
	}
	other := newAsking(t, f, "y")
	other.ask()
	data[m](t, f.json("POST", "/v1/lake/copy/requests/"+ids[1]+"/deny", a.bob, m{"reason": "not now"}))
	count := func(bearer, query string) int {
		return len(data[[]any](t, f.json("GET", "/v1/lake/copy/requests"+query, bearer, nil)))
	}
	for sentence, row := range map[string]struct {
		bearer, query string
		want          int
	}{
		"an admin": {adminKey, "", 6}, "who asked": {a.agent, "", 5}, "the person": {a.ann, "", 5}, "who could approve": {a.bob, "", 5}, "another agent": {agentKey, "", 0},
		"a reader": {readOnlyKey, "", 0}, "pending ones": {a.bob, "?state=pending", 4}, "denied ones": {a.bob, "?state=denied", 1}, "done ones": {a.bob, "?state=done", 0},
		"two": {a.bob, "?limit=2", 2},
	} {
		if got := count(row.bearer, row.query); got != row.want {
			t.Errorf("%s: %d, want %d", sentence, got, row.want)
		}
	}
	var seen []string
	for cursor := ""; ; {
		w := f.json("GET", "/v1/lake/copy/requests?limit=2"+cursor, a.bob, nil)
		for _, r := range data[[]any](t, w) {
			seen = append([]string{r.(m)["id"].(string)}, seen...)
		}
		next, more := object(t, w.Body.Bytes())["meta"].(m)["next_cursor"].(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if fmt.Sprint(seen) != fmt.Sprint(ids) {
		t.Errorf("pages: %v, want %v", seen, ids)
	}
	for _, query := range []string{"?limit=0", "?limit=x", "?state=odd", "?cursor=copyreq_NONE", "?cursor=" + other.id} {
		failure(t, f.json("GET", "/v1/lake/copy/requests"+query, a.bob, nil), 400, "invalid")
	}
	for _, id := range []string{other.id, "copyreq_NONE"} { // the same words for what one may not see
		e := failure(t, f.json("GET", "/v1/lake/copy/requests/"+id, a.bob, nil), 404, "not_found")
		if e["message"] != "copy request '"+id+"' not found" {
			t.Errorf("%v", e)
		}
		for _, c := range []call{{method: "POST", path: "/approve"}, {method: "POST", path: "/deny"}, {method: "DELETE"}} {
			failure(t, f.json(c.method, "/v1/lake/copy/requests/"+id+c.path, a.bob, nil), 404, "not_found")
		}
	}
	failure(t, f.json("POST", "/v1/lake/copy/requests/"+ids[0]+"/deny", a.agent, nil), 403, "denied")
	failure(t, f.json("DELETE", "/v1/lake/copy/requests/"+ids[0], a.bob, nil), 403, "denied")
	failure(t, f.json("DELETE", "/v1/lake/copy/requests/"+ids[1], a.ann, nil), 409, "conflict")
	f.people.wait(25 * time.Hour)
	if got := len(data[[]any](t, f.json("GET", "/v1/lake/copy/requests?state=expired", adminKey, nil))); got != 5 {
		t.Errorf("%d expired", got)
	}
}

// TestAKeyThatActsForOthersAsksInTheirName, and its owner needs an agent_copy grant to approve, as the person does.
func TestAKeyThatActsForOthersAsksInTheirName(t *testing.T) {
	f := withRequests(t)
	a := newAsking(t, f, "x")
	key := data[m](t, f.json("POST", "/v1/keys", adminKey, m{"name": "webui", "role": "read_write", "owner": "bobx", "acts_for": m{"header": "X-User"}}))["key"].(string)
	send := func(user string) call {
		return call{method: "POST", path: "/v1/lake/copy", bearer: key, header: map[string]string{"X-User": user}, body: m{"database": "shop", "sql": a.statement()}}
	}
	w := f.do(send("annx"))
	wantStatus(t, w, 202)
	r := object(t, w.Body.Bytes())["data"].(m)["copy_request"].(m)
	if a.id = r["id"].(string); r["owner"] != "annx" {
		t.Errorf("asked in the name of %v", r["owner"])
	}
	for _, user := range []string{"bobx", "admin"} { // the same key, for another: it is not theirs
		failure(t, f.do(call{method: "GET", path: a.route(), bearer: key, header: map[string]string{"X-User": user}}), 404, "not_found")
		failure(t, f.do(call{method: "DELETE", path: a.route(), bearer: key, header: map[string]string{"X-User": user}}), 404, "not_found")
	}
	failure(t, f.do(call{method: "POST", path: a.route() + "/approve", bearer: key, header: map[string]string{"X-User": "annx"}}), 403, "denied")
	failure(t, f.json("POST", a.route()+"/approve", a.bob, nil), 403, "denied")
	failure(t, f.json("POST", a.route()+"/approve", a.ann, nil), 403, "denied")
	grant := f.grant(t, "bobx", access.Grant{Kind: access.GrantAgentCopy, Connection: "local", Path: "exports/x"})
	data[m](t, f.json("POST", a.route()+"/approve", a.bob, nil))
	if !a.landed() {
		t.Error("not copied")
	}
	if err := f.people.DeleteGrant(t.Context(), grant.ID); err != nil {
		t.Fatal(err)
	}
	a.takeAway(3) // bob's own lake_write: what his key asks for in ann's name he could not write himself
	failure(t, f.do(send("annx")), 403, "denied")
}

// TestAskingForACopy: the agent makes the statement, and somebody approves it.
func TestAskingForACopy(t *testing.T) {
	f := withRequests(t)
	asker, err := agent.New(agent.Config{Completer: &scripted{answers: []string{"SELECT id, region FROM sale WHERE id < 10"}}, Model: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asker.Close)
	f.cfg.Agent = asker
	f.byTheirClock()
	a := newAsking(t, f, "x")
	const question = "export the first sales to lake exports/x partitioned by region"
	x := newFits(f)
	ask := func(bearer, question string) m {
		t.Helper()
		return data[m](t, x.post("/v1/database/ask", bearer, m{"database": "shop", "question": question}, 200))
	}
	for sentence, bearer := range map[string]string{"a reader": readOnlyKey} {
		if got := ask(bearer, question); got["outcome"] != "declined" || got["copy_request"] != nil || got["reason"] == "" {
			t.Errorf("%s: %v", sentence, got)
		}
	}
	for _, where := range []string{"tables/x", "../x", "/x", "s3://bucket/x", ".sluice/x"} {
		if got := ask(adminKey, "export the first sales to lake "+where); got["outcome"] != "declined" || got["copy_request"] != nil {
			t.Errorf("%s: %v", where, got)
		}
	}
	got := ask(a.ann, question)
	r, ok := got["copy_request"].(m)
	if !ok || got["outcome"] != "copy_requested" || got["rows"] != nil || r["ask_id"] != got["ask_id"] || r["owner"] != "annx" || r["path"] != "exports/x" || r["state"] != "pending" {
		t.Fatalf("%v", got)
	}
	a.id = r["id"].(string)
	failure(t, a.json("POST", a.route()+"/approve", a.ann, nil), 403, "denied") // her own login is not enough: it was an agent that asked
	if done := data[m](t, x.post(a.route()+"/approve", a.bob, m{}, 200)); done["rows_written"] != 10.0 || done["partitions_touched"] != 4.0 {
		t.Errorf("approved: %v", done)
	}
	x.get("/v1/lake/copy/requests?limit=1", a.bob, 200)
	x.get(a.route(), a.bob, 200)
	x.post("/v1/lake/copy", a.agent, m{"database": "shop", "sql": a.statement()}, 202)
	x.post("/v1/query/execute", a.agent, m{"database": "shop", "sql": a.statement()}, 202)
	second := ask(a.ann, "COPY (SELECT id FROM sale) TO LAKE 'exports/x/2' WITH (CONNECTION = 'local')")["copy_request"].(m)["id"].(string)
	x.post("/v1/lake/copy/requests/"+second+"/deny", a.bob, m{"reason": "why?"}, 200)
	third := ask(a.ann, "COPY (SELECT id FROM sale) TO LAKE 'exports/x/3' WITH (CONNECTION = 'local')")["copy_request"].(m)["id"].(string)
	x.do(call{method: "DELETE", path: "/v1/lake/copy/requests/" + third, bearer: a.ann}, 200)
	if runs, err := f.people.store.Runs(t.Context(), 10); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	x.mustHaveSeen("/v1/lake/copy")
}
