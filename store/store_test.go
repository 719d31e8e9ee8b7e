package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/access"
	"sluice/fault"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

func opened(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a folder with ? and %41", "control.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, path
}

func TestOpen(t *testing.T) {
	s, path := opened(t)
	if err := s.InsertKey(t.Context(), sample("k1")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(path)), "*", "control.db*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v: expected the database and its -wal", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", file, info.Mode(), err)
		}
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000"} {
		for name, pool := range map[string]*sql.DB{"writer": s.write, "reader": s.read} {
			var got string
			if err := pool.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s of the %s is %q, %v", pragma, name, got, err)
			}
		}
	}
	if _, err := s.read.Exec("DELETE FROM api_keys"); err == nil {
		t.Error("a reading connection wrote")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if n, err := again.CountKeys(t.Context()); err != nil || n != 1 {
		t.Errorf("after reopening: %d keys, %v", n, err)
	}
}

func TestOpenClosesAFileThatOthersCouldRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.db")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	s, path := opened(t)
	if _, err := s.write.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, err := Open(t.Context(), path)
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("got %v", err)
	}
}

func TestSecrets(t *testing.T) {
	form := regexp.MustCompile(`^slc_[A-Za-z0-9_-]{43}$`)
	seen := map[string]bool{}
	for range 1000 {
		secret, hash := NewSecret()
		if !form.MatchString(secret) || seen[secret] {
			t.Fatalf("bad or repeated secret")
		}
		seen[secret] = true
		if sum := sha256.Sum256([]byte(secret)); !bytes.Equal(sum[:], hash) || !bytes.Equal(hash, HashSecret(secret)) {
			t.Fatal("the hash is not that of the whole secret")
		}
	}
}

func sample(id string) Key {
	return Key{Hash: HashSecret("slc_" + id), Key: access.Key{ID: id, Owner: access.BootstrapOwner, Name: "laptop", Role: access.ReadOnly, CreatedAt: noon}}
}

func TestKeys(t *testing.T) {
	s, path := opened(t)
	ctx := t.Context()
	narrow := sample("k2")
	narrow.Agent, narrow.Databases, narrow.Tables, narrow.Models = true, []string{"shop"}, []string{}, []string{"a:b", `q"`}
	narrow.CreatedAt = noon.Add(time.Second)
	for _, k := range []Key{sample("k1"), narrow} {
		if err := s.InsertKey(ctx, k); err != nil {
			t.Fatal(err)
		}
		got, err := s.KeyByHash(ctx, k.Hash)
		if err != nil || !reflect.DeepEqual(got, k) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, k)
		}
	}
	if list, err := s.Keys(ctx); err != nil || len(list) != 2 || list[0].ID != "k1" || list[1].ID != "k2" {
		t.Errorf("list %v, %v", list, err)
	}
	for sentence, k := range map[string]Key{"the same id": sample("k1"), "the same secret": func() Key { k := sample("k3"); k.Hash = HashSecret("slc_k1"); return k }()} {
		if err := s.InsertKey(ctx, k); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	for sentence, change := range map[string]func(*Key){
		"no id": func(k *Key) { k.ID = "" }, "no owner": func(k *Key) { k.Owner = "" },
		"a short hash": func(k *Key) { k.Hash = []byte("slc_") }, "an unknown role": func(k *Key) { k.Role = access.Admin + 1 },
	} {
		k := sample("k9")
		change(&k)
		if err := s.InsertKey(ctx, k); err == nil {
			t.Errorf("%s was stored", sentence)
		}
	}
	if _, err := s.KeyByHash(ctx, HashSecret("slc_other")); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown key: %v", err)
	}
	if gone, err := s.DeleteKey(ctx, "k1"); err != nil || !gone {
		t.Errorf("delete: %v, %v", gone, err)
	}
	if gone, err := s.DeleteKey(ctx, "k1"); err != nil || gone {
		t.Errorf("delete again: %v, %v", gone, err)
	}
	if n, err := s.CountKeys(ctx); err != nil || n != 1 {
		t.Errorf("count: %d, %v", n, err)
	}
	secret, hash := NewSecret()
	k := sample("k4")
	k.Hash = hash
	if err := s.InsertKey(ctx, k); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, path + "-wal"} {
		if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte(secret[4:])) {
			t.Errorf("the secret is in %s (%v)", filepath.Base(file), err)
		}
	}
}

