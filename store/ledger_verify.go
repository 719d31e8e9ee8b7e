package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"strings"
	"sync"

	"sluice/fault"
)

// Status is what a walk through the ledger found.
type Status string

// The statuses, each worse than the one before.
const (
	Intact   Status = "intact"   // every entry is as it was written, and none is missing
	Partial  Status = "partial"  // what is there is as it was written; entries are missing, or the head is, which would show that
	Tampered Status = "tampered" // an entry is not as it was written, or was not written by Sluice
)

// worse tells whether s is worse than other.
func (s Status) worse(other Status) bool {
	rank := map[Status]int{Intact: 0, Partial: 1, Tampered: 2}
	return rank[s] > rank[other]
}

// Verdict is the result of Verify.
type Verdict struct {
	Status   Status
	Entries  int64
	FirstBad int64  // number of the first entry that is altered or missing; 0 when none can be named
	Reason   string // "" when intact
	Last     int64  // number of the last entry, with its hash: whoever notes them down can tell later that nothing before was changed
	LastHash [sha256.Size]byte
}

// find lays something found over the verdict: the worst counts, and of equals the one that comes first in the chain.
func (v *Verdict) find(status Status, firstBad int64, format string, args ...any) {
	if status.worse(v.Status) || status == v.Status && firstBad != 0 && (v.FirstBad == 0 || firstBad < v.FirstBad) {
		v.Status, v.FirstBad, v.Reason = status, firstBad, fmt.Sprintf(format, args...)
	}
}

// judge says what it means that a chain ends at end and not where the head says.
func (h head) judge(end mark, half bool) Verdict {
	said := h.at
	if half && h.next.seq != 0 {
		said = h.next
	}
	v := Verdict{Status: Intact}
	switch {
	case said == unknown:
		v.find(Partial, 0, "the head was not known")
	case end.seq < said.seq:
		v.find(Partial, end.seq+1, "the end is cut off: %s", missing(end.seq+1, said.seq))
	case end.seq > said.seq:
		v.find(Tampered, said.seq+1, "the head says that entry %d is the last, but the ledger goes on to %d", said.seq, end.seq)
	default:
		v.find(Tampered, end.seq, "entry %d is not the one that the head names: it, or all up to it, was written anew", end.seq)
	}
	return v
}

func missing(first, last int64) string {
	if first == last {
		return fmt.Sprintf("entry %d is missing", first)
	}
	return fmt.Sprintf("entries %d to %d are missing", first, last)
}

// Verify walks through the whole ledger, as it is when Verify is called, and compares its end with the head file and with
// what this server knows. An error is what kept it from looking.
func (l *Ledger) Verify(ctx context.Context) (Verdict, error) {
	readers, said, headErr, err := l.snapshot(ctx)
	if err != nil {
		return Verdict{}, wrap("verify the ledger", err)
	}
	defer func() {
		for _, r := range readers {
			r.close()
		}
	}()
	v, end, err := walk(ctx, readers)
	if err != nil {
		return Verdict{}, wrap("verify the ledger", err)
	}
	if v.Status != Tampered && !said.explains(end, false) {
		j := said.judge(end, false)
		v.find(j.Status, j.FirstBad, "%s", j.Reason)
	}
	if headErr != nil {
		v.find(Partial, 0, "%s", headErr)
	}
	return v, nil
}

// snapshot gives readers that see the same state of the table, the head that belongs to it, and what is wrong with the head
// file.
func (l *Ledger) snapshot(ctx context.Context) (readers []*rawReader, said head, headErr, err error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, head{}, nil, fault.Wrap(context.Cause(ctx), fault.Canceled, "store.Verify", "the request was cancelled")
	}
	text, _, half, err := readHead(l.cfg.Head, l.cfg.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		headErr = errors.New("the head is missing")
	case errors.Is(err, errHead):
		headErr = err
	case err != nil:
		headErr = errors.New("the head cannot be read")
	case half:
		headErr = errHead
	case l.err != nil:
		headErr = errors.New("the head could not be written")
	case text != l.head:
		headErr = fmt.Errorf("the head was put back: it says entry %d, and %d was written", text.at.seq, l.head.at.seq)
	}
	for range min(runtime.GOMAXPROCS(0), maxReaders) {
		r, err := openRaw(l.store.path)
		if err != nil {
			for _, r := range readers {
				r.close()
			}
			return nil, head{}, nil, err
		}
		readers = append(readers, r)
	}
	return readers, l.head, headErr, nil
}

// maxReaders bounds the cores that one walk takes.
const maxReaders = 4

// minPart is the fewest entries that are worth a core of their own.
const minPart = 5000

