package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/access"
	"sluice/fault"
)

func accounts(t *testing.T) (*Accounts, *time.Time) {
	t.Helper()
	s, _ := opened(t)
	now := noon
	var mu sync.Mutex
	return NewAccounts(s, func() time.Time { mu.Lock(); defer mu.Unlock(); return now }), &now
}

func (a *Accounts) must(t *testing.T, name string, role access.Role, grants ...access.Grant) {
	t.Helper()
	if _, err := a.CreateUser(t.Context(), access.User{Name: name, Role: role}, "the password of "+name); err != nil {
		t.Fatal(err)
	}
	for i, g := range grants {
		g.ID, g.Principal, g.CreatedBy = fmt.Sprintf("g-%s-%d", name, i), name, "test"
		if _, err := a.CreateGrant(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
}

func wantCode(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if err == nil || fault.CodeOf(err) != code {
		t.Errorf("%s: %v, want %v", what, err, code)
	}
}

// TestAHomeOfBeforeUsersGoesOn: a store that 0001 made, with keys and an external table in it, works as it did.
func TestAHomeOfBeforeUsersGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.db")
	first, err := migrations.ReadFile("migrations/0001_spine.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(first), "-- +goose Down")
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{up,
		"CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))",
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1), (1, 1)"} {
		if _, err := old.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for id, role := range map[string]string{"bootstrap": "admin", "key_r": "read_only"} {
		_, err := old.Exec("INSERT INTO api_keys (id, hash, owner, name, role, agent, databases, created_at) VALUES (?, ?, 'admin', ?, ?, 0, ?, ?)", id, HashSecret("slc_"+id), id, role, `["shop"]`, micros(noon))
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := old.Exec("INSERT INTO external_tables VALUES ('shop', 'main', 'e', 'local', 't', '[]', '[]', 'bootstrap', 1)"); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := NewAccounts(s, nil)
	for id, role := range map[string]access.Role{"bootstrap": access.Admin, "key_r": access.ReadOnly} {
		who, err := a.Principal(t.Context(), "slc_"+id, nil)
		if err != nil || who.KeyID != id || who.Ceiling() != role || !access.MayRead(who, "shop", "main")("main", "x") || access.MayDatabase(who, "erp") || !who.ExpiresAt.IsZero() || who.Agent {
			t.Errorf("%s: %+v, %v", id, who, err)
		}
	}
	u, err := a.User(t.Context(), access.BootstrapOwner)
	if err != nil || u.Role != access.Admin || u.HasPassword || u.Disabled || time.Since(u.CreatedAt) > time.Hour {
		t.Errorf("the built-in user: %+v, %v", u, err)
	}
	if _, err := a.Login(t.Context(), access.BootstrapOwner, ""); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("the built-in user logs in without a password: %v", err)
	}
	if list, err := s.Externals(t.Context(), "shop"); err != nil || len(list) != 1 || list[0].Owner != access.BootstrapOwner {
		t.Errorf("external tables: %+v, %v", list, err)
	}
}

func TestPasswordsAreHashedAndHashedAnew(t *testing.T) {
	p := newPasswords()
	ctx := t.Context()
	hash, err := p.hash(ctx, "correct horse")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(hash, "horse") {
		t.Fatalf("%q, %v", hash, err)
	}
	if other, _ := p.hash(ctx, "correct horse"); other == hash {
		t.Error("two hashes of a password are the same: there is no salt")
	}
	if len(p.dummy) != len(hash) {
		t.Errorf("the hash of nobody is %q", p.dummy)
	}
	// The vector is the one of RFC 9106's reference implementation: argon2id, t=2, m=2^16 KiB, p=1 of "password" with the salt "somesalt".
	const vector = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for sentence, row := range map[string]struct {
		hash, password string
		same, stale    bool
	}{
		"the password":                  {hash, "correct horse", true, false},
		"another":                       {hash, "correct hors", false, false},
		"in other case":                 {hash, "Correct horse", false, false},
		"empty":                         {hash, "", false, false},
		"of nobody":                     {"", "correct horse", false, false},
		"of nobody, empty":              {"", "", false, false},
		"with parameters of before":     {vector, "password", true, true},
		"a wrong one with such":         {vector, "passwore", false, true},
		"the hash itself is no pass":    {hash, hash, false, false},
		"a NUL does not end a password": {hash, "correct horse\x00x", false, false},
	} {
		same, stale, err := p.matches(ctx, row.hash, row.password)
		if err != nil || same != row.same || stale != row.stale {
			t.Errorf("%s: %v, %v, %v", sentence, same, stale, err)
		}
	}
	for sentence, damaged := range map[string]string{"no hash": "x", "another algorithm": strings.Replace(hash, "argon2id", "argon2i", 1), "another version": strings.Replace(hash, "v=19", "v=16", 1),
		"no passes": strings.Replace(hash, "t=2", "t=0", 1), "memory that nobody has": strings.Replace(hash, "m=19456", "m=4294967295", 1), "no threads": strings.Replace(hash, "p=1", "p=0", 1),
		"a hash cut off": hash[:len(hash)-40], "no salt": "$argon2id$v=19$m=19456,t=2,p=1$$AAAAAAAAAAAAAAAAAAAAAA", "not base64": strings.Replace(hash, "$m", "$m=!", 1)} {
		if same, _, err := p.matches(ctx, damaged, "correct horse"); err == nil || same {
			t.Errorf("%s: matches", sentence)
		}
	}
	p.dummy = hash // even the password of the hash that is computed for nobody lets nobody in
	if same, _, err := p.matches(ctx, "", "correct horse"); err != nil || same {
		t.Errorf("nobody has a password: %v", err)
	}
	left, leave := context.WithCancel(ctx)
	leave()
	for range hashesAtOnce {
		p.slots <- struct{}{}
	}
	if _, err := p.hash(left, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("who left waits on: %v", err)
	}
}

func TestLogins(t *testing.T) {
	a, now := accounts(t)
	ctx := t.Context()
	a.must(t, "ann", access.ReadWrite, access.Grant{Kind: access.GrantDatabase, Database: "shop"})
	made, err := a.Login(ctx, "Ann", "the password of ann")
	if err != nil || made.User != "ann" || made.ExpiresAt != noon.Add(12*time.Hour) || made.AuthenticatedAt != noon {
		t.Fatalf("%+v, %v", made, err)
	}
	who, err := a.Principal(ctx, made.Token, nil)
	if err != nil || !who.Login || who.Owner != "ann" || who.KeyID != made.ID || who.AuthenticatedAt != noon || who.Agent || !access.MayDatabase(who, "shop") || access.MayDatabase(who, "erp") {
		t.Errorf("%+v, %v", who, err)
	}
	for _, wrong := range []string{"", made.Token + "x", made.ID, strings.TrimPrefix(made.Token, "slt_"), strings.ToUpper(made.Token)} {
		_, err := a.Principal(ctx, wrong, nil)
		wantCode(t, "a wrong token", err, fault.Unauthenticated)
	}
	*now = noon.Add(time.Hour)
	renewed, err := a.Reauth(ctx, who, "the password of ann")
	if again, err2 := a.Again(ctx, who); err != nil || err2 != nil || renewed.AuthenticatedAt != *now || again.AuthenticatedAt != *now || again.ExpiresAt != made.ExpiresAt {
		t.Errorf("%+v, %+v, %v, %v", renewed, again, err, err2)
	}
	_, err = a.Reauth(ctx, who, "wrong")
	wantCode(t, "a wrong password", err, fault.Unauthenticated)
	_, err = a.Reauth(ctx, access.Principal{KeyID: made.ID, Owner: "ann"}, "the password of ann")
	wantCode(t, "a key", err, fault.Denied)
	if err := a.Logout(ctx, who); err != nil {
		t.Error(err)
	}
	_, err = a.Principal(ctx, made.Token, nil)
	wantCode(t, "after the logout", err, fault.Unauthenticated)
	_, err = a.Again(ctx, who)
	wantCode(t, "again after the logout", err, fault.Unauthenticated)
	_, err = a.Reauth(ctx, who, "the password of ann")
	wantCode(t, "renewed after the logout", err, fault.Unauthenticated)

	// The oldest of many ends.
	tokens := []string{}
	for i := range mostLogins + 1 {
		*now = noon.Add(2*time.Hour + time.Duration(i)*time.Second)
		l, err := a.Login(ctx, "ann", "the password of ann")
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, l.Token)
	}
	for i, token := range tokens {
		if _, err := a.Principal(ctx, token, nil); (err == nil) != (i > 0) {
			t.Errorf("login %d: %v", i, err)
		}
	}
	*now = noon.Add(20 * time.Hour)
	_, err = a.Principal(ctx, tokens[9], nil)
	wantCode(t, "after its end", err, fault.Unauthenticated)
	l, err := a.Login(ctx, "ann", "the password of ann")
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := a.store.read.QueryRow("SELECT count(*) FROM logins").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d logins are kept, %v", n, err)
	}
	// What is kept of a token is its hash, and of a password its hash.
	path := ""
	if err := a.store.read.QueryRow("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, path + "-wal"} {
		text, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(text), l.Token[4:]) || strings.Contains(string(text), "the password of ann") {
			t.Errorf("a secret is in %s (%v)", filepath.Base(file), err)
		}
	}
}

