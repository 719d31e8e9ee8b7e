package lakecopy

import (
	"context"
	"testing"
	"time"

	"sluice/access"
	"sluice/fault"
)

// longFresh is a FreshFor that no test outlives.
const longFresh = 100 * 365 * 24 * time.Hour

// trusted is an admin who logged in just now.
func trusted() access.Principal {
	who := access.Trusted("k1", access.Admin)
	who.Login, who.AuthenticatedAt = true, time.Now()
	return who
}

// known are the rights of the users and principals that a test knows; nobody else has any.
type known struct {
	users map[string]access.Principal
	again map[string]access.Principal
}

// rightsOf knows principals by their id and their owners.
func rightsOf(all ...access.Principal) *known {
	k := &known{users: map[string]access.Principal{}, again: map[string]access.Principal{}}
	for _, who := range all {
		k.users[who.Owner], k.again[who.KeyID] = who, who
	}
	return k
}

func (k *known) OfUser(_ context.Context, name string) (access.Principal, error) {
	if who, ok := k.users[name]; ok {
		return who, nil
	}
	return access.Principal{}, fault.New(fault.NotFound, "test", "no such user")
}

func (k *known) Again(_ context.Context, who access.Principal) (access.Principal, error) {
	if now, ok := k.again[who.KeyID]; ok {
		return now, nil
	}
	return access.Principal{}, fault.New(fault.Unauthenticated, "test", "not known")
}

// TestARightThatIsTakenAwayPublishesNothing: a COPY asks again before its files become visible.
func TestARightThatIsTakenAwayPublishesNothing(t *testing.T) {
	l := newExternalLab(t)
	ann := access.Principal{KeyID: "login_a", Owner: "ann", Name: "ann", Role: access.ReadWrite, Login: true, AuthenticatedAt: time.Now(), Holders: []access.Holder{{User: "ann", Role: access.ReadWrite, Grants: []access.Grant{
		{Kind: access.GrantDatabase, Database: "shop"}, {Kind: access.GrantLakeWrite, Connection: "dest", Path: "t"}}}}}
	now := func(change func(*access.Principal)) access.Principal {
		who := ann
		who.Holders = []access.Holder{{User: "ann", Role: access.ReadWrite, Grants: append([]access.Grant{}, ann.Holders[0].Grants...)}}
		change(&who)
		return who
	}
	for sentence, row := range map[string]struct {
		again *known
		kind  Kind
	}{
		"all is as before":              {rightsOf(now(func(*access.Principal) {})), ""},
		"the password is not fresh":     {rightsOf(now(func(p *access.Principal) { p.AuthenticatedAt = time.Time{} })), ""},
		"the login has ended":           {rightsOf(), KindAuth},
		"the role was lowered":          {rightsOf(now(func(p *access.Principal) { p.Holders[0].Role = access.ReadOnly })), KindAuth},
		"the lake grant was taken away": {rightsOf(now(func(p *access.Principal) { p.Holders[0].Grants = p.Holders[0].Grants[:1] })), KindAuth},
		"the database grant was":        {rightsOf(now(func(p *access.Principal) { p.Holders[0].Grants = p.Holders[0].Grants[1:] })), KindAuth},
		"it is on another folder":       {rightsOf(now(func(p *access.Principal) { p.Holders[0].Grants[1].Path = "u" })), KindAuth},
		"nobody knows any rights":       {nil, KindAuth},
	} {
		t.Run(sentence, func(t *testing.T) {
			cfg := Config{Journal: l.store, FreshFor: time.Hour, Connections: []Connection{{Name: "dest", URL: "file://" + l.root, WriteAllowlist: []string{"/"}}}}
			if row.again != nil {
				cfg.Rights = row.again
			}
			service, err := New(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			before := snapshot(t, l.root)
			_, err = service.Copy(t.Context(), ann, l.src, statement("t/x"), "COPY")
			if kindOf(err) != string(row.kind) || (err == nil) != (row.kind == "") {
				t.Errorf("got %v", err)
			}
			if (err == nil) == same(before, snapshot(t, l.root)) {
				t.Errorf("%v, and files changed: %v", err, err != nil)
			}
			runs, listErr := service.Runs(t.Context(), 1)
			if listErr != nil || len(runs) != 1 || (runs[0].State == "committed") != (err == nil) {
				t.Errorf("runs %+v, %v", runs, listErr)
			}
		})
	}
}

// TestATableIsThereWhileItsMakerMayReadItsFolder.
func TestATableIsThereWhileItsMakerMayReadItsFolder(t *testing.T) {
	l := newExternalLab(t)
	l.must(t, `COPY (SELECT 1 AS id) TO LAKE 't/flat' WITH (CONNECTION = 'dest')`)
	l.must(t, `CREATE EXTERNAL TABLE ext STORED AS PARQUET LOCATION 't/flat' WITH (CONNECTION = 'dest')`)
	reader := func(role access.Role, grants ...access.Grant) access.Principal {
		return access.Principal{KeyID: "user", Owner: access.BootstrapOwner, Role: role, Holders: []access.Holder{{User: access.BootstrapOwner, Role: role, Grants: grants}}}
	}
	read := func(connection, path string) access.Grant {
		return access.Grant{Kind: access.GrantLakeRead, Connection: connection, Path: path}
	}
	for sentence, row := range map[string]struct {
		rights Rights
		there  bool
	}{
		"an admin":                  {rightsOf(trusted()), true},
		"who may read it":           {rightsOf(reader(access.ReadOnly, read("dest", "t"))), true},
		"who may not":               {rightsOf(reader(access.ReadWrite)), false},
		"who may read another":      {rightsOf(reader(access.ReadWrite, read("dest", "t/fla"))), false},
		"who may read another lake": {rightsOf(reader(access.ReadWrite, read("other", "t"))), false},
		"who may only write it":     {rightsOf(reader(access.ReadWrite, access.Grant{Kind: access.GrantLakeWrite, Connection: "dest", Path: "t"})), false},
		"who is restricted":         {rightsOf(reader(access.Restricted, read("dest", "t"))), false},
		"who is not there any more": {rightsOf(), false},
		"where nobody knows rights": {nil, false},
	} {
		l.service.rights = row.rights
		tables, err := l.service.Tables(t.Context(), "shop")
		if err != nil || (len(tables) == 1) != row.there {
			t.Errorf("%s: %v, %v", sentence, tables, err)
		}
	}
}
