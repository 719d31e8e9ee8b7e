package lakecopy

import (
	"context"
	"testing"
	"time"

	"sluice/access"
	"sluice/fault"
)

// turning are rights that change once who asked was looked up so often.
type turning struct {
	now, later *known
	after      int
	asked      int
}

func (r *turning) turn() *known {
	if r.asked++; r.asked > r.after {
		return r.later
	}
	return r.now
}

func (r *turning) OfUser(ctx context.Context, name string) (access.Principal, error) {
	return r.turn().OfUser(ctx, name)
}

func (r *turning) Again(ctx context.Context, who access.Principal) (access.Principal, error) {
	if who.KeyID == "login_b" {
		return r.now.Again(ctx, who)
	}
	return r.turn().Again(ctx, who)
}

// TestARequestedCopyRunsWithWhatBothMay: at the start, and again before anything is published.
func TestARequestedCopyRunsWithWhatBothMay(t *testing.T) {
	l := newExternalLab(t)
	grants := []access.Grant{{Kind: access.GrantDatabase, Database: "shop"}, {Kind: access.GrantLakeWrite, Connection: "dest", Path: "t"}}
	bob := access.Principal{KeyID: "login_b", Owner: "bob", Role: access.ReadWrite, Login: true, AuthenticatedAt: time.Now(), Holders: []access.Holder{{User: "bob", Role: access.ReadWrite, Grants: grants}}}
	robot := func(change func(*access.Principal)) *known {
		p := access.Principal{KeyID: "key_a", Owner: "ann", Role: access.ReadWrite, Agent: true, Holders: []access.Holder{{User: "ann", Role: access.ReadWrite, Grants: append([]access.Grant{}, grants...)}}}
		change(&p)
		return rightsOf(bob, p)
	}
	all := robot(func(*access.Principal) {})
	for sentence, row := range map[string]struct {
		rights *turning
		login  bool // asked with a login
		kind   Kind
		runs   int
	}{
		"both may":                                {&turning{now: all, later: all}, false, "", 1},
		"who asked with a login may":              {&turning{now: all, later: all}, true, "", 1},
		"the key of who asked is gone":            {&turning{now: all, later: rightsOf(bob)}, false, KindAuth, 0},
		"who asked with a login is gone":          {&turning{now: all, later: rightsOf(bob)}, true, KindAuth, 0},
		"the lake grant of who asked is gone":     {&turning{now: all, later: robot(func(p *access.Principal) { p.Holders[0].Grants = grants[:1] })}, false, KindAuth, 0},
		"the database grant of who asked is gone": {&turning{now: all, later: robot(func(p *access.Principal) { p.Holders[0].Grants = grants[1:] })}, false, KindAuth, 0},
		"the key belongs to another now":          {&turning{now: all, later: robot(func(p *access.Principal) { p.Owner = "eve" })}, false, KindAuth, 0},
		"the key is gone when it runs":            {&turning{now: all, later: rightsOf(bob), after: 1}, false, KindAuth, 1},
		"the lake grant is gone when it runs":     {&turning{now: all, later: robot(func(p *access.Principal) { p.Holders[0].Grants = grants[:1] }), after: 1}, false, KindAuth, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			service, err := New(t.Context(), Config{Journal: l.store, Rights: row.rights, FreshFor: time.Hour, Connections: []Connection{{Name: "dest", URL: "file://" + l.root, WriteAllowlist: []string{"/"}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			had, err := service.Runs(t.Context(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, l.root)
			res, err := service.CopyRequested(t.Context(), bob, access.CopyAsker{Key: "key_a", Owner: "ann", Login: row.login}, l.src, statement("t/x"), "COPY", "copyreq_1")
			if kindOf(err) != string(row.kind) || (err == nil) != (row.kind == "") || err != nil && fault.CodeOf(err) != fault.Denied {
				t.Errorf("got %v", err)
			}
			if (err == nil) == same(before, snapshot(t, l.root)) || err == nil && res.JobID != "copyreq_1" {
				t.Errorf("%v, %+v, and files changed: %v", err, res, err != nil)
			}
			runs, err := service.Runs(t.Context(), 1000)
			if err != nil || len(runs)-len(had) != row.runs {
				t.Errorf("%d runs more, %v", len(runs)-len(had), err)
			}
		})
	}
}