func TestADamagedKeyAllowsNothing(t *testing.T) {
	s, _ := opened(t)
	k := sample("k1")
	k.Tables = []string{"shop.orders"}
	if err := s.InsertKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"null", "{}", `"x"`, ""} {
		if _, err := s.write.Exec("UPDATE api_keys SET tables = ?", damage); err != nil {
			t.Fatal(err)
		}
		if got, err := s.KeyByHash(t.Context(), k.Hash); err == nil {
			t.Errorf("tables = %q gives %+v", damage, got)
		}
	}
	for _, role := range []string{"superuser", "", "Admin"} {
		if _, err := s.write.Exec("UPDATE api_keys SET tables = NULL, role = ?", role); err != nil {
			t.Fatal(err)
		}
		if got, err := s.KeyByHash(t.Context(), k.Hash); err != nil || got.Role != access.NoRole {
			t.Errorf("role %q gives %v, %v", role, got.Role, err)
		}
	}
}

func TestRuns(t *testing.T) {
	s, _ := opened(t)
	ctx := t.Context()
	r := Run{ID: "r1", JobID: "j1", Principal: "k1", Owner: "admin", Database: "shop", Statement: "COPY …", Connection: "local", Path: "t", State: Running, StartedAt: noon}
	later := r
	later.ID, later.StartedAt = "r2", noon.Add(time.Second)
	for _, run := range []Run{r, later} {
		if err := s.InsertRun(ctx, run); err != nil {
			t.Fatal(err)
		}
	}
	wantUnsettled := func(ids ...string) {
		t.Helper()
		list, err := s.UnsettledRuns(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, run := range list {
			got = append(got, run.ID)
		}
		if fmt.Sprint(got) != fmt.Sprint(ids) {
			t.Errorf("unsettled %v, want %v", got, ids)
		}
	}
	wantUnsettled("r1", "r2")
	r.State, r.Rows, r.Files, r.Bytes, r.Partitions, r.EndedAt = Committed, 1, 2, 3, 4, noon.Add(time.Minute)
	r.Added, r.Replaced = []string{"t/a"}, []string{}
	if err := s.UpdateRun(ctx, r); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Runs(ctx, 10); err != nil || len(list) != 2 || !reflect.DeepEqual(list[1], r) || !reflect.DeepEqual(list[0], later) {
		t.Errorf("runs %+v, %v", list, err)
	}
	wantUnsettled("r1", "r2")
	r.Added, r.Replaced = nil, nil
	later.State, later.Kind, later.Error, later.EndedAt = Aborted, "query", "boom", noon
	for _, run := range []Run{r, later} {
		if err := s.UpdateRun(ctx, run); err != nil {
			t.Fatal(err)
		}
	}
	wantUnsettled()
	if list, err := s.Runs(ctx, 1); err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], later) {
		t.Errorf("newest run %+v, %v", list, err)
	}
	if err := s.UpdateRun(ctx, Run{ID: "none", State: Aborted}); err == nil {
		t.Error("a run that was never inserted was updated")
	}
	if err := s.UpdateRun(ctx, Run{ID: "r1", State: "perhaps"}); err == nil {
		t.Error("an unknown state was stored")
	}
}

func TestExternals(t *testing.T) {
	s, _ := opened(t)
	ctx := t.Context()
	e := External{
		Database: "shop", Schema: "main", Name: "Events", Connection: "local", Location: "t/events", CreatedBy: "k1", Owner: "ann", CreatedAt: noon,
		Columns: []Column{{"id", "BIGINT"}, {`a "b"`, "STRUCT(x INTEGER)"}}, PartitionBy: []Column{{"region", "VARCHAR"}},
	}
	if err := s.InsertExternal(ctx, e); err != nil {
		t.Fatal(err)
	}
	same := e
	same.Name = "eVENTS"
	if err := s.InsertExternal(ctx, same); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the same name in other case: %v", err)
	}
	if list, err := s.Externals(ctx, "shop"); err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], e) {
		t.Errorf("externals: %+v, %v", list, err)
	}
	for _, other := range []string{"erp", ""} {
		if list, err := s.Externals(ctx, other); err != nil || len(list) != 0 {
			t.Errorf("externals of another database: %+v, %v", list, err)
		}
	}
	if gone, err := s.DeleteExternal(ctx, "shop", "events"); err != nil || !gone {
		t.Errorf("delete: %v, %v", gone, err)
	}
	if gone, err := s.DeleteExternal(ctx, "shop", "events"); err != nil || gone {
		t.Errorf("delete again: %v, %v", gone, err)
	}
}

// Many writers and readers at once must neither see "database is locked" nor lose a row.
func TestConcurrentUse(t *testing.T) {
	s, _ := opened(t)
	ctx := context.Background()
	var wait sync.WaitGroup
	errs := make(chan error, 200)
	for i := range 50 {
		wait.Go(func() {
			k := sample(fmt.Sprintf("k%03d", i))
			errs <- s.InsertKey(ctx, k)
			_, err := s.KeyByHash(ctx, k.Hash)
			errs <- err
			_, err = s.Keys(ctx)
			errs <- err
		})
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n, err := s.CountKeys(ctx); err != nil || n != 50 {
		t.Errorf("%d keys, %v", n, err)
	}
}
