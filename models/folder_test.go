package models

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/fault"
)

// folderStore is a store beside a folder.
func folderStore(t *testing.T) (s *Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := OpenStore(t.TempDir(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func listed(t *testing.T, s *Store) []string {
	t.Helper()
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, m := range list {
		out = append(out, m.Name)
	}
	slices.Sort(out)
	return out
}

func wantListed(t *testing.T, s *Store, want ...string) {
	t.Helper()
	if got := listed(t, s); !slices.Equal(got, append([]string{}, want...)) {
		t.Errorf("listed are %v, want %v", got, want)
	}
}

// logged collects what is logged while a test runs.
func logged(t *testing.T) func() string {
	t.Helper()
	var mu sync.Mutex
	var buf bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return buf.Write(p)
	}), nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return buf.String()
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestFolder(t *testing.T) {
	s, dir := folderStore(t)
	wantListed(t, s)
	write(t, filepath.Join(dir, "Tiny-Q8_0.gguf"), tinyGGUF(t, nil))
	write(t, filepath.Join(dir, "publisher", "repo", "deep.gguf"), tinyGGUF(t, map[string]any{"general.name": "deep"}))
	write(t, filepath.Join(dir, "a", "b", "c", "deeper.gguf"), tinyGGUF(t, nil))
	write(t, filepath.Join(dir, ".hidden", "x.gguf"), tinyGGUF(t, nil))
	write(t, filepath.Join(dir, ".x.gguf"), tinyGGUF(t, nil))
	write(t, filepath.Join(dir, "readme.md"), nil)
	tinyModel(t, s, "installed", "one")
	wantListed(t, s, "deep:latest", "installed:latest", "tiny:q8_0")
	m, err := s.Get("TINY:Q8_0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), CreateRequest{Name: "same", Files: map[string]string{"x": addBlob(t, s, tinyGGUF(t, nil))}}, nil); err != nil {
		t.Fatal(err)
	}
	same, err := s.Get("same")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.Facts, same.Facts) || m.Template != same.Template || !reflect.DeepEqual(m.Params, same.Params) ||
		!reflect.DeepEqual(m.Details(), same.Details()) || !reflect.DeepEqual(m.Capabilities(), same.Capabilities()) {
		t.Errorf("a file is not served as Create makes it:\ngot  %+v\nwant %+v", m, same)
	}
	if m.Path != filepath.Join(dir, "Tiny-Q8_0.gguf") || m.Size != int64(len(tinyGGUF(t, nil))) || len(m.Digest) != 64 || !m.InFolder() || same.InFolder() {
		t.Errorf("got %+v", m)
	}
	p, err := m.Prompt(Conversation{Messages: nil})
	if err != nil || p.Text == "" {
		t.Errorf("its prompt: %q, %v", p.Text, err)
	}
	if kv, tensors, err := s.Info(m, true); err != nil || kv["llama.block_count"] != uint32(1) || len(tensors) != 1 {
		t.Errorf("info: %v %v %v", kv, tensors, err)
	}
	if _, err := s.Get("deeper"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("three folders deep: %v", err)
	}
}

// TestFolderChanges holds that files come, change and go at run time.
func TestFolderChanges(t *testing.T) {
	s, dir := folderStore(t)
	path := write(t, filepath.Join(dir, "m.gguf"), tinyGGUF(t, nil))
	first, err := s.Get("m")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Get("m"); err != nil || again.Digest != first.Digest || again == first {
		t.Errorf("read again: %v, %v", again, err)
	}
	long := strings.Repeat("longer", 20)
	write(t, path, tinyGGUF(t, map[string]any{"llama.context_length": uint32(4096), "general.name": long}))
	second, err := s.Get("m")
	if err != nil || second.Facts.ContextLength != 4096 || second.Digest == first.Digest || second.Size == first.Size {
		t.Errorf("replaced: %+v, %v", second, err)
	}
	// the same size, another time, and other bytes in the header
	write(t, path, tinyGGUF(t, map[string]any{"llama.context_length": uint32(1024), "general.name": long}))
	when := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
	third, err := s.Get("m")
	if err != nil || third.Facts.ContextLength != 1024 || third.Digest == second.Digest || third.Size != second.Size || !third.ModifiedAt.Equal(when) {
		t.Errorf("replaced by one of the same size: %+v, %v", third, err)
	}
	other := write(t, filepath.Join(dir, "new", "n.gguf"), tinyGGUF(t, nil))
	wantListed(t, s, "m:latest", "n:latest")
	// folders that have not changed for long are not read again, and what comes is found all the same
	for _, d := range []string{dir, filepath.Dir(other)} {
		if err := os.Chtimes(d, when, when); err != nil {
			t.Fatal(err)
		}
	}
	wantListed(t, s, "m:latest", "n:latest")
	if !s.folders.fresh() {
		t.Error("an old folder is read at every look")
	}
	write(t, filepath.Join(dir, "new", "o.gguf"), tinyGGUF(t, nil))
	wantListed(t, s, "m:latest", "n:latest", "o:latest")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("m"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a file that is gone: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	wantListed(t, s)
	write(t, path, tinyGGUF(t, nil))
	wantListed(t, s, "m:latest")
}

// TestFolderOfTheSameTick holds that a file is found although its folder's time is what it was: clocks tick slowly, and are set.
func TestFolderOfTheSameTick(t *testing.T) {
	s, dir := folderStore(t)
	when := time.Now().Add(time.Hour)
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name+".gguf"), tinyGGUF(t, nil))
		if err := os.Chtimes(dir, when, when); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(name); err != nil {
			t.Error(err)
		}
	}
}

