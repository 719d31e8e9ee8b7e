package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func (h home) readHead(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(h.head())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// writeHead writes into the file that is there, as the running server has it open.
func (h home) writeHead(t testing.TB, text []byte) {
	t.Helper()
	if err := os.WriteFile(h.head(), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLedgerSeesEveryChangeOfItsHead(t *testing.T) {
	l := openLedger(t, newHome(t))
	l.fill(t, 5)
	earlier := l.home.readHead(t)
	l.fill(t, 50)
	whole := l.home.readHead(t)
	check := func(sentence, reason string, text []byte) {
		t.Helper()
		l.home.writeHead(t, text)
		v := l.verify(t)
		want(t, sentence, v, Partial, 0)
		if !strings.Contains(v.Reason, reason) {
			t.Errorf("%s: %s", sentence, v.Reason)
		}
	}
	for at := range whole {
		if at%slotSize > 300 && at%97 != 0 && at%slotSize != slotSize-1 {
			continue // spaces, of which some will do
		}
		text := bytes.Clone(whole)
		text[at] ^= 1 << (at % 8)
		check(fmt.Sprintf("byte %d", at), "altered", text)
	}
	for _, n := range []int{0, 1, 100, slotSize - 1, slotSize, slotSize + 1, 2*slotSize - 1} {
		check(fmt.Sprintf("cut to %d bytes", n), "altered", whole[:n])
	}
	check("longer", "altered", append(bytes.Clone(whole), ' '))
	check("slots swapped", "altered", append(bytes.Clone(whole[slotSize:]), whole[:slotSize]...))
	check("an earlier one put back", "put back", earlier)
	mixed := append(bytes.Clone(whole[:slotSize]), earlier[slotSize:]...)
	check("a slot of an earlier one", "altered", mixed)
	if err := os.Remove(l.home.head()); err != nil {
		t.Fatal(err)
	}
	want(t, "deleted", l.verify(t), Partial, 0)
	l.home.writeHead(t, whole)
	want(t, "put back as it was", l.verify(t), Intact, 0)
}

// Between two runs of the server the head alone can tell.
func TestLedgerRemembersWhatItFindsAtTheStart(t *testing.T) {
	cut := func(t *testing.T, h home, left int64) {
		b := breakIn(t, h)
		b.do("DELETE FROM ledger WHERE seq > ?", left)
	}
	for sentence, row := range map[string]struct {
		change func(t *testing.T, h home)
		key    string
		status Status
		bad    int64
	}{
		"untouched":                        {func(*testing.T, home) {}, ledgerKey, Intact, 0},
		"the last entry cut off":           {func(t *testing.T, h home) { cut(t, h, 39) }, ledgerKey, Partial, 40},
		"all entries cut off":              {func(t *testing.T, h home) { cut(t, h, 0) }, ledgerKey, Partial, 1},
		"the head deleted":                 {func(t *testing.T, h home) { os.Remove(h.head()) }, ledgerKey, Partial, 0},
		"the head emptied":                 {func(t *testing.T, h home) { h.writeHead(t, nil) }, ledgerKey, Partial, 0},
		"all cut off and the head emptied": {func(t *testing.T, h home) { cut(t, h, 0); h.writeHead(t, nil) }, ledgerKey, Partial, 0},
		"the last entry cut off and the newest slot damaged": {func(t *testing.T, h home) {
			text := h.readHead(t)
			_, gen, _, err := decodeHead([]byte(ledgerKey), text)
			if err != nil {
				t.Fatal(err)
			}
			text[int(gen%2)*slotSize] = 'x'
			h.writeHead(t, text)
			cut(t, h, 39)
		}, ledgerKey, Partial, 40},
		"another key": {func(*testing.T, home) {}, "another key of 32 bytes or a few more", Partial, 0},
		"an entry more": {func(t *testing.T, h home) {
			b := breakIn(t, h)
			e := b.read(40)
			e.seq, e.prev = 41, e.hash
			b.insert(sealed(e))
		}, ledgerKey, Tampered, 41},
		"the last entry another": {func(t *testing.T, h home) {
			b := breakIn(t, h)
			e := b.read(40)
			e.principal = []byte("nobody")
			b.put(40, sealed(e))
		}, ledgerKey, Tampered, 40},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHome(t)
			l := openLedger(t, h)
			for range 39 { // one after the other: each has moved the head
				if err := l.Append(t.Context(), Event{Kind: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			l.shut(t)
			row.change(t, h)
			for range 3 { // it does not heal
				l, err := h.open(t.Context(), row.key)
				if err != nil {
					t.Fatal(err)
				}
				l.fill(t, 60)
				want(t, sentence, l.verify(t), row.status, row.bad)
				l.shut(t)
			}
		})
	}
}

// An entry that is cut off under the running server is noticed by the next append, which must not cover it up.
func TestLedgerRemembersACutThatItAppendsTo(t *testing.T) {
	l := openLedger(t, newHome(t))
	l.fill(t, 20)
	breakIn(t, l.home).drop(20)
	l.fill(t, 30)
	want(t, "appended to", l.verify(t), Partial, 20)
	l.shut(t)
	want(t, "opened again", openLedger(t, l.home).verify(t), Partial, 20)
}

func TestLedgerKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.key")
	made, err := LedgerKey("", file)
	if err != nil || len(made) < 32 {
		t.Fatalf("%q, %v", made, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if again, err := LedgerKey("", file); err != nil || !bytes.Equal(again, made) {
		t.Errorf("the second time %q, %v", again, err)
	}
	if other, err := LedgerKey("", filepath.Join(t.TempDir(), "k")); err != nil || bytes.Equal(other, made) {
		t.Errorf("another file has the same key, %v", err)
	}
	given := strings.Repeat("k", 32)
	if got, err := LedgerKey(given, file); err != nil || string(got) != given {
		t.Errorf("the configured one: %q, %v", got, err)
	}
	if _, err := LedgerKey("short", file); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("a short one: %v", err)
	}
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LedgerKey("", file); err == nil {
		t.Error("an empty file was taken")
	}
}

// What is read as a head is byte by byte what would be written for it.
func FuzzLedgerHead(f *testing.F) {
	key := []byte(ledgerKey)
	h := head{at: mark{seq: 7}, next: mark{seq: 9}}
	whole := append(encodeSlot(key, 4, h), encodeSlot(key, 5, head{at: h.next})...)
	f.Add(whole)
	f.Add(whole[:slotSize])
	f.Add(bytes.Repeat([]byte(slotWord+" 1 1 00 1 00 00\n"), 2))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, gen, half, err := decodeHead(key, text)
		if err != nil {
			return
		}
		if slot := text[int(gen%2)*slotSize:][:slotSize]; !bytes.Equal(slot, encodeSlot(key, gen, h)) {
			t.Fatalf("%q is read as %+v", slot, h)
		}
		if other := text[int(1-gen%2)*slotSize:][:slotSize]; half == func() bool { _, _, ok := decodeSlot(key, other); return ok }() {
			t.Fatal("a damaged slot is taken for a whole one, or the other way round")
		}
	})
}