// walk reads all entries, each reader a part of them, and joins what they found.
func walk(ctx context.Context, readers []*rawReader) (Verdict, mark, error) {
	first, last, err := readers[0].ends()
	if err != nil {
		return Verdict{}, mark{}, err
	}
	n := int64(len(readers))
	if span := uint64(last) - uint64(first); last < first || span < minPart*uint64(n) {
		n = 1
	}
	parts := make([]part, n)
	size := int64((uint64(last) - uint64(first)) / uint64(n))
	var wg sync.WaitGroup
	for i := range parts {
		from, to := first+int64(i)*size, first+int64(i+1)*size-1
		if i == 0 {
			from = math.MinInt64
		}
		if i == len(parts)-1 {
			to = math.MaxInt64
		}
		wg.Go(func() { parts[i].read(ctx, readers[i], from, to) })
	}
	wg.Wait()
	whole := part{verdict: Verdict{Status: Intact}}
	for i := range parts {
		if parts[i].err != nil {
			return Verdict{}, mark{}, parts[i].err
		}
		whole.join(&parts[i])
	}
	v := whole.verdict
	v.Last, v.LastHash = whole.end.seq, whole.end.hash
	return v, mark{whole.end.seq, whole.end.hash}, nil
}

// part is what was found in a stretch of the chain.
type part struct {
	verdict    Verdict
	first, end joint // its first and last entry; the zero joint when it has none
	err        error
}

// joint is an entry as its neighbours see it.
type joint struct {
	some       bool
	good       bool // its own hash is right
	seq        int64
	prev, hash [sha256.Size]byte
}

// join adds the stretch that follows.
func (p *part) join(next *part) {
	p.verdict.Entries += next.verdict.Entries
	if next.first.some {
		p.verdict.link(&p.end, &next.first)
		p.end = next.end
	}
	if found := next.verdict; found.Status != Intact {
		p.verdict.find(found.Status, found.FirstBad, "%s", found.Reason)
	}
}

// link looks at two entries that stand beside each other; the zero joint is the beginning. Of an entry that is bad in itself
// the neighbours are not blamed.
func (v *Verdict) link(a, b *joint) {
	switch {
	case b.seq <= 0:
		v.find(Tampered, b.seq, "there is an entry %d; the first is 1", b.seq)
	case a.seq < 0 || a.some && !a.good:
		if a.seq >= 0 && b.seq != a.seq+1 {
			v.find(Partial, a.seq+1, "%s", missing(a.seq+1, b.seq-1))
		}
	case b.seq != a.seq+1:
		v.find(Partial, a.seq+1, "%s", missing(a.seq+1, b.seq-1))
	case b.good && b.prev != a.hash && !a.some:
		v.find(Tampered, b.seq, "entry %d is the first, and says that it follows another", b.seq)
	case b.good && b.prev != a.hash:
		v.find(Tampered, a.seq, "entry %d is not the one that entry %d follows", a.seq, b.seq)
	}
}

// read walks through the entries of a stretch.
func (p *part) read(ctx context.Context, r *rawReader, first, last int64) {
	v := &p.verdict
	v.Status = Intact
	if p.err = r.rows(first, last); p.err != nil {
		return
	}
	var text []byte
	var at joint
	for {
		row, err := r.next()
		switch {
		case errors.Is(err, errDamaged):
			v.find(Tampered, max(p.end.seq+1, 1), "the store's file is damaged behind entry %d", p.end.seq)
			return
		case err != nil:
			p.err = err
			return
		case row == nil:
			return
		}
		if v.Entries++; v.Entries%1024 == 0 && ctx.Err() != nil {
			p.err = fault.Wrap(context.Cause(ctx), fault.Canceled, "store.Verify", "the request was cancelled")
			return
		}
		text = appendEntry(text[:0], row.prev, row.seq, row.micros, row.kind, row.principal, row.request, row.details)
		at = joint{some: true, seq: row.seq}
		copy(at.prev[:], row.prev)
		at.hash = sha256.Sum256(text)
		at.good = bytes.Equal(at.hash[:], row.hash) && len(row.prev) == sha256.Size
		switch {
		case !at.good:
			copy(at.hash[:], row.hash)
			v.find(Tampered, row.seq, "entry %d is not as it was written", row.seq)
		case string(row.kind) == kindBreak:
			v.recorded(row)
		}
		if p.first.some {
			v.link(&p.end, &at)
		} else {
			p.first = at
		}
		p.end = at
	}
}

// recorded takes over what the ledger itself found earlier.
func (v *Verdict) recorded(row *rawRow) {
	var said struct {
		Status   Status `json:"status"`
		FirstBad int64  `json:"first_bad"`
		Reason   string `json:"reason"`
	}
	if json.Unmarshal(row.details, &said) != nil || !said.Status.worse(Intact) {
		said.Status, said.Reason = Partial, "the ledger was not as the head said"
	}
	v.find(said.Status, said.FirstBad, "entry %d records: %s", row.seq, strings.TrimSpace(said.Reason))
}