// TestFolderIsCheap holds that a Get of a folder that has not changed reads no folder and no file.
func TestFolderIsCheap(t *testing.T) {
	s, dir := folderStore(t)
	write(t, filepath.Join(dir, "m.gguf"), tinyGGUF(t, nil))
	when := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(dir, when, when); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("m"); err != nil {
		t.Fatal(err)
	}
	looked, read := s.folders.looked, s.loose[filepath.Join(dir, "m.gguf")].model
	if _, err := s.Get("m"); err != nil {
		t.Fatal(err)
	}
	if s.folders.looked != looked || s.loose[filepath.Join(dir, "m.gguf")].model != read {
		t.Error("it was read again")
	}
}

// TestFolderShardsReal has the facts of a real model from its shards.
func TestFolderLinks(t *testing.T) {
	s, dir := folderStore(t)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret.gguf"), tinyGGUF(t, nil))
	write(t, filepath.Join(dir, "blobs", "abc"), tinyGGUF(t, nil))
	for link, to := range map[string]string{
		"out.gguf": filepath.Join(outside, "secret.gguf"), "up.gguf": "../" + filepath.Base(outside) + "/secret.gguf", "nowhere.gguf": "none",
		"in.gguf": "blobs/abc", "absolute.gguf": filepath.Join(dir, "blobs", "abc"), "round.gguf": "round.gguf", "outside": outside,
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	wantListed(t, s, "absolute:latest", "in:latest")
	// the folder itself may be a link
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(t.TempDir(), link)
	if err != nil {
		t.Fatal(err)
	}
	wantListed(t, s, "absolute:latest", "in:latest")
}

// TestFolderNames holds which of several models of one name is served: the installed one, then that of the first folder.
func TestFolderNames(t *testing.T) {
	log := logged(t)
	one, two := t.TempDir(), t.TempDir()
	s, err := OpenStore(t.TempDir(), one, two, filepath.Join(one, "none"), filepath.Join(two, "a"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(two, "x-q8_0.gguf"), tinyGGUF(t, nil))
	write(t, filepath.Join(two, "b", "y.gguf"), tinyGGUF(t, nil))
	write(t, filepath.Join(two, "a", "Y.gguf"), tinyGGUF(t, nil))
	first := write(t, filepath.Join(one, "X-Q8_0.gguf"), tinyGGUF(t, nil))
	wantListed(t, s, "x:q8_0", "y:latest")
	m, err := s.Get("x:q8_0")
	if err != nil || m.Path != first {
		t.Errorf("served is %v: %v", m, err)
	}
	if m, err := s.Get("y"); err != nil || m.Path != filepath.Join(two, "a", "Y.gguf") {
		t.Errorf("served is %v: %v", m, err)
	}
	if n := strings.Count(log(), "an earlier one has the same name"); n != 2 {
		t.Errorf("%d warnings:\n%s", n, log())
	}
	tinyModel(t, s, "X:q8_0", "installed")
	m, err = s.Get("x:q8_0")
	if err != nil || m.InFolder() {
		t.Errorf("served is %v: %v", m, err)
	}
	wantListed(t, s, "X:q8_0", "y:latest")
	if err := s.Delete("x:q8_0"); err != nil {
		t.Fatal(err)
	}
	wantListed(t, s, "x:q8_0", "y:latest")
}

// TestFolderIsNotTheStores holds that nothing changes a file of a folder, and that it can be imported.
// TestFolderShardsOfTheOtherEngine holds that shards are not given to an engine that reads one file.
// TestFolderTogether has files come and go while many ask.
func TestFolderTogether(t *testing.T) {
	s, dir := folderStore(t)
	data := tinyGGUF(t, map[string]any{"tokenizer.chat_template": nil}) // finding what fits one takes a while
	write(t, filepath.Join(dir, "stays.gguf"), data)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 8 {
				path := filepath.Join(dir, fmt.Sprintf("m%d.gguf", i))
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Error(err)
				}
				if _, err := s.Get(fmt.Sprintf("m%d", i)); err != nil {
					t.Errorf("%d: %v", j, err)
				}
				if _, err := s.Get("stays"); err != nil {
					t.Error(err)
				}
				if list, err := s.List(); err != nil || len(list) == 0 {
					t.Errorf("%v, %v", list, err)
				}
				if err := os.Remove(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantListed(t, s, "stays:latest")
}

func TestFolderBounds(t *testing.T) {
	log := logged(t)
	s, dir := folderStore(t)
	for i := range folderFiles + 10 {
		write(t, filepath.Join(dir, fmt.Sprintf("x%05d.gguf", i)), nil)
	}
	if n := len(s.folders.look()); n != folderFiles {
		t.Errorf("%d files", n)
	}
	if !strings.Contains(log(), "too many files") {
		t.Errorf("nothing was said:\n%s", log())
	}
}
