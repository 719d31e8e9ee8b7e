package access

import (
	"errors"
	"testing"
	"time"

	"sluice/fault"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// now is a moment at which what the principals below have is fresh.
var now = Moment{Now: noon, FreshFor: 15 * time.Minute}

// admin is the bootstrap key.
func admin() Principal {
	p := Trusted("k1", Admin)
	p.ReadAt = noon
	return p
}

func with(change func(*Principal)) Principal {
	p := admin()
	change(&p)
	return p
}

// keyOf is a key with a role, of a user with a role and grants.
func keyOf(key, user Role, grants ...Grant) Principal {
	return Principal{KeyID: "key_a", Owner: "ann", Name: "a", Role: key, ReadAt: noon, Holders: []Holder{{User: "ann", Role: user, Grants: grants}}}
}

// loginOf is a login of a user.
func loginOf(user Role, grants ...Grant) Principal {
	return Principal{KeyID: "login_a", Owner: "ann", Name: "ann", Role: user, Login: true, AuthenticatedAt: noon.Add(-time.Minute), ExpiresAt: noon.Add(time.Hour),
		Holders: []Holder{{User: "ann", Role: user, Grants: grants}}}
}

func changed(p Principal, change func(*Principal)) Principal {
	change(&p)
	return p
}

var (
	shop      = Grant{Kind: GrantDatabase, Database: "shop"}
	erp       = Grant{Kind: GrantDatabase, Database: "erp"}
	orders    = Grant{Kind: GrantTable, Database: "shop", Table: "orders"}
	hrPay     = Grant{Kind: GrantTable, Database: "shop", Table: "hr.pay"}
	writeA    = Grant{Kind: GrantLakeWrite, Connection: "local", Path: "a"}
	readA     = Grant{Kind: GrantLakeRead, Connection: "local", Path: "a"}
	agentA    = Grant{Kind: GrantAgentCopy, Connection: "local", Path: "a"}
	folderA   = Folder{"local", "a/b"}
	folderAB  = Folder{"local", "ab"}
	elsewhere = Folder{"other", "a/b"}
)

func denied(t *testing.T, sentence string, err error) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Denied || e.Kind != "auth" || e.Msg == "" {
		t.Errorf("%s: not a denial of kind auth: %#v", sentence, err)
	}
}

func TestRoles(t *testing.T) {
	for _, role := range []Role{Restricted, ReadOnly, ReadWrite, Admin} {
		if back, err := ParseRole(role.String()); err != nil || back != role {
			t.Errorf("ParseRole(%q) = %v, %v", role.String(), back, err)
		}
	}
	for _, name := range []string{"", "none", "Admin", "root", "admin ", "read-only"} {
		if role, err := ParseRole(name); err == nil || role != NoRole || fault.CodeOf(err) != fault.Invalid {
			t.Errorf("ParseRole(%q) = %v, %v", name, role, err)
		}
	}
	for sentence, row := range map[string]struct {
		has, floor Role
		want       bool
	}{
		"an admin reaches read_write":               {Admin, ReadWrite, true},
		"a role reaches itself":                     {ReadOnly, ReadOnly, true},
		"read_only does not reach read_write":       {ReadOnly, ReadWrite, false},
		"restricted is below read_only":             {Restricted, ReadOnly, false},
		"the zero role reaches nothing":             {NoRole, Restricted, false},
		"the zero role does not reach the zero one": {NoRole, NoRole, false},
		"a number beyond admin is nobody":           {Admin + 1, Restricted, false},
	} {
		if got := row.has.AtLeast(row.floor); got != row.want {
			t.Errorf("%s: got %v", sentence, got)
		}
	}
}

