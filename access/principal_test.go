package access

import (
	"errors"
	"testing"

	"sluice/fault"
)

func admin() Principal {
	return Principal{KeyID: "k1", Owner: BootstrapOwner, Name: "bootstrap", Role: Admin}
}

func with(change func(*Principal)) Principal {
	p := admin()
	change(&p)
	return p
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

func TestZeroPrincipalMayDoNothing(t *testing.T) {
	for sentence, p := range map[string]Principal{
		"the zero principal":             {},
		"a role without a key":           {Owner: BootstrapOwner, Role: Admin},
		"a key without a role":           {KeyID: "k1", Owner: BootstrapOwner},
		"a key without an owner":         {KeyID: "k1", Role: Admin},
		"an owner without rights":        {KeyID: "k1", Owner: "bob", Role: Admin},
		"a role that nobody knows":       {KeyID: "k1", Owner: BootstrapOwner, Role: 99},
		"a negative role":                {KeyID: "k1", Owner: BootstrapOwner, Role: -1},
		"everything listed, no key":      {Owner: BootstrapOwner, Role: Admin, Databases: []string{"shop"}, Models: []string{"m"}},
		"the owner's name in other case": {KeyID: "k1", Owner: "Admin", Role: Admin},
	} {
		if MayDatabase(p, "shop") || MayRead(p, "shop")("main", "orders") || MayModel(p, "m") {
			t.Errorf("%s may read", sentence)
		}
		for what, err := range map[string]error{"copy": MayCopy(p), "external": MayExternal(p), "manage": MayManage(p)} {
			if fault.CodeOf(err) != fault.Denied {
				t.Errorf("%s: %s gives %v", sentence, what, err)
			}
		}
	}
}

func TestLists(t *testing.T) {
	for sentence, row := range map[string]struct {
		p             Principal
		db, sch, tab  string
		wantDB, wantT bool
	}{
		"nil lists do not narrow":                  {admin(), "shop", "main", "orders", true, true},
		"an empty database list allows nothing":    {with(func(p *Principal) { p.Databases = []string{} }), "shop", "main", "orders", false, false},
		"a listed database":                        {with(func(p *Principal) { p.Databases = []string{"shop"} }), "shop", "main", "orders", true, true},
		"a database that is not listed":            {with(func(p *Principal) { p.Databases = []string{"shop"} }), "erp", "main", "orders", false, false},
		"database names are exact":                 {with(func(p *Principal) { p.Databases = []string{"shop"} }), "Shop", "main", "orders", false, false},
		"an empty table list allows nothing":       {with(func(p *Principal) { p.Tables = []string{} }), "shop", "main", "orders", true, false},
		"a full table name":                        {with(func(p *Principal) { p.Tables = []string{"shop.main.orders"} }), "shop", "main", "orders", true, true},
		"a short name means the default schema":    {with(func(p *Principal) { p.Tables = []string{"shop.orders"} }), "shop", "main", "orders", true, true},
		"a short name is not of another schema":    {with(func(p *Principal) { p.Tables = []string{"shop.orders"} }), "shop", "hr", "orders", true, false},
		"a table of the same name elsewhere":       {with(func(p *Principal) { p.Tables = []string{"erp.main.orders"} }), "shop", "main", "orders", true, false},
		"a table list of a database not listed":    {with(func(p *Principal) { p.Databases, p.Tables = []string{"erp"}, []string{"shop.orders"} }), "shop", "main", "orders", false, false},
		"a name with a dot matches no entry":       {with(func(p *Principal) { p.Tables = []string{"shop.main.orders"} }), "shop", "main.orders", "x", true, false},
		"a dotted table is not a qualified one":    {with(func(p *Principal) { p.Tables = []string{"shop.main.orders"} }), "shop", "main", "main.orders", true, false},
		"a bare name is no entry":                  {with(func(p *Principal) { p.Tables = []string{"orders"} }), "shop", "main", "orders", true, false},
		"no schema, no table":                      {admin(), "shop", "", "orders", true, false},
		"read_only reads":                          {with(func(p *Principal) { p.Role = ReadOnly }), "shop", "main", "orders", true, true},
		"restricted reads nothing in this version": {with(func(p *Principal) { p.Role = Restricted }), "shop", "main", "orders", false, false},
		"an agent reads":                           {with(func(p *Principal) { p.Agent = true }), "shop", "main", "orders", true, true},
		"no database":                              {admin(), "", "main", "orders", false, false},
	} {
		if got := MayDatabase(row.p, row.db); got != row.wantDB {
			t.Errorf("%s: database %v", sentence, got)
		}
		if got := MayRead(row.p, row.db)(row.sch, row.tab); got != row.wantT {
			t.Errorf("%s: table %v", sentence, got)
		}
	}
}

func TestModels(t *testing.T) {
	for sentence, row := range map[string]struct {
		p     Principal
		model string
		want  bool
	}{
		"nil does not narrow":            {admin(), "qwen2.5:7b", true},
		"an empty list allows nothing":   {with(func(p *Principal) { p.Models = []string{} }), "qwen2.5:7b", false},
		"a listed model":                 {with(func(p *Principal) { p.Models = []string{"qwen2.5:7b"} }), "qwen2.5:7b", true},
		"another tag":                    {with(func(p *Principal) { p.Models = []string{"qwen2.5:7b"} }), "qwen2.5:0.5b", false},
		"no tag means latest":            {with(func(p *Principal) { p.Models = []string{"phi"} }), "phi:latest", true},
		"a port is not a tag":            {with(func(p *Principal) { p.Models = []string{"host:80/a/phi"} }), "host:80/a/phi:latest", true},
		"the empty name":                 {admin(), "", false},
		"an empty entry matches nothing": {with(func(p *Principal) { p.Models = []string{""} }), ":latest", false},
	} {
		if got := MayModel(row.p, row.model); got != row.want {
			t.Errorf("%s: got %v", sentence, got)
		}
	}
}

func TestWhoMayChange(t *testing.T) {
	for sentence, row := range map[string]struct {
		p            Principal
		copy, manage bool
	}{
		"an admin key":             {admin(), true, true},
		"a read_write key":         {with(func(p *Principal) { p.Role = ReadWrite }), false, false},
		"a read_only key":          {with(func(p *Principal) { p.Role = ReadOnly }), false, false},
		"an agent's admin key":     {with(func(p *Principal) { p.Agent = true }), false, false},
		"an agent's writing key":   {with(func(p *Principal) { p.Agent, p.Role = true, ReadWrite }), false, false},
		"restricted to tables":     {with(func(p *Principal) { p.Tables = []string{"shop.orders"} }), false, true},
		"restricted to no table":   {with(func(p *Principal) { p.Tables = []string{} }), false, true},
		"narrowed to one database": {with(func(p *Principal) { p.Databases = []string{"shop"} }), false, true},
	} {
		for what, got := range map[string]error{"copy": MayCopy(row.p), "external": MayExternal(row.p)} {
			if (got == nil) != row.copy {
				t.Errorf("%s: %s gives %v", sentence, what, got)
			}
			var e *fault.Error
			if got != nil && (!errors.As(got, &e) || e.Code != fault.Denied || e.Kind != "auth" || e.Msg == "") {
				t.Errorf("%s: %s is not a denial of kind auth: %#v", sentence, what, got)
			}
		}
		if got := MayManage(row.p); (got == nil) != row.manage {
			t.Errorf("%s: manage gives %v", sentence, got)
		}
	}
}
