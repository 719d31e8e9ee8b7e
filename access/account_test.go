package access

import (
	"strings"
	"testing"
	"time"

	"sluice/fault"
)

func TestUserNames(t *testing.T) {
	for raw, want := range map[string]string{"ann": "ann", "Ann": "ann", "ann.b-c_d+e@example.org": "ann.b-c_d+e@example.org", "7of9": "7of9", strings.Repeat("x", 128): strings.Repeat("x", 128)} {
		if got, err := UserName(raw); err != nil || got != want {
			t.Errorf("UserName(%q) = %q, %v", raw, got, err)
		}
	}
	for sentence, raw := range map[string]string{"empty": "", "a blank": "a b", "a line": "a\nb", "a path": "../a", "a slash": "a/b", "begins with a dot": ".a", "too long": strings.Repeat("x", 129),
		"a key's id": "key_ABC", "a login's id": "login_x", "the bootstrap key's id": "Bootstrap", "letters that look alike": "аdmin", "a NUL": "a\x00", "a trailing line": "ann\n", "a percent": "a%40b"} {
		if got, err := UserName(raw); fault.CodeOf(err) != fault.Invalid || got != "" {
			t.Errorf("%s: UserName(%q) = %q, %v", sentence, raw, got, err)
		}
	}
	for password, ok := range map[string]bool{"": false, "1234567": false, "12345678": true, "äöüäöüäö": true, strings.Repeat("x", 1024): true, strings.Repeat("x", 1025): false} {
		if err := CheckPassword(password); (err == nil) != ok {
			t.Errorf("a password of %d bytes: %v", len(password), err)
		}
	}
}

func TestWhoMayManage(t *testing.T) {
	for sentence, row := range map[string]struct {
		p                       Principal
		manage, administer, own bool
	}{
		"the admin's key":                  {admin(), true, true, true},
		"an admin who logged in":           {loginOf(Admin), true, true, true},
		"another user who is admin":        {keyOf(Admin, Admin), true, true, true},
		"a user's admin key":               {keyOf(Admin, ReadWrite), false, false, false},
		"an admin's read_write key":        {keyOf(ReadWrite, Admin), false, false, false},
		"an agent's admin key":             {with(func(p *Principal) { p.Agent = true }), false, false, false},
		"an admin's key of some databases": {with(func(p *Principal) { p.Databases = []string{"shop"} }), true, false, false},
		"of some tables":                   {with(func(p *Principal) { p.Tables = []string{} }), true, false, false},
		"of some models":                   {with(func(p *Principal) { p.Models = []string{"m"} }), true, false, false},
		"narrowed by a grant":              {with(func(p *Principal) { p.Own = []Grant{shop} }), true, false, false},
		"an admin's key that will end":     {with(func(p *Principal) { p.ExpiresAt = noon.Add(time.Hour) }), true, false, false},
		"acting for an admin":              {with(func(p *Principal) { p.Agent, p.Holders = true, append(p.Holders, p.Holders[0]) }), false, false, false},
		"acting for a reader":              {with(func(p *Principal) { p.Holders = append(p.Holders, Holder{User: "b", Role: ReadOnly}) }), false, false, false},
		"a user who logged in":             {loginOf(ReadOnly), false, false, true},
		"a restricted one too":             {loginOf(Restricted), false, false, true},
		"a user's key":                     {keyOf(ReadWrite, ReadWrite), false, false, false},
	} {
		for what, c := range map[string]struct {
			got  error
			want bool
		}{"manage": {MayManage(row.p), row.manage}, "administer": {MayAdminister(row.p), row.administer}, "own keys": {MayHaveKeys(row.p), row.own}} {
			if (c.got == nil) != c.want {
				t.Errorf("%s: %s gives %v", sentence, what, c.got)
			}
		}
	}
}

