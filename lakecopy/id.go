package lakecopy

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// crockford is the alphabet of ULIDs: no I, L, O, U, and sorted as bytes sort.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newID makes a 26-character id that sorts by time (milliseconds), with 80 random bits: a ULID's content. Two leading
// zero bits of a real ULID are trailing zeros here, which changes nothing about length, order or uniqueness.
func newID(now time.Time) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(now.UnixMilli())<<16)
	rand.Read(id[6:])
	return crockford.EncodeToString(id[:])
}

// validID keeps anything but an id of ours out of file names.
func validID(id string) bool {
	raw, err := crockford.DecodeString(id)
	return err == nil && len(raw) == 16
}
