package store

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// head is what stands outside the store: where the chain ends. Without it, cutting entries off the end would not show.
type head struct {
	at   mark // the end of the chain, on the disk
	next mark // the end that the chain is being given; zero when nothing is being written
}

// unknown is the place of a head that says nothing. No chain ends there.
var unknown = mark{seq: -1}

// explains says whether a chain may end at m: where the head says, or where the append that a death cut short would have
// put it. half tells that the slot written last is damaged. Then what it would have said was done already: a slot that
// ends an append is written when the entry is on the disk.
func (h head) explains(m mark, half bool) bool {
	return m == h.at && !(half && h.next.seq != 0) || m == h.next && h.next.seq != 0
}

// The file has two slots of 4096 bytes that are written in turn, so that a write that is cut short leaves the other. A slot
// is one line of text, spaces and a newline. The line: the word below, the slot's number (counted up with every write), seq and
// hash of at, seq and hash of next, and the HMAC-SHA-256 of all before it, with its space. Numbers have 20 digits.
const (
	slotSize = 4096
	slotWord = "sluice-ledger-head-1"
	slotForm = slotWord + " %020d %020d %x %020d %x "
)

// errHead is a head that was altered, or written with another key.
var errHead = errors.New("the head was altered, or written with another key")

// headFile is the open file of the head. The ledger's turn owns it.
type headFile struct {
	path string
	key  []byte
	file *os.File
	gen  uint64 // of the newest slot
}

// encodeSlot gives the bytes of a slot.
func encodeSlot(key []byte, gen uint64, h head) []byte {
	line := fmt.Appendf(make([]byte, 0, slotSize), slotForm, gen, uint64(h.at.seq), h.at.hash, uint64(h.next.seq), h.next.hash)
	mac := hmac.New(sha256.New, key)
	mac.Write(line)
	line = hex.AppendEncode(line, mac.Sum(nil))
	slot := bytes.Repeat([]byte{' '}, slotSize)
	copy(slot, line)
	slot[slotSize-1] = '\n'
	return slot
}

// decodeSlot reads a slot. Only bytes that encodeSlot would write are one.
func decodeSlot(key, slot []byte) (gen uint64, h head, ok bool) {
	var at, next uint64
	var atHash, nextHash []byte
	if _, err := fmt.Fscanf(bytes.NewReader(slot), slotWord+" %d %d %x %d %x ", &gen, &at, &atHash, &next, &nextHash); err != nil {
		return 0, head{}, false
	}
	h.at.seq, h.next.seq = int64(at), int64(next)
	if copy(h.at.hash[:], atHash) != sha256.Size || copy(h.next.hash[:], nextHash) != sha256.Size {
		return 0, head{}, false
	}
	return gen, h, hmac.Equal(slot, encodeSlot(key, gen, h))
}

// decodeHead reads the whole file. half tells that one of the slots is damaged, as by a machine that lost its power.
func decodeHead(key, text []byte) (h head, gen uint64, half bool, err error) {
	if len(text) != 2*slotSize {
		return head{}, 0, false, errHead
	}
	even, evenHead, evenOK := decodeSlot(key, text[:slotSize])
	odd, oddHead, oddOK := decodeSlot(key, text[slotSize:])
	evenOK, oddOK = evenOK && even%2 == 0, oddOK && odd%2 == 1
	switch {
	case !evenOK && !oddOK, evenOK && oddOK && even != odd+1 && odd != even+1:
		return head{}, 0, false, errHead
	case evenOK && (!oddOK || even > odd):
		return evenHead, even, !oddOK, nil
	}
	return oddHead, odd, !evenOK, nil
}

// readHead reads a head. One that is not there is fs.ErrNotExist.
func readHead(path string, key []byte) (h head, gen uint64, half bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return head{}, 0, false, err
	}
	return decodeHead(key, text)
}

// make writes a new file with h in both slots, in place of any that is there, and opens it.
func (f *headFile) make(h head, gen uint64) error {
	if err := f.close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	// The slot's number tells which of the two it is.
	even, odd := encodeSlot(f.key, gen+gen%2, h), encodeSlot(f.key, gen+1-gen%2, h)
	if err := writeDurably(f.path, append(even, odd...)); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	f.file, f.gen = file, gen+1
	return err
}

// write puts h into the slot that is not the newest. It is on the disk when write returns nil.
func (f *headFile) write(h head) error {
	f.gen++
	if _, err := f.file.WriteAt(encodeSlot(f.key, f.gen, h), int64(f.gen%2)*slotSize); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *headFile) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// writeDurably writes a file that is there whole or not at all, readable by its owner alone.
func writeDurably(path string, text []byte) (err error) {
	temp := path + ".new"
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Chmod(0o600), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Rename(temp, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// LedgerKey gives the key of the head: the one that is configured, else that of the file, which is made on the first start,
// readable by its owner alone.
func LedgerKey(configured, file string) ([]byte, error) {
	if configured != "" {
		if len(configured) < minLedgerKey {
			return nil, fmt.Errorf("the key of the audit ledger has %d bytes; it needs %d", len(configured), minLedgerKey)
		}
		return []byte(configured), nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text() + rand.Text() + "\n")
		err = writeDurably(file, text)
	}
	if err != nil {
		return nil, fmt.Errorf("the key of the audit ledger: %w", err)
	}
	key := bytes.TrimSpace(text)
	if len(key) < minLedgerKey {
		return nil, fmt.Errorf("the key of the audit ledger: %s has %d bytes; it needs %d", file, len(key), minLedgerKey)
	}
	return key, nil
}

// minLedgerKey is the least length of a key, in bytes.
const minLedgerKey = 32
