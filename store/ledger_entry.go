package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sluice/fault"
)

// Event is what is to be put into the ledger.
type Event struct {
	Kind      string         // a-z, 0-9, . _ and -, such as "key.create"; those that begin with "ledger." are the ledger's own
	Principal string         // id of the key or login; "" nobody
	RequestID string         // "" none
	Details   map[string]any // 128 KiB at most as JSON
}

// Entry is one entry of the ledger.
type Entry struct {
	Seq       int64
	Time      time.Time // to the microsecond
	Kind      string
	Principal string
	RequestID string
	Details   json.RawMessage // an object
	Prev      [sha256.Size]byte
	Hash      [sha256.Size]byte
}

// Bounds of an event, in bytes.
const (
	maxEventID      = 256
	maxEventDetails = 128 << 10
)

// ownKinds is how the kinds of the ledger's own entries begin.
const ownKinds = "ledger."

// Kinds of the ledger's own entries.
const (
	kindBegin   = "ledger.begin"   // the first of all
	kindRecover = "ledger.recover" // the server had died, or the machine, while an entry was written
	kindBreak   = "ledger.break"   // the ledger was not as the head said
)

// entry brings an event to the form that is stored, without its place in the chain.
func (e Event) entry() (Entry, error) {
	bad := func(format string, args ...any) (Entry, error) {
		return Entry{}, fault.Bug("store: a ledger event "+format, args...)
	}
	if e.Kind == "" || len(e.Kind) > maxEventID || strings.Trim(e.Kind, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return bad("of the kind %q", e.Kind)
	}
	for what, text := range map[string]string{"principal": e.Principal, "request": e.RequestID} {
		if len(text) > maxEventID || !utf8.ValidString(text) || strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 {
			return bad("has a %s that no id looks like", what)
		}
	}
	details := e.Details
	if details == nil {
		details = map[string]any{}
	}
	// One text for one value: keys sorted, no spaces, no HTML escapes.
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	if err := out.Encode(details); err != nil {
		return Entry{}, fmt.Errorf("store: the details of a ledger event: %w", err)
	}
	canonical := bytes.TrimRight(text.Bytes(), "\n")
	if len(canonical) > maxEventDetails {
		return bad("has details of %d bytes; %d is the most", len(canonical), maxEventDetails)
	}
	return Entry{Kind: e.Kind, Principal: e.Principal, RequestID: e.RequestID, Details: canonical}, nil
}

// entryDomain begins all that is hashed, so that no other bytes that Sluice hashes can be taken for an entry.
const entryDomain = "sluice/ledger/1\n"

// The bytes that are hashed, in this order: the 16 bytes of entryDomain; prev, 32 bytes; seq and time (microseconds since
// 1970 UTC), 8 bytes each, two's complement, big-endian; then kind, principal, request id and details, each as its length in
// bytes (4 bytes, big-endian) and its UTF-8. Every length is given, so two different entries never have the same bytes.

// appendEntry adds the bytes that are hashed to b.
func appendEntry(b, prev []byte, seq, micros int64, texts ...[]byte) []byte {
	b = append(b, entryDomain...)
	b = append(b, prev...)
	b = binary.BigEndian.AppendUint64(b, uint64(seq))
	b = binary.BigEndian.AppendUint64(b, uint64(micros))
	for _, text := range texts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	return b
}

// AppendBytes adds to b the bytes of the entry that its hash covers.
func (e *Entry) AppendBytes(b []byte) []byte {
	return appendEntry(b, e.Prev[:], e.Seq, micros(e.Time), []byte(e.Kind), []byte(e.Principal), []byte(e.RequestID), e.Details)
}

// sum is the hash that belongs to the entry.
func (e *Entry) sum() [sha256.Size]byte { return sha256.Sum256(e.AppendBytes(nil)) }

// mark is a place in the chain: the number of an entry and its hash. The zero mark is the empty chain's end.
type mark struct {
	seq  int64
	hash [sha256.Size]byte
}

// after puts the entry behind a place in the chain.
func (e *Entry) after(m mark, at time.Time) mark {
	e.Seq, e.Prev, e.Time = m.seq+1, m.hash, moment(micros(at))
	e.Hash = e.sum()
	return mark{e.Seq, e.Hash}
}
