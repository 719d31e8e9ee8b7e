package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/internal/registrytest"
	"sluice/models"
)

// Whoever may write into the models folder must not make this process write elsewhere.
func TestLinksAreNotWrittenThrough(t *testing.T) {
	r := seeded(t)
	for name, suffix := range map[string]string{"for the blob": "", "for the journal": journalSuffix, "for the next journal": journalSuffix + ".new"} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, t.TempDir(), r, nil)
			precious := filepath.Join(t.TempDir(), "precious")
			if err := os.WriteFile(precious, []byte("not ours"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(precious, partialFile(t, c)+suffix); err != nil {
				t.Fatal(err)
			}
			mustPull(t, c, "big")
			if got, err := os.ReadFile(precious); err != nil || string(got) != "not ours" {
				t.Errorf("the file now has %d bytes, %v", len(got), err)
			}
			wantModel(t, c, r, "big")
		})
	}
}

// Each blob is an open file while it is pulled.
func TestAManifestOfVeryManyFiles(t *testing.T) {
	r := startRegistry(t, registrytest.Options{})
	file := gguf(t, 3000, 4)
	layers := []string{layerText("application/vnd.ollama.image.model", file)}
	for i := range 300 {
		layers = append(layers, layerText("application/vnd.ollama.image.other", fmt.Append(nil, i)))
	}
	text := `{"schemaVersion":2,"config":` + layerText("application/vnd.docker.container.image.v1+json", []byte("{}")) + `,"layers":[` + strings.Join(layers, ",") + `]}`
	r.Add(registrytest.Fault{Do: registrytest.Instead, Path: "/manifests/", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(text)) // a client that left reads no more
	})})
	c := newClient(t, t.TempDir(), r, nil)
	wantFault(t, c.pull(t.Context(), "many"), fault.Invalid, "302 files")
	if len(r.Requests("", "/blobs/")) > 0 {
		t.Error("blobs were asked for")
	}
}

func layerText(mediaType string, data []byte) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, mediaType, digestOf(data), len(data))
}

// A client that reads no more of its progress holds up nobody: neither the work that others share, nor a new try after it failed.
func TestAClientThatDoesNotListen(t *testing.T) {
	for name, failing := range map[string]bool{"while the work goes on": false, "after the work failed": true} {
		t.Run(name, func(t *testing.T) {
			r := seeded(t)
			rule := &registrytest.Rule{}
			if failing {
				rule = r.Add(registrytest.Fault{Do: registrytest.Answer, Path: digestOf(bigFile), Status: http.StatusNotFound})
			}
			c := newClient(t, t.TempDir(), r, nil)
			listens, deaf := make(chan struct{}), make(chan error, 1)
			var once sync.Once
			stuck := make(chan struct{})
			go func() {
				deaf <- c.Pull(t.Context(), Transfer{Name: "big", Insecure: true}, func(p api.ProgressResponse) {
					if p.Digest == digestOf(bigFile) {
						once.Do(func() { close(stuck) })
						<-listens
					}
				})
			}()
			<-stuck
			if failing {
				until(t, "the failure", func() bool { return rule.Hits() > 0 })
				r.Remove(rule)
			}
			if err := c.pull(t.Context(), "big"); err != nil && !failing {
				t.Error(err)
			} else if err != nil { // it may have shared the failure
				mustPull(t, c, "big")
			}
			if _, err := c.store.Get("big"); err != nil {
				t.Error(err)
			}
			close(listens)
			if err := <-deaf; (err != nil) != failing {
				t.Errorf("the deaf one says %v", err)
			}
			wantModel(t, c, r, "big")
		})
	}
}

