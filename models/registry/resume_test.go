package registry

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"sluice/internal/registrytest"
	"sluice/models"
)

// childJob names what a child process of these tests is to pull, see child.
const childJob = "SLUICE_REGISTRY_CHILD"

type job struct {
	Host, Dir, Point string
	Most             uint64 // bytes of a file that this process may write; 0: any
}

// child pulls until it comes to a point, says so, and waits there to be killed.
func child(text string) {
	var j job
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fail(json.Unmarshal([]byte(text), &j))
	s, err := models.OpenStore(j.Dir)
	fail(err)
	c, err := New(Config{Store: s, Hosts: []string{j.Host}, PartBytes: partBytes, Parallel: 1})
	fail(err)
	c.note = 5 * time.Millisecond
	c.at = func(point string) {
		if point == j.Point {
			fmt.Println("here")
			select {}
		}
	}
	if j.Most > 0 {
		fail(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: j.Most, Max: j.Most}))
	}
	fail(c.Pull(context.Background(), Transfer{Name: "big", Insecure: true}, nil))
	fmt.Println("the pull was not stopped")
}

// TestInterruptedPullsGoOn ends a pull at five points, by a cancel and by SIGKILL, and lets a new client go on.
func TestInterruptedPullsGoOn(t *testing.T) {
	size := int64(len(big(t)))
	points := map[string]struct {
		point string              // where the pull is ended; "": where the registry stalls
		stall *registrytest.Fault // of the big blob
		most  int64               // bytes of the big blob that the second pull may get
		noted int64               // bytes that the journal must have before the end; with one part at a time
	}{
		"before the manifest":                {point: "begin", most: size},
		"in the first part":                  {stall: &registrytest.Fault{At: 1_000_000}, most: size - 900_000, noted: 900_000},
		"between parts":                      {point: "part", most: size - partBytes, noted: partBytes},
		"in a later part":                    {stall: &registrytest.Fault{At: 3*partBytes + 1_000_000}, most: size - 3*partBytes - 900_000, noted: 3*partBytes + 900_000},
		"before the digest is verified":      {point: "fetched", most: 0, noted: size},
		"before the manifest is written":     {point: "manifest", most: 0, noted: size},
		"when one blob is whole and checked": {point: "verified", most: 0, noted: size},
	}
	for name, row := range points {
		for how, end := range map[string]func(*testing.T, *registrytest.Registry, string, string, <-chan struct{}, func()){"cancel": cancelAt, "kill": killAt} {
			t.Run(name+", by a "+how, func(t *testing.T) {
				t.Parallel()
				r := seeded(t)
				dir := t.TempDir()
				var stalled *registrytest.Rule
				var reached <-chan struct{}
				if row.stall != nil {
					f := *row.stall
					f.Do, f.Path = registrytest.Stall, digestOf(bigFile)
					stalled = r.Add(f)
					reached = stalled.Reached
				}
				path, err := openStore(t, dir).PartialPath(digestOf(bigFile))
				if err != nil {
					t.Fatal(err)
				}
				end(t, r, dir, row.point, reached, func() {
					until(t, "the journal", func() bool { return doneBytes(path) >= row.noted })
				})
				if stalled != nil {
					r.Remove(stalled)
				}
				c := newClient(t, dir, r, nil)
				wantNothing(t, c)
				r.Forget()
				mustPull(t, c, "big")
				wantModel(t, c, r, "big")
				slack := int64(partBytes / 2) // the last request of the first client may come only now, and be cut
				if row.most == 0 {
					slack = 0
				}
				if sent := r.Sent(digestOf(bigFile)); sent > row.most+slack {
					t.Errorf("%d bytes were fetched, want at most %d", sent, row.most)
				}
			})
		}
	}
}

