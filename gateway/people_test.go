package gateway

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sluice/access"
	"sluice/store"
)

// people are the accounts of a fixture, in a real control store, with a clock that a test can turn on.
type people struct {
	*store.Accounts
	store *store.Store
	path  string // of the store

	mu    sync.Mutex
	later time.Duration
}

// emptyStore is the file of a store with the fixture's keys, made once: to migrate takes longer than to copy.
var emptyStore = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "gateway-store-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "control.db")
	s, err := store.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	for secret, k := range map[string]access.Key{
		adminKey: {ID: "k-admin", Role: access.Admin}, readOnlyKey: {ID: "k-readonly", Role: access.ReadOnly}, writerKey: {ID: "k-writer", Role: access.ReadWrite},
		agentKey:  {ID: "k-agent", Role: access.Admin, Agent: true},
		narrowKey: {ID: "k-narrow", Role: access.Admin, Databases: []string{"shop"}, Tables: []string{"shop.item"}, Models: []string{"encoder"}},
	} {
		if err := s.InsertKey(context.Background(), withSecret(secret, k)); err != nil {
			return nil, err
		}
	}
	if err := s.Close(); err != nil { // with the last connection the -wal file goes into the database
		return nil, err
	}
	return os.ReadFile(path)
})

func withSecret(secret string, k access.Key) store.Key {
	if k.Owner == "" {
		k.Owner = access.BootstrapOwner
	}
	if k.Name == "" {
		k.Name = k.ID
	}
	k.CreatedAt = time.Now().UTC()
	return store.Key{Key: k, Hash: store.HashSecret(secret)}
}

func newPeople(t testing.TB) *people {
	t.Helper()
	file, err := emptyStore()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "control.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := &people{store: s, path: path}
	p.Accounts = store.NewAccounts(s, p.now)
	return p
}

func (p *people) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.later)
}

// wait turns the clock on.
func (p *people) wait(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later += d
}

// put makes a key with a secret of the test's choice, in place of one with the same id.
func (p *people) put(t testing.TB, secret string, k access.Key) {
	t.Helper()
	if _, err := p.store.DeleteKey(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	if err := p.store.InsertKey(t.Context(), withSecret(secret, k)); err != nil {
		t.Fatal(err)
	}
}

// grant gives a right past the routes.
func (f *fixture) grant(t testing.TB, principal string, g access.Grant) access.Grant {
	t.Helper()
	g.ID, g.Principal, g.CreatedBy = "grant_"+rand.Text(), principal, "test"
	made, err := f.people.CreateGrant(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// user makes a user, past the routes.
func (f *fixture) user(t testing.TB, name string, role access.Role, grants ...access.Grant) {
	t.Helper()
	if _, err := f.people.CreateUser(t.Context(), access.User{Name: name, Role: role}, passwordOf(name)); err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		f.grant(t, name, g)
	}
}

func passwordOf(name string) string { return "the password of " + name }

// login gives the token of a login.
func (f *fixture) login(t *testing.T, name string) string {
	t.Helper()
	w := f.do(call{method: "POST", path: "/v1/auth/login", body: map[string]string{"user": name, "password": passwordOf(name)}})
	return data[map[string]any](t, w)["token"].(string)
}

// byTheirClock has the server, and what it keeps, live by the clock of the fixture's accounts.
func (f *fixture) byTheirClock() {
	s := newServer(f.cfg.withDefaults())
	s.now = f.people.now
	f.handler = s.handler()
}
