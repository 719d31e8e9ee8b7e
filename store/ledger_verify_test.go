package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"
)

// thousand is a ledger of 1,000 entries (200 under the race detector), and somebody who changes it under the running server.
func thousand(t testing.TB) (*openedLedger, *burglar) {
	t.Helper()
	l := openLedger(t, newHome(t))
	l.fill(t, many)
	want(t, "untouched", l.verify(t), Intact, 0)
	return l, breakIn(t, l.home)
}

// sealed gives e a hash that fits.
func sealed(e rawEntry) rawEntry {
	sum := sha256.Sum256(appendEntry(nil, e.prev, e.seq, e.time, e.kind, e.principal, e.request, e.details))
	e.hash = sum[:]
	return e
}

// flip changes bits of one stored byte; false when the column has no such byte.
func (e *rawEntry) flip(column, at int, by byte) (done bool) {
	number := func(n *int64) bool {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(*n))
		if at >= 8 {
			return false
		}
		b[at] ^= by
		*n = int64(binary.BigEndian.Uint64(b[:]))
		return true
	}
	switch column {
	case 0:
		return number(&e.time)
	case 1:
		return number(&e.seq)
	}
	text := []*[]byte{&e.kind, &e.principal, &e.request, &e.details, &e.prev, &e.hash}[column-2]
	if at >= len(*text) {
		return false
	}
	*text = bytes.Clone(*text)
	(*text)[at] ^= by
	return true
}

const columns = 8

func TestLedgerNamesEveryFlippedByte(t *testing.T) {
	l, b := thousand(t)
	try := func(e rawEntry, column, at int, by byte) bool {
		changed := e
		if !changed.flip(column, at, by) {
			return false
		}
		if changed.seq != e.seq && changed.seq > 0 && changed.seq <= many {
			return true // there is one of that number
		}
		b.put(e.seq, changed)
		want(t, fmt.Sprintf("entry %d, column %d, byte %d", e.seq, column, at), l.verify(t), Tampered, changed.seq)
		b.put(changed.seq, e)
		return true
	}
	for _, seq := range []int64{1, many / 3, many} {
		e := b.read(seq)
		for column := range columns {
			for at := 0; try(e, column, at, 1); at++ {
			}
		}
	}
	for seq := int64(1); seq <= many; seq++ { // each entry once, another column and byte each time
		e := b.read(seq)
		column := int(seq) % columns
		for at := int(seq/columns) % 30; at >= 0 && !try(e, column, at, 1<<(seq%8)); at /= 2 {
			if at == 0 {
				try(e, 7, 0, 1) // an empty text has no byte
				break
			}
		}
	}
	want(t, "all put back", l.verify(t), Intact, 0)
}

func TestLedgerNamesEveryDroppedEntry(t *testing.T) {
	l, b := thousand(t)
	for seq := int64(1); seq <= many; seq++ {
		e := b.read(seq)
		b.drop(seq)
		want(t, fmt.Sprintf("without entry %d", seq), l.verify(t), Partial, seq)
		b.insert(e)
	}
	want(t, "all put back", l.verify(t), Intact, 0)
}

func TestLedgerNamesEverySwapOfNeighbours(t *testing.T) {
	l, b := thousand(t)
	for seq := int64(1); seq < many; seq++ {
		first, second := b.read(seq), b.read(seq+1)
		swapped, after := second, first
		swapped.seq, after.seq = seq, seq+1
		b.put(seq, swapped)
		b.put(seq+1, after)
		want(t, fmt.Sprintf("entries %d and %d swapped", seq, seq+1), l.verify(t), Tampered, seq)
		// With hashes that fit their new places, the joints tell.
		b.put(seq, sealed(swapped))
		b.put(seq+1, sealed(after))
		if v := l.verify(t); v.Status != Tampered || v.FirstBad < seq-1 || v.FirstBad > seq {
			t.Errorf("entries %d and %d swapped, with fitting hashes: %+v", seq, seq+1, v)
		}
		b.put(seq, first)
		b.put(seq+1, second)
	}
	want(t, "all put back", l.verify(t), Intact, 0)
}

func TestLedgerNamesEveryCut(t *testing.T) {
	l, b := thousand(t)
	for left := int64(many - 1); left >= 0; left-- {
		b.drop(left + 1)
		v := l.verify(t)
		want(t, fmt.Sprintf("cut to %d entries", left), v, Partial, left+1)
		if v.Entries != left {
			t.Errorf("%d entries are counted, of %d", v.Entries, left)
		}
	}
}

