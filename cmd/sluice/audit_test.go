package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/fault"
	"sluice/gateway"
	"sluice/store"
)

const lastHash = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// audit runs `sluice audit …` against a server that gives a verdict and one entry, of the number 7.
func audit(t *testing.T, v gateway.AuditVerdict, args ...string) (out string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = v
		if r.URL.Path == "/v1/audit" {
			answer = []gateway.AuditEntry{{Seq: 7, Hash: lastHash, Kind: "key.create", Principal: "key_A", Details: json.RawMessage(`{"a":1}`)}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": answer})
	}))
	defer server.Close()
	t.Setenv("SLUICE_URL", server.URL)
	t.Setenv("SLUICE_KEY", "slc_test")
	root := newRoot()
	var text bytes.Buffer
	root.SetOut(&text)
	root.SetArgs(append([]string{"audit"}, args...))
	err = root.ExecuteContext(t.Context())
	return text.String(), err
}

func TestAuditVerify(t *testing.T) {
	intact := gateway.AuditVerdict{Status: "intact", Entries: 9, Seq: 9, Hash: lastHash}
	cut := gateway.AuditVerdict{Status: "partial", Entries: 1, FirstBad: 2, Reason: "the end is cut off: entry 2 is missing", Seq: 1, Hash: lastHash}
	for sentence, row := range map[string]struct {
		v      gateway.AuditVerdict
		args   []string
		status int
		out    string
	}{
		"intact":                      {intact, nil, 0, "intact: 9 entries\nlast entry 9:" + lastHash + "\n"},
		"cut":                         {cut, nil, 1, "partial: 1 entry; the end is cut off: entry 2 is missing; the first bad entry is 2\nlast entry 1:" + lastHash + "\n"},
		"a noted entry that is there": {intact, []string{"--since", "7:" + strings.ToUpper(lastHash)}, 0, "intact: 9 entries\n"},
		"a noted entry that is not":   {intact, []string{"--since", "6:" + lastHash}, 1, "partial: 9 entries; entry 6, which was noted down, is missing; the first bad entry is 6\n"},
		"a noted entry that changed":  {intact, []string{"--since", "7:" + strings.Repeat("0", 64)}, 1, "tampered: 9 entries; entry 7 is not the one that was noted down"},
		"no noted entry":              {intact, []string{"--since", "7"}, 2, ""},
	} {
		out, err := audit(t, row.v, append([]string{"verify"}, row.args...)...)
		status := 0
		if err != nil {
			status = exitCode(err)
		}
		if status != row.status || !strings.HasPrefix(out, row.out) {
			t.Errorf("%s: status %d (%v), %q, want %d, %q", sentence, status, err, out, row.status, row.out)
		}
	}
	out, err := audit(t, cut, "verify", "--json")
	var v gateway.AuditVerdict
	if json.Unmarshal([]byte(out), &v) != nil || v != cut || exitCode(err) != 1 {
		t.Errorf("--json: %q, %v", out, err)
	}
}

func TestAuditList(t *testing.T) {
	out, err := audit(t, gateway.AuditVerdict{}, "list", "--kind", "key.")
	if err != nil || !strings.Contains(out, "key.create") || !strings.Contains(out, `{"a":1}`) {
		t.Errorf("%q, %v", out, err)
	}
}

// openedAudit is a real store with a real ledger.
func openedAudit(t *testing.T) (*store.Store, *store.Ledger) {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), filepath.Join(dir, "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l, err := s.OpenLedger(t.Context(), store.LedgerConfig{Head: filepath.Join(dir, "ledger.head"), Key: bytes.Repeat([]byte("k"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return s, l
}

// recorded are the kinds of all entries but the first, with the outcome of those that have one.
func recorded(t *testing.T, l *store.Ledger) (out []string) {
	t.Helper()
	entries, err := l.Entries(t.Context(), store.EntryFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(entries[:len(entries)-1]) {
		var details struct{ Outcome string }
		if err := json.Unmarshal(e.Details, &details); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(e.Kind+" "+details.Outcome))
	}
	return out
}