func TestWhoMayMakeWhichKey(t *testing.T) {
	ann, bob, boss := User{Name: "ann", Role: ReadWrite}, User{Name: "bob", Role: ReadOnly}, User{Name: BootstrapOwner, Role: Admin}
	for sentence, row := range map[string]struct {
		p     Principal
		owner User
		k     Key
		code  fault.Code // Internal: may
	}{
		"one's own":                                 {loginOf(ReadWrite), ann, Key{Owner: "ann", Name: "k", Role: ReadWrite}, fault.Internal},
		"one's own with a lower role":               {loginOf(ReadWrite), ann, Key{Owner: "ann", Name: "k", Role: Restricted}, fault.Internal},
		"one's own with a higher role":              {loginOf(ReadWrite), ann, Key{Owner: "ann", Name: "k", Role: Admin}, fault.Denied},
		"without a role":                            {loginOf(ReadWrite), ann, Key{Owner: "ann", Name: "k"}, fault.Invalid},
		"with a role that nobody knows":             {loginOf(ReadWrite), ann, Key{Owner: "ann", Name: "k", Role: 99}, fault.Invalid},
		"another's":                                 {loginOf(ReadWrite), bob, Key{Owner: "bob", Name: "k", Role: ReadOnly}, fault.Denied},
		"another's under one's own name":            {loginOf(ReadWrite), ann, Key{Owner: "bob", Name: "k", Role: ReadOnly}, fault.Denied},
		"nobody's":                                  {admin(), User{}, Key{Name: "k", Role: ReadOnly}, fault.Denied},
		"another's by an admin":                     {loginOf(Admin), bob, Key{Owner: "bob", Name: "k", Role: ReadOnly}, fault.Internal},
		"another's by an admin, higher than theirs": {loginOf(Admin), bob, Key{Owner: "bob", Name: "k", Role: ReadWrite}, fault.Denied},
		"with a login that is not fresh":            {changed(loginOf(ReadWrite), func(p *Principal) { p.AuthenticatedAt = noon.Add(-time.Hour) }), ann, Key{Owner: "ann", Name: "k", Role: ReadWrite}, fault.Denied},
		"with a key":                                {keyOf(ReadWrite, ReadWrite), ann, Key{Owner: "ann", Name: "k", Role: ReadOnly}, fault.Denied},
		"with the admin's key":                      {admin(), boss, Key{Owner: BootstrapOwner, Name: "k", Role: Admin}, fault.Internal},
		"with an agent's key":                       {with(func(p *Principal) { p.Agent = true }), boss, Key{Owner: BootstrapOwner, Name: "k", Role: ReadOnly}, fault.Denied},
		"with a narrowed one":                       {with(func(p *Principal) { p.Models = []string{} }), boss, Key{Owner: BootstrapOwner, Name: "k", Role: ReadOnly}, fault.Denied},
		"with one that will end":                    {with(func(p *Principal) { p.ExpiresAt = noon.Add(time.Hour) }), boss, Key{Owner: BootstrapOwner, Name: "k", Role: ReadOnly}, fault.Denied},
		"without a name":                            {admin(), boss, Key{Owner: BootstrapOwner, Name: " ", Role: ReadOnly}, fault.Invalid},
		"with a name too long":                      {admin(), boss, Key{Owner: BootstrapOwner, Name: strings.Repeat("x", 201), Role: ReadOnly}, fault.Invalid},
		"that has ended":                            {admin(), boss, Key{Owner: BootstrapOwner, Name: "k", Role: ReadOnly, ExpiresAt: noon}, fault.Invalid},
		"that acts for others":                      {admin(), boss, Key{Owner: BootstrapOwner, Name: "k", Role: ReadOnly, ActsFor: "X-OpenWebUI-User-Email"}, fault.Internal},
		"that acts for others, by a user":           {loginOf(ReadWrite), ann, Key{Owner: "ann", Name: "k", Role: ReadOnly, ActsFor: "X-User"}, fault.Denied},
		"that acts for whom Authorization names":    {admin(), boss, Key{Owner: BootstrapOwner, Name: "k", Role: ReadOnly, ActsFor: "authorization"}, fault.Invalid},
		"that acts for whom a proxy names":          {admin(), boss, Key{Owner: BootstrapOwner, Name: "k", Role: ReadOnly, ActsFor: "X-Forwarded-User"}, fault.Invalid},
		"that acts for whom no header can name":     {admin(), boss, Key{Owner: BootstrapOwner, Name: "k", Role: ReadOnly, ActsFor: "X User"}, fault.Invalid},
	} {
		if err := MayMakeKey(row.p, row.owner, row.k, now); (err == nil) != (row.code == fault.Internal) || err != nil && fault.CodeOf(err) != row.code {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

func TestGrantsAreChecked(t *testing.T) {
	for sentence, g := range map[string]Grant{
		"a database": {Kind: GrantDatabase, Database: "shop"}, "a table": {Kind: GrantTable, Database: "shop", Table: "orders"},
		"a table of a schema": {Kind: GrantTable, Database: "shop", Table: "hr.pay"}, "a folder": {Kind: GrantLakeWrite, Connection: "local", Path: "exports/2024/"},
		"all folders": {Kind: GrantLakeRead, Connection: "local", Path: "/"}, "a folder with a star": {Kind: GrantAgentCopy, Connection: "local", Path: "a/*"},
		"a collection": {Kind: GrantCollection, Name: "c", Access: "read"}, "a model": {Kind: GrantModel, Name: "phi"},
	} {
		g.Principal = "ann"
		if err := g.Check(); err != nil {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	for sentence, g := range map[string]Grant{
		"the zero grant": {}, "a kind that is none": {Kind: "all", Principal: "ann"}, "to nobody": {Kind: GrantModel, Name: "phi"},
		"a table without its database": {Kind: GrantTable, Principal: "ann", Table: "orders"}, "a database with a table": {Kind: GrantDatabase, Principal: "ann", Database: "shop", Table: "orders"},
		"a table of three parts": {Kind: GrantTable, Principal: "ann", Database: "shop", Table: "shop.hr.pay"}, "a table of no schema": {Kind: GrantTable, Principal: "ann", Database: "shop", Table: ".pay"},
		"a folder of no connection": {Kind: GrantLakeWrite, Principal: "ann", Path: "a"}, "a connection without a folder": {Kind: GrantLakeWrite, Principal: "ann", Connection: "local"},
		"a folder that climbs": {Kind: GrantLakeWrite, Principal: "ann", Connection: "local", Path: "../a"}, "an absolute one": {Kind: GrantLakeRead, Principal: "ann", Connection: "local", Path: "/a"},
		"a pattern": {Kind: GrantLakeRead, Principal: "ann", Connection: "local", Path: "a*"}, "a collection without access": {Kind: GrantCollection, Principal: "ann", Name: "c"},
		"a collection with another": {Kind: GrantCollection, Principal: "ann", Name: "c", Access: "admin"}, "a model with a path": {Kind: GrantModel, Principal: "ann", Name: "phi", Path: "a"},
	} {
		if err := g.Check(); fault.CodeOf(err) != fault.Invalid || err == nil {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}