func TestASlowRegistryHoldsUpNoOther(t *testing.T) {
	slow, quick := seeded(t), seeded(t)
	stall := slow.Add(registrytest.Fault{Do: registrytest.Stall, Path: digestOf(bigFile), At: 100})
	c := newClient(t, t.TempDir(), slow, func(cfg *Config) { cfg.Parallel, cfg.Hosts = 1, []string{slow.Host, quick.Host} })
	seed(t, quick, "other", gguf(t, 100_000, 8), "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.pull(ctx, "big") }()
	<-stall.Reached
	mustPull(t, c, quick.Host+"/library/other")
	cancel()
	<-ended
}

// A disk that takes no file of that size, such as one of FAT's, is named. The child may write no more than a megabyte into a file.
func TestADiskThatTakesNoLargeFile(t *testing.T) {
	r := seeded(t)
	dir := t.TempDir()
	text, err := json.Marshal(job{Host: r.Host, Dir: dir, Most: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childJob+"="+string(text))
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("cannot hold a file of 5.3 MB")) {
		t.Errorf("the child says %v: %s", err, out)
	}
	c := newClient(t, dir, r, nil)
	wantNothing(t, c)
	mustPull(t, c, "big")
	wantModel(t, c, r, "big")
}

// What is the matter with the disk is said without a path of this server.
func TestDiskFaults(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		says string
	}{
		"full":           {syscall.ENOSPC, "make room and pull again"},
		"over the quota": {syscall.EDQUOT, "make room and pull again"},
		"too large":      {syscall.EFBIG, "cannot hold a file of 1 GB"},
		"read-only":      {syscall.EROFS, "cannot be written: read-only file system"},
		"no right":       {syscall.EACCES, "cannot be written: permission denied"},
		"a bad sector":   {syscall.EIO, "cannot be written: input/output error"},
		"nobody knows":   {errors.New("/secret/place"), "cannot be written: it fails"},
	} {
		t.Run(name, func(t *testing.T) {
			err := diskFault(1_000_000_000, &os.PathError{Op: "write", Path: "/secret/place", Err: row.err})
			wantFault(t, err, fault.Conflict, row.says)
			if strings.Contains(fault.Public(err).Msg, "secret") || !errors.Is(err, errDisk) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Neither files nor goroutines (see TestMain) are left of pulls that failed, in whatever way.
func TestFailedPullsLeaveNothing(t *testing.T) {
	r := seeded(t)
	faults := []registrytest.Fault{
		{Do: registrytest.Answer, Path: digestOf(bigFile), Status: http.StatusNotFound},
		{Do: registrytest.Cut, Path: digestOf(bigFile), At: 1000},
		{Do: registrytest.Flip, Path: digestOf(bigFile), At: 2000},
		{Do: registrytest.Answer, Path: "/manifests/", Status: http.StatusBadGateway},
		{Do: registrytest.Answer, Path: digestOf(bigFile), Status: http.StatusUnauthorized},
	}
	c := newClient(t, t.TempDir(), r, func(cfg *Config) { cfg.Tries = 2 })
	before := openFiles(t)
	for i := range 60 {
		rule := r.Add(faults[i%len(faults)])
		if err := c.pull(t.Context(), "big"); err == nil {
			t.Fatal("it did not fail")
		}
		r.Remove(rule)
	}
	var storm sync.WaitGroup // of callers who leave at once
	stall := r.Add(registrytest.Fault{Do: registrytest.Stall, Path: digestOf(bigFile), At: 100})
	for range 40 {
		storm.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			_ = c.Pull(ctx, Transfer{Name: "big", Insecure: true}, func(p api.ProgressResponse) {
				if p.Digest != "" {
					cancel()
				}
			})
			cancel()
		})
	}
	storm.Wait()
	r.Remove(stall)
	c.Close()
	until(t, "the files to be closed", func() bool { runtime.GC(); return openFiles(t) <= before })
	if n := len(c.flights); n > 0 {
		t.Errorf("%d downloads are left", n)
	}
	mustPull(t, c, "big")
	wantModel(t, c, r, "big")
}

// openFiles counts this process's open files of the models folder and of the network.
func openFiles(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(to, partialFolder) {
			n++
		}
	}
	return n
}

// partialFolder is a part of the path of what is being fetched.
const partialFolder = ".sluice-partial"

// Everything at once, on two names of one file: whatever the order, a model is there whole or not at all.
func TestEverythingAtOnce(t *testing.T) {
	r := seeded(t)
	c := newClient(t, t.TempDir(), r, nil)
	file := gguf(t, 200_000, 12)
	seed(t, r, "a", file, "")
	const rounds = 15
	var all sync.WaitGroup
	var mu sync.Mutex
	odd := map[string]int{}
	note := func(what string, err error, fine ...fault.Code) {
		if err == nil {
			return
		}
		for _, code := range fine {
			if fault.CodeOf(err) == code {
				return
			}
		}
		mu.Lock()
		defer mu.Unlock()
		odd[what+": "+err.Error()]++
	}
	loop := func(f func(i int)) {
		all.Go(func() {
			for i := range rounds {
				f(i)
			}
		})
	}
	loop(func(int) { note("pull a", c.pull(t.Context(), "a"), fault.Conflict) })
	loop(func(int) { note("pull A", c.pull(t.Context(), "A"), fault.Conflict, fault.NotFound) })
	loop(func(int) { note("delete", c.store.Delete("a"), fault.NotFound) })
	loop(func(i int) {
		d := digestOf(file)
		if err := c.store.AddBlob(t.Context(), d, bytes.NewReader(file)); err != nil {
			note("upload", err)
			return
		}
		req := models.CreateRequest{Name: "a", Files: map[string]string{"x.gguf": d}, System: fmt.Sprint(i)}
		note("create", c.store.Create(t.Context(), req, nil), fault.Invalid, fault.NotFound) // the blob may have gone with the last model
	})
	loop(func(int) {
		note("push", c.Push(t.Context(), Transfer{Name: "a", Source: r.Host + "/me/a", Insecure: true}, nil), fault.NotFound, fault.Invalid)
	})
	loop(func(int) {
		list, err := c.store.List()
		note("list", err)
		for _, m := range list {
			if m.Path == "" {
				note("list", errors.New("half a model"))
			}
		}
	})
	all.Wait()
	for what, n := range odd {
		t.Errorf("%d times: %s", n, what)
	}
	mustPull(t, c, "a")
	if _, err := c.store.Get("a"); err != nil {
		t.Error(err)
	}
	if err := c.store.Delete("a"); err != nil {
		t.Error(err)
	}
	if left := listFiles(t, c.dir); len(left) > 0 {
		t.Errorf("there is left: %v", left)
	}
}