// TestAPasswordOfBeforeIsHashedAnew at the next login, and the login works all the same.
func TestAPasswordOfBeforeIsHashedAnew(t *testing.T) {
	a, _ := accounts(t)
	ctx := t.Context()
	a.must(t, "ann", access.ReadOnly)
	old := hashing{memory: 64, passes: 1, threads: 1, salt: 16, length: 32}
	salt := make([]byte, 16)
	if _, err := a.store.write.Exec("UPDATE users SET password = ? WHERE name = 'ann'", old.encode(salt, old.sum("of before", salt))); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Login(ctx, "ann", "the password of ann"); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("%v", err)
	}
	l, err := a.Login(ctx, "ann", "of before")
	if err != nil {
		t.Fatal(err)
	}
	u, err := userByName(ctx, a.store.reader, "ann")
	if err != nil || !strings.HasPrefix(u.hash, "$argon2id$v=19$m=19456,") {
		t.Errorf("%q, %v", u.hash, err)
	}
	if _, err := a.Principal(ctx, l.Token, nil); err != nil {
		t.Error(err)
	}
	if err := a.CheckPassword(ctx, "ann", "of before"); err != nil {
		t.Error(err)
	}
}

// TestALoginThatWasOvertaken: a password that is changed while it is checked lets nobody in.
func TestALoginThatWasOvertaken(t *testing.T) {
	a, _ := accounts(t)
	ctx := t.Context()
	a.must(t, "ann", access.ReadOnly)
	u, err := a.verify(ctx, "ann", "the password of ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.ChangeUser(ctx, "ann", access.UserChange{Password: "another password"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a changed password", unchanged(ctx, a.store.reader, u), fault.Unauthenticated)
	if err := a.DeleteUser(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a deleted user", unchanged(ctx, a.store.reader, u), fault.Unauthenticated)
}

func TestUsers(t *testing.T) {
	a, _ := accounts(t)
	ctx := t.Context()
	a.must(t, "ann", access.ReadWrite, access.Grant{Kind: access.GrantDatabase, Database: "shop"})
	a.must(t, "bob", access.ReadOnly)
	if all, err := a.Users(ctx); err != nil || len(all) != 3 || all[1].Name != "ann" || !all[1].HasPassword {
		t.Errorf("%+v, %v", all, err)
	}
	_, err := a.CreateUser(ctx, access.User{Name: "ann", Role: access.ReadOnly}, "")
	wantCode(t, "a second ann", err, fault.Conflict)
	for sentence, u := range map[string]access.User{"no role": {Name: "eve"}, "no name": {Role: access.ReadOnly}, "upper case": {Name: "Eve", Role: access.ReadOnly}, "a key's id": {Name: "key_x", Role: access.ReadOnly}} {
		if _, err := a.CreateUser(ctx, u, ""); err == nil {
			t.Errorf("%s: stored", sentence)
		}
	}
	_, err = a.CreateUser(ctx, access.User{Name: "eve", Role: access.ReadOnly}, "short")
	wantCode(t, "a short password", err, fault.Invalid)
	_, err = a.ChangeUser(ctx, "eve", access.UserChange{})
	wantCode(t, "nobody changed", err, fault.NotFound)
	wantCode(t, "nobody deleted", a.DeleteUser(ctx, "eve"), fault.NotFound)
	yes, role := true, access.ReadOnly
	for sentence, c := range map[string]access.UserChange{"disabled": {Disabled: &yes}, "another role": {Role: &role}} {
		_, err = a.ChangeUser(ctx, access.BootstrapOwner, c)
		wantCode(t, "the built-in user "+sentence, err, fault.Conflict)
	}
	wantCode(t, "the built-in user deleted", a.DeleteUser(ctx, access.BootstrapOwner), fault.Conflict)
	none := access.NoRole
	if _, err := a.ChangeUser(ctx, "ann", access.UserChange{Role: &none}); err == nil {
		t.Error("a user without a role")
	}

	// Keys: of a user, deleted with him, what is granted to them too.
	key, secret, err := a.CreateKey(ctx, access.Key{ID: "key_1", Owner: "ann", Name: "k", Role: access.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateGrant(ctx, access.Grant{ID: "g1", Principal: "key_1", Kind: access.GrantDatabase, Database: "shop", CreatedBy: "test"}); err != nil {
		t.Fatal(err)
	}
	who, err := a.Principal(ctx, secret, nil)
	if err != nil || who.Owner != "ann" || who.Ceiling() != access.ReadWrite || len(who.Own) != 1 || len(who.Holders) != 1 || len(who.Holders[0].Grants) != 1 || who.ReadAt != noon {
		t.Errorf("%+v, %v", who, err)
	}
	_, _, err = a.CreateKey(ctx, access.Key{ID: "key_2", Owner: "nobody", Name: "k", Role: access.ReadOnly})
	wantCode(t, "a key of nobody", err, fault.NotFound)
	if _, err := a.ChangeUser(ctx, "ann", access.UserChange{Role: &role}); err != nil {
		t.Fatal(err)
	}
	if again, err := a.Again(ctx, who); err != nil || again.Ceiling() != access.ReadOnly {
		t.Errorf("a key above its owner: %+v, %v", again, err)
	}
	if _, err := a.ChangeUser(ctx, "ann", access.UserChange{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	_, err = a.Principal(ctx, secret, nil)
	wantCode(t, "the key of a disabled user", err, fault.Unauthenticated)
	wantCode(t, "the password of a disabled user", a.CheckPassword(ctx, "ann", "the password of ann"), fault.Unauthenticated)
	_, err = a.OfUser(ctx, "ann")
	wantCode(t, "the rights of a disabled user", err, fault.NotFound)
	if who, err := a.OfUser(ctx, "bob"); err != nil || who.Ceiling() != access.ReadOnly || access.MayDatabase(who, "shop") {
		t.Errorf("bob: %+v, %v", who, err)
	}
	if err := a.DeleteUser(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	a.must(t, "ann", access.Admin)
	_, err = a.Principal(ctx, secret, nil)
	wantCode(t, "the key of a deleted user", err, fault.Unauthenticated)
	if grants, err := a.Grants(ctx); err != nil || len(grants) != 0 {
		t.Errorf("grants left: %+v, %v", grants, err)
	}
	wantCode(t, "no key", a.DeleteKey(ctx, key.ID), fault.NotFound)
}

func TestGrants(t *testing.T) {
	a, _ := accounts(t)
	ctx := t.Context()
	a.must(t, "ann", access.ReadOnly)
	give := func(g access.Grant) (access.Grant, error) {
		g.CreatedBy = "test"
		if g.Principal == "" {
			g.Principal = "ann"
		}
		return a.CreateGrant(ctx, g)
	}
	for i, path := range []string{"exports/2024/", "a/*", "/*"} {
		g, err := give(access.Grant{ID: fmt.Sprint("g", i), Kind: access.GrantLakeWrite, Connection: "local", Path: path})
		if err != nil || g.Path != []string{"exports/2024", "a", "/"}[i] {
			t.Errorf("%s: %+v, %v", path, g, err)
		}
	}
	_, err := give(access.Grant{ID: "g9", Kind: access.GrantLakeWrite, Connection: "local", Path: "a/"})
	wantCode(t, "the same folder in other words", err, fault.Conflict)
	_, err = give(access.Grant{ID: "g9", Kind: access.GrantDatabase, Database: "shop", Principal: "nobody"})
	wantCode(t, "to nobody", err, fault.Invalid)
	_, err = give(access.Grant{ID: "g9", Kind: access.GrantTable, Database: "shop"})
	wantCode(t, "half a grant", err, fault.Invalid)
	if all, err := a.Grants(ctx); err != nil || len(all) != 3 || all[0].CreatedAt != noon || all[0].CreatedBy != "test" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := a.DeleteGrant(ctx, "g1"); err != nil {
		t.Error(err)
	}
	wantCode(t, "twice", a.DeleteGrant(ctx, "g1"), fault.NotFound)
	// A damaged row gives no right.
	if _, err := a.store.write.Exec("UPDATE grants SET kind = 'everything'"); err != nil {
		t.Fatal(err)
	}
	l, err := a.Login(ctx, "ann", "the password of ann")
	if err != nil {
		t.Fatal(err)
	}
	if who, err := a.Principal(ctx, l.Token, nil); err == nil || fault.CodeOf(err) != fault.Internal {
		t.Errorf("%+v, %v", who, err)
	}
}
