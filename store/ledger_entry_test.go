package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/fault"
)

// golden is what testdata/ledger_golden.py computed from the description in docs/SECURITY.md alone.
type golden struct {
	Key     string
	Entries []struct {
		Seq, Time                int64
		Kind, Principal, Details string
		Prev, Hash               string
		RequestID                string `json:"request_id"`
	}
	Heads []struct {
		Gen, At, Next uint64
		Line          string
		SlotSHA256    string `json:"slot_sha256"`
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/ledger_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLedgerEntriesAreHashedAsDescribed(t *testing.T) {
	var end mark
	for _, want := range readGolden(t).Entries {
		var details map[string]any
		in := json.NewDecoder(strings.NewReader(want.Details))
		in.UseNumber()
		if err := in.Decode(&details); err != nil {
			t.Fatal(err)
		}
		e, err := Event{Kind: want.Kind, Principal: want.Principal, RequestID: want.RequestID, Details: details}.entry()
		if err != nil {
			t.Fatal(err)
		}
		if string(e.Details) != want.Details {
			t.Errorf("entry %d: details %s, want %s", want.Seq, e.Details, want.Details)
		}
		end = e.after(end, time.UnixMicro(want.Time).Add(999)) // less than a microsecond is cut off
		if e.Seq != want.Seq || micros(e.Time) != want.Time || hex.EncodeToString(e.Prev[:]) != want.Prev || hex.EncodeToString(e.Hash[:]) != want.Hash {
			t.Errorf("entry %+v\nwant %+v", e, want)
		}
	}
}

func TestLedgerHeadsAreWrittenAsDescribed(t *testing.T) {
	g := readGolden(t)
	at := func(seq uint64) (m mark) {
		if m.seq = int64(seq); seq > 0 {
			text, _ := hex.DecodeString(g.Entries[seq-1].Hash)
			copy(m.hash[:], text)
		}
		return m
	}
	for _, want := range g.Heads {
		h := head{at: at(want.At), next: at(want.Next)}
		slot := encodeSlot([]byte(g.Key), want.Gen, h)
		sum := sha256.Sum256(slot)
		if !strings.HasPrefix(string(slot), want.Line+" ") || hex.EncodeToString(sum[:]) != want.SlotSHA256 {
			t.Errorf("slot %d is %q\nwant %q", want.Gen, strings.TrimRight(string(slot), " \n"), want.Line)
		}
		if gen, got, ok := decodeSlot([]byte(g.Key), slot); !ok || gen != want.Gen || got != h {
			t.Errorf("slot %d is read as %d %+v %v", want.Gen, gen, got, ok)
		}
	}
}

func TestLedgerRefusesWhatIsNoEvent(t *testing.T) {
	l := openLedger(t, newHome(t))
	before := l.end(t)
	for sentence, e := range map[string]Event{
		"no kind":                       {},
		"a kind with a space":           {Kind: "key create"},
		"a kind of the ledger's own":    {Kind: "ledger.break"},
		"a principal with a line break": {Kind: "k", Principal: "a\nb"},
		"a principal of half a letter":  {Kind: "k", Principal: "\xc3"},
		"a long request id":             {Kind: "k", RequestID: strings.Repeat("a", 257)},
		"long details":                  {Kind: "k", Details: map[string]any{"a": strings.Repeat("a", 129<<10)}},
		"details that are no JSON":      {Kind: "k", Details: map[string]any{"a": func() {}}},
	} {
		if err := l.Append(t.Context(), e); err == nil || fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	if l.end(t) != before {
		t.Error("something was recorded")
	}
}