func TestEachRunIsRecordedOnceWithItsEnd(t *testing.T) {
	ctx := context.Background()
	begun := store.Run{ID: "run", JobID: "job", Principal: "key_A", Owner: "ann", Database: "shop", Statement: "COPY … slc_abcdefghij", Connection: "local", Path: "t",
		State: store.Running, StartedAt: time.Now()}
	publishing, committed, cleaned, aborted, takenBack := begun, begun, begun, begun, begun
	publishing.Added, publishing.Replaced = []string{"t/a"}, []string{"t/b"}
	committed.State, committed.Replaced, committed.Rows = store.Committed, []string{"t/b"}, 7
	cleaned.State = store.Committed
	aborted.State, aborted.Added = store.Aborted, []string{"t/a"}
	takenBack.State = store.Aborted
	for sentence, row := range map[string]struct {
		updates []store.Run
		want    []string
	}{
		"published, replacing files": {[]store.Run{publishing, committed, cleaned}, []string{"copy.start", "copy.end committed"}},
		"published":                  {[]store.Run{cleaned}, []string{"copy.start", "copy.end committed"}},
		"failed before":              {[]store.Run{takenBack}, []string{"copy.start", "copy.end aborted"}},
		"taken back":                 {[]store.Run{publishing, aborted, takenBack}, []string{"copy.start", "copy.end aborted"}},
	} {
		s, l := openedAudit(t)
		j := auditedJournal{s, l}
		if err := j.InsertRun(ctx, begun); err != nil {
			t.Fatal(err)
		}
		for _, r := range row.updates {
			if err := j.UpdateRun(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		if got := recorded(t, l); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", sentence, got, row.want)
		}
		entries, _ := l.Entries(ctx, store.EntryFilter{Limit: 9, Kind: "copy.start"})
		if e := entries[0]; e.Principal != "key_A" || !strings.Contains(string(e.Details), `"statement":"COPY … [secret]"`) {
			t.Errorf("%s: %s", sentence, e.Details)
		}
	}
}

func TestExternalTablesAreRecorded(t *testing.T) {
	s, l := openedAudit(t)
	j := auditedJournal{s, l}
	if err := j.InsertExternal(t.Context(), store.External{Database: "shop", Schema: "main", Name: "e", Connection: "local", Location: "t", CreatedBy: "key_A", Owner: "ann"}); err != nil {
		t.Fatal(err)
	}
	if gone, err := j.DeleteExternal(t.Context(), "shop", "e"); err != nil || !gone {
		t.Fatal(gone, err)
	}
	if got := recorded(t, l); !slices.Equal(got, []string{"external.create", "external.drop"}) {
		t.Errorf("%q", got)
	}
}

// A journal whose ledger takes nothing changes nothing.
func TestWhatIsNotRecordedIsNotDone(t *testing.T) {
	s, l := openedAudit(t)
	j := auditedJournal{s, l}
	run := store.Run{ID: "run", JobID: "job", State: store.Running, StartedAt: time.Now()}
	table := store.External{Database: "shop", Schema: "main", Name: "e", Connection: "local", Location: "t"}
	if err := j.InsertRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := j.InsertExternal(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	l.Close()
	other, ended, second := run, run, table
	other.ID, ended.State, second.Name = "other", store.Committed, "f"
	_, drop := j.DeleteExternal(t.Context(), "shop", "e")
	for what, err := range map[string]error{"insert a run": j.InsertRun(t.Context(), other), "end a run": j.UpdateRun(t.Context(), ended),
		"make a table": j.InsertExternal(t.Context(), second), "drop a table": drop} {
		if err == nil || fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
	runs, err := s.Runs(t.Context(), 9)
	tables, err2 := s.Externals(t.Context(), "shop")
	if err != nil || err2 != nil || len(runs) != 1 || runs[0].State != store.Running || len(tables) != 1 {
		t.Errorf("%+v %+v %v %v", runs, tables, err, err2)
	}
}

func TestTheGatewaysViewOfTheLedger(t *testing.T) {
	_, l := openedAudit(t)
	a := auditLedger{l}
	if err := a.Append(t.Context(), gateway.AuditEvent{Kind: "key.create", Principal: "p", RequestID: "r", Details: map[string]any{"x": 1}}); err != nil {
		t.Fatal(err)
	}
	entries, err := a.Entries(t.Context(), gateway.AuditFilter{Limit: 1, Kind: "key.", Principal: "p", Before: 9, Since: time.Now().Add(-time.Hour)})
	v, err2 := a.Verify(t.Context())
	if err != nil || err2 != nil || len(entries) != 1 {
		t.Fatal(entries, err, err2)
	}
	e := entries[0]
	if e.Kind != "key.create" || e.Principal != "p" || e.RequestID != "r" || string(e.Details) != `{"x":1}` || len(e.Hash) != 64 || len(e.Prev) != 64 {
		t.Errorf("%+v", e)
	}
	if v != (gateway.AuditVerdict{Status: "intact", Entries: 2, Seq: 2, Hash: e.Hash}) {
		t.Errorf("%+v", v)
	}
}