func cancelAt(t *testing.T, r *registrytest.Registry, dir, point string, reached <-chan struct{}, noted func()) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newClient(t, dir, r, func(cfg *Config) { cfg.Parallel = 1 })
	c.note = 5 * time.Millisecond
	c.at = func(at string) {
		if at == point {
			noted()
			cancel()
		}
	}
	if point == "" {
		go func() {
			<-reached
			noted()
			cancel()
		}()
	}
	if err := c.pull(ctx, "big"); err == nil {
		t.Fatal("the pull was not stopped")
	}
}

func killAt(t *testing.T, r *registrytest.Registry, dir, point string, reached <-chan struct{}, noted func()) {
	text, err := json.Marshal(job{Host: r.Host, Dir: dir, Point: point})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childJob+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as meant
	}()
	if point == "" {
		<-reached
	} else if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "here" {
		t.Fatalf("the child says %q", lines.Text())
	}
	noted()
}

// What is in the file and not in the journal is not trusted: a kill may have left it half written.
func TestOnlyTheJournalIsTrusted(t *testing.T) {
	cases := map[string]struct {
		spoil func(t *testing.T, path string)
		want  map[int]int
	}{
		"bytes of which the journal knows nothing": {func(t *testing.T, path string) {
			j := readJSON(t, path+journalSuffix)
			for i := 2; i < len(j.Parts); i++ {
				j.Parts[i].Done, j.Parts[i].SHA256 = 0, ""
				flip(t, path, j.Parts[i].Offset+5)
			}
			writeJSON(t, path+journalSuffix, j)
		}, map[int]int{2: 1, 3: 1, 4: 1, 5: 1}},
		"a part that is half done, and damaged": {func(t *testing.T, path string) {
			j := readJSON(t, path+journalSuffix)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p := &j.Parts[3]
			p.Done = 1000
			p.SHA256 = digestOf(data[p.Offset : p.Offset+1000])[7:]
			flip(t, path, p.Offset+17)
			writeJSON(t, path+journalSuffix, j)
		}, map[int]int{3: 1}},
		"a byte that changed while nothing ran": {func(t *testing.T, path string) { flip(t, path, 4*partBytes+3) }, map[int]int{4: 1}},
		"a journal that is cut": {func(t *testing.T, path string) {
			if err := os.Truncate(path+journalSuffix, 100); err != nil {
				t.Fatal(err)
			}
		}, map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}},
		"a file that is cut": {func(t *testing.T, path string) {
			if err := os.Truncate(path, 3*partBytes+1); err != nil {
				t.Fatal(err)
			}
		}, map[int]int{3: 1, 4: 1, 5: 1}},
		"a file that is gone": {func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seeded(t)
			dir := t.TempDir()
			cancelAt(t, r, dir, "fetched", nil, func() {})
			c := newClient(t, dir, r, nil)
			row.spoil(t, partialFile(t, c))
			r.Forget()
			mustPull(t, c, "big")
			wantModel(t, c, r, "big")
			wantParts(t, r, row.want)
		})
	}
}

func readJSON(t *testing.T, path string) *journal {
	t.Helper()
	j, err := readJournal(path, digestOf(bigFile), int64(len(bigFile)))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func writeJSON(t *testing.T, path string, j *journal) {
	t.Helper()
	if err := j.write(path); err != nil {
		t.Fatal(err)
	}
}

func FuzzJournal(f *testing.F) {
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	good := journal{Version: 1, Digest: digest, Size: 30, Parts: []journalPart{{Size: 10, Done: 10, SHA256: digest[7:]}, {Offset: 10, Size: 20}}}
	data, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := parseJournal(data, digest, 30)
		if err != nil {
			return
		}
		at := int64(0)
		for _, p := range j.Parts {
			if p.Offset != at || p.Size <= 0 || p.Done < 0 || p.Done > p.Size {
				t.Fatalf("%+v", j)
			}
			at += p.Size
		}
		if at != 30 {
			t.Fatalf("the parts have %d bytes", at)
		}
	})
}
