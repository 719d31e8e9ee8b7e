package lakecopy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/access"
	"sluice/fault"
)

func TestWhoMayCopyWhere(t *testing.T) {
	l := newExternalLab(t)
	with := func(change func(*access.Principal)) access.Principal {
		who := l.who
		change(&who)
		return who
	}
	for sentence, row := range map[string]struct {
		who        access.Principal
		path, into string
		query      string
		kind       Kind
	}{
		"an admin":                       {l.who, "t/a", "dest", "SELECT 1 AS id", ""},
		"a read_write key":               {with(func(p *access.Principal) { p.Role = access.ReadWrite }), "t/b", "dest", "SELECT id FROM items", KindAuth},
		"nobody":                         {access.Principal{}, "t/c", "dest", "SELECT 1 AS id", KindAuth},
		"a read_only key":                {with(func(p *access.Principal) { p.Role = access.ReadOnly }), "t/c", "dest", "SELECT 1 AS id", KindAuth},
		"an agent":                       {with(func(p *access.Principal) { p.Agent = true }), "t/c", "dest", "SELECT 1 AS id", KindAuth},
		"a key restricted to tables":     {with(func(p *access.Principal) { p.Tables = []string{"shop.items"} }), "t/c", "dest", "SELECT id FROM items", KindAuth},
		"a key of no database":           {with(func(p *access.Principal) { p.Databases = []string{} }), "t/c", "dest", "SELECT 1 AS id", KindAuth},
		"an empty write_allowlist":       {l.who, "t/c", "closed", "SELECT 1 AS id", KindAuth},
		"no such connection":             {l.who, "t/c", "nope", "SELECT 1 AS id", KindOption},
		"a managed folder":               {l.who, "tables", "dest", "SELECT 1 AS id", KindPath},
		"below a managed folder":         {l.who, "tables/x", "dest", "SELECT 1 AS id", KindPath},
		"above a managed folder":         {l.who, "a", "deep", "SELECT 1 AS id", KindPath},
		"beside a managed folder":        {l.who, "a/c", "deep", "SELECT 1 AS id", ""},
		"an encoded slash":               {l.who, "t%2Fc", "dest", "SELECT 1 AS id", KindPath},
		"a write":                        {l.who, "t/c", "dest", "DELETE FROM items", KindSyntax},
		"a table that is not there":      {l.who, "t/c", "dest", "SELECT * FROM nope", KindQuery},
		"a function that reads files":    {l.who, "t/c", "dest", "SELECT * FROM read_parquet('/etc/passwd')", KindQuery},
		"two statements":                 {l.who, "t/c", "dest", "SELECT 1; SELECT 2", KindSyntax},
		"a lake that this version lacks": {l.who, "t/c", "s3", "SELECT 1 AS id", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			stmt := statement(row.path)
			stmt.Query, stmt.Connection = row.query, row.into
			service, err := New(context.Background(), Config{Journal: l.store, Rights: rightsOf(row.who), FreshFor: longFresh, Connections: []Connection{
				{Name: "dest", URL: "file://" + l.root, WriteAllowlist: []string{"/"}, Managed: []string{"tables/"}},
				{Name: "closed", URL: "file://" + l.root},
				{Name: "deep", URL: "file://" + l.root + "2", WriteAllowlist: []string{"/"}, Managed: []string{"a/b"}},
				{Name: "s3", URL: "s3://bucket/root", WriteAllowlist: []string{"/"}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			before := snapshot(t, l.root)
			_, err = service.Copy(t.Context(), row.who, l.src, stmt, "COPY")
			if row.into == "s3" {
				if fault.CodeOf(err) != fault.Unimplemented {
					t.Errorf("got %v", err)
				}
				return
			}
			if kindOf(err) != string(row.kind) || (err == nil) != (row.kind == "") {
				t.Errorf("got %v", err)
			}
			if err != nil && !same(before, snapshot(t, l.root)) {
				t.Error("a refused COPY changed files")
			}
		})
	}
}

func TestConnectionsAreChecked(t *testing.T) {
	l := newLab(t, t.TempDir(), "")
	for sentence, connections := range map[string][]Connection{
		"no name":          {{URL: "file:///srv/lake"}},
		"twice":            {{Name: "a", URL: "file://" + l.root}, {Name: "a", URL: "file://" + l.root}},
		"no URL":           {{Name: "a", URL: "/srv/lake"}},
		"a relative one":   {{Name: "a", URL: "file:lake"}},
		"another machine":  {{Name: "a", URL: "file://nas/lake"}},
		"the whole disk":   {{Name: "a", URL: "file:///"}},
		"a pattern":        {{Name: "a", URL: "file:///srv/%5Ba%5D"}},
		"not to be opened": {{Name: "a", URL: "file:///dev/null/x"}},
	} {
		if s, err := New(t.Context(), Config{Connections: connections, Journal: l.store}); err == nil {
			s.Close()
			t.Errorf("%s: accepted", sentence)
		}
	}
	for _, pattern := range []string{"*", "", "/exports", "a//b", "..", "a/../b", ".sluice", "exports/**", "a*"} {
		for setting, c := range map[string]Connection{"write_allowlist": {WriteAllowlist: []string{"fine/", "also/*", pattern}}, "managed": {Managed: []string{pattern}}} {
			for _, url := range []string{"file://" + l.root, "s3://bucket/root"} {
				c.Name, c.URL = "dest", url
				s, err := New(t.Context(), Config{Connections: []Connection{c}, Journal: l.store})
				if err == nil {
					s.Close()
				}
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("connection dest: %s has %q", setting, pattern)) {
					t.Errorf("%s with %q: %v", setting, pattern, err)
				}
			}
		}
	}
	for _, pattern := range []string{"/", "/*", "exports", "exports/", "exports/*", "exports/2024/"} {
		s, err := New(t.Context(), Config{Journal: l.store, Connections: []Connection{{Name: "dest", URL: "file://" + l.root, WriteAllowlist: []string{pattern}, Managed: []string{pattern}}}})
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		s.Close()
	}
	if _, err := New(t.Context(), Config{}); err == nil {
		t.Error("no journal: accepted")
	}
	_, err := New(t.Context(), Config{Journal: l.store, Connections: []Connection{{URL: "file:///srv/x"}, {Name: "b", URL: "nonsense"}}})
	if err == nil || !strings.Contains(err.Error(), "no name") || !strings.Contains(err.Error(), "connection b") {
		t.Errorf("not all mistakes are told: %v", err)
	}
	var e *fault.Error
	if _, err := (Connection{Name: "s", URL: "s3://x"}).Root(); !errors.As(err, &e) || e.Code != fault.Unimplemented {
		t.Errorf("s3: %v", err)
	}
}
