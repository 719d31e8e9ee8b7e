package models

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"sluice/fault"
)

// powerless runs f as somebody who may do nothing that the files' modes do not allow everybody, also when the tests run as root.
func powerless(t *testing.T, f func()) {
	t.Helper()
	const nobody = 65534
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if os.Geteuid() == 0 {
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0); errno != 0 {
				t.Error(errno)
				return
			}
		}
		f()
	}()
	<-done
}

// openDir is a folder into which everybody may look.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-rights-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What cannot be read may be in use: nothing of it is removed.
func TestFoldersThatCannotBeRead(t *testing.T) {
	dir := openDir(t)
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	tinyModel(t, s, "one", "same")
	if err := s.Copy("one", "they/two"); err != nil {
		t.Fatal(err)
	}
	for _, open := range []string{"blobs", "manifests/registry.ollama.ai/library/one", "manifests/registry.ollama.ai/library", "manifests/registry.ollama.ai"} {
		if err := os.Chmod(filepath.Join(dir, open), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "manifests/registry.ollama.ai/they"), 0); err != nil {
		t.Fatal(err)
	}
	before := len(blobs(t, s))
	powerless(t, func() {
		if err := s.Delete("one"); err == nil {
			t.Error("it does not say that blobs are kept")
		}
	})
	if after := len(blobs(t, s)); after != before {
		t.Errorf("%d of %d blobs are left, and a model that could not be seen needs them", after, before)
	}
	if _, err := s.Get("they/two"); err != nil {
		t.Error(err)
	}
}

// A right that is given later does not change a file's time.
func TestAFileThatMayBeReadLater(t *testing.T) {
	dir := openDir(t)
	path := filepath.Join(dir, "m.gguf")
	if err := os.WriteFile(path, tinyGGUF(t, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(filepath.Join(openDir(t), "s"), dir)
	if err != nil {
		t.Fatal(err)
	}
	powerless(t, func() {
		_, err := s.Get("m")
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%v", err)
		}
		if err := syscall.Chmod(path, 0o644); err != nil && os.Geteuid() != 0 {
			t.Error(err)
		}
	})
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	powerless(t, func() {
		if _, err := s.Get("m"); err != nil {
			t.Errorf("it can be read now: %v", err)
		}
	})
}