// Who has the store but not the key can make a chain that fits in itself. It does not fit the head.
func TestLedgerNamesChainsThatFitInThemselves(t *testing.T) {
	l, b := thousand(t)
	rewrite := func(from, to int64, change func(*rawEntry)) {
		prev := bytes.Clone(b.read(from).prev)
		for seq := from; seq <= to; seq++ {
			e := b.read(seq)
			if seq == from {
				change(&e)
			}
			e.prev = prev
			e = sealed(e)
			b.put(seq, e)
			prev = e.hash
		}
	}
	last := b.read(many)
	forged := last
	forged.seq, forged.prev = many+1, last.hash
	b.insert(sealed(forged))
	want(t, "an entry behind the last", l.verify(t), Tampered, many+1)
	b.drop(many + 1)
	want(t, "taken away again", l.verify(t), Intact, 0)

	middle := b.read(many / 2)
	altered := middle
	altered.details = []byte(`{}`)
	b.put(many/2, sealed(altered))
	want(t, "one entry with a hash that fits", l.verify(t), Tampered, many/2)
	b.put(many/2, middle)

	rewrite(many/2, many, func(e *rawEntry) { e.principal = []byte("somebody_else") })
	want(t, "all from one on with hashes that fit", l.verify(t), Tampered, many)
}

func TestLedgerTamperedIsWorseThanPartial(t *testing.T) {
	l, b := thousand(t)
	b.drop(10)
	e := b.read(many * 7 / 10)
	e.details = []byte(`{"sql":"nothing"}`)
	b.put(many*7/10, e)
	b.drop(many)
	want(t, "a gap, a change and a cut", l.verify(t), Tampered, many*7/10)
}

func TestLedgerSeesOddRows(t *testing.T) {
	l, b := thousand(t)
	for sentence, row := range map[string]struct {
		query string
		args  []any
		bad   int64
	}{
		"an entry before the first":         {"INSERT INTO ledger SELECT -5, time, kind, principal, request_id, details, prev, hash FROM ledger WHERE seq = 5", nil, -5},
		"an entry far behind":               {"INSERT INTO ledger SELECT 9223372036854775807, time, kind, principal, request_id, details, prev, hash FROM ledger WHERE seq = 5", nil, 1<<63 - 1},
		"a hash that is too long":           {"UPDATE ledger SET hash = CAST(hash || x'00' AS BLOB) WHERE seq = 44", nil, 44},
		"a hash that is gone":               {"UPDATE ledger SET hash = x'' WHERE seq = 44", nil, 44},
		"a previous hash that is too short": {"UPDATE ledger SET prev = CAST(substr(prev, 1, 31) AS BLOB) WHERE seq = 44", nil, 44},
	} {
		b.do("CREATE TEMP TABLE kept AS SELECT * FROM ledger")
		b.do(row.query, row.args...)
		want(t, sentence, l.verify(t), Tampered, row.bad)
		b.do("DELETE FROM ledger")
		b.do("INSERT INTO ledger SELECT * FROM kept ORDER BY seq")
		b.do("DROP TABLE kept")
	}
	want(t, "all put back", l.verify(t), Intact, 0)
}

// A walk by several readers finds what a walk by one does.
func TestLedgerWalksInParts(t *testing.T) {
	l := openLedger(t, newHome(t))
	l.fill(t, 3*minPart)
	b := breakIn(t, l.home)
	walkBy := func(n int) Verdict {
		t.Helper()
		var readers []*rawReader
		for range n {
			r, err := openRaw(l.store.path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			readers = append(readers, r)
		}
		v, _, err := walk(t.Context(), readers)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for sentence, change := range map[string]func(){
		"untouched":                  func() {},
		"a gap where two parts meet": func() { b.drop(minPart); b.drop(minPart + 1) },
		"a change where two parts meet": func() {
			for seq := int64(minPart - 2); seq < minPart+3; seq++ {
				e := b.read(seq)
				e.time++
				b.put(seq, e)
			}
		},
		"a replaced entry where two parts meet": func() {
			e := b.read(minPart)
			e.time++
			b.put(minPart, sealed(e))
		},
	} {
		b.do("CREATE TEMP TABLE kept AS SELECT * FROM ledger WHERE seq BETWEEN ? AND ?", minPart-9, minPart+9)
		change()
		one := walkBy(1)
		for _, n := range []int{2, 3} {
			if got := walkBy(n); got != one {
				t.Errorf("%s: %d readers find %+v, one %+v", sentence, n, got, one)
			}
		}
		b.do("DELETE FROM ledger WHERE seq BETWEEN ? AND ?", minPart-9, minPart+9)
		b.do("INSERT INTO ledger SELECT * FROM kept")
		b.do("DROP TABLE kept")
	}
}