// TestTheCeiling: the lowest role counts, and a role that is none takes all.
func TestTheCeiling(t *testing.T) {
	for sentence, row := range map[string]struct {
		p    Principal
		want Role
	}{
		"an admin's admin key":                {admin(), Admin},
		"an admin's read_only key":            {keyOf(ReadOnly, Admin), ReadOnly},
		"a reader's admin key":                {keyOf(Admin, ReadOnly), ReadOnly},
		"a reader's login":                    {loginOf(ReadOnly), ReadOnly},
		"two holders, the second lower":       {with(func(p *Principal) { p.Holders = append(p.Holders, Holder{User: "ann", Role: ReadOnly}) }), ReadOnly},
		"two holders, the second without":     {with(func(p *Principal) { p.Holders = append(p.Holders, Holder{User: "ann"}) }), NoRole},
		"two holders, the second is nobody":   {with(func(p *Principal) { p.Holders = append(p.Holders, Holder{Role: Admin}) }), NoRole},
		"a user's role that nobody knows":     {keyOf(Admin, 99), NoRole},
		"a key's role that nobody knows":      {keyOf(-1, Admin), NoRole},
		"no holder":                           {with(func(p *Principal) { p.Holders = nil }), NoRole},
		"no id":                               {with(func(p *Principal) { p.KeyID = "" }), NoRole},
		"no owner":                            {with(func(p *Principal) { p.Owner = "" }), NoRole},
		"the zero principal":                  {Principal{}, NoRole},
		"trusted, for reading":                {Trusted("eval", ReadOnly), ReadOnly},
		"trusted without a role is not":       {Trusted("eval", NoRole), NoRole},
		"trusted without an id is not":        {Trusted("", Admin), NoRole},
		"a role without a key":                {Principal{Owner: BootstrapOwner, Role: Admin}, NoRole},
		"the built-in user's name is no pass": {Principal{KeyID: "k1", Owner: BootstrapOwner, Role: Admin}, NoRole},
	} {
		if got := row.p.Ceiling(); got != row.want || row.p.Known() != (row.want != NoRole) {
			t.Errorf("%s: %v, known %v", sentence, got, row.p.Known())
		}
	}
}

func TestWhoHasNothingMayDoNothing(t *testing.T) {
	for sentence, p := range map[string]Principal{
		"the zero principal":           {},
		"a role without a key":         {Owner: BootstrapOwner, Role: Admin},
		"a key without a role":         with(func(p *Principal) { p.Role = NoRole }),
		"a key without an owner":       with(func(p *Principal) { p.Owner = "" }),
		"nobody behind it":             {KeyID: "k1", Owner: BootstrapOwner, Role: Admin, ReadAt: noon},
		"a holder without a role":      keyOf(Admin, NoRole, shop, writeA, readA),
		"a holder without a name":      {KeyID: "k1", Owner: "ann", Role: Admin, ReadAt: noon, Holders: []Holder{{Role: Admin}}},
		"a role that nobody knows":     keyOf(99, Admin),
		"everything listed, no key":    {Owner: BootstrapOwner, Role: Admin, Databases: []string{"shop"}, Models: []string{"m"}, Own: []Grant{shop}},
		"a second holder without role": with(func(p *Principal) { p.Holders = append(p.Holders, Holder{User: "bob"}) }),
	} {
		if MayQuery(p) == nil || MayDatabase(p, "shop") || MayRead(p, "shop", "main")("main", "orders") || MayModel(p, "m") || MayCollection(p, "c", false) || MaySeeConnection(p, "local") {
			t.Errorf("%s may read", sentence)
		}
		for what, err := range map[string]error{"copy": MayCopy(p, "shop", folderA, now), "copy from": MayCopyFrom(p, "shop", now), "write": MayWriteLake(p, folderA),
			"external": MayExternal(p, "shop", now), "read": MayReadLake(p, folderA), "manage": MayManage(p), "administer": MayAdminister(p), "keys": MayHaveKeys(p),
			"agent": MayAgentCopy(p, "shop", folderA, now), "still": StillMayCopy(p, "shop", folderA), "fresh": Fresh(p, now)} {
			denied(t, sentence+": "+what, err)
		}
	}
}
