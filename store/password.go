package store

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// hashing are the parameters of argon2id.
type hashing struct {
	memory  uint32 // KiB
	passes  uint32
	threads uint8
	salt    int // bytes
	length  uint32
}

// current are the parameters of new hashes: the first of OWASP's Password Storage Cheat Sheet (2024: 19 MiB, two passes,
// one thread), with the salt of 16 and the hash of 32 bytes that RFC 9106 recommends. A password with other ones is hashed
// anew at its next login.
var current = hashing{memory: 19 << 10, passes: 2, threads: 1, salt: 16, length: 32}

// hashesAtOnce bounds the memory of logins: 19 MiB each.
const hashesAtOnce = 4

// passwords hashes and compares, a few at a time.
type passwords struct {
	slots chan struct{}
	dummy string // a hash that no password has, for users who do not exist
}

func newPasswords() *passwords {
	none := make([]byte, current.length)
	rand.Read(none)
	return &passwords{slots: make(chan struct{}, hashesAtOnce), dummy: current.encode(none[:current.salt], none)}
}

// take waits for a slot.
func (p *passwords) take(ctx context.Context) (give func(), err error) {
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hash makes the hash of a password in PHC form: $argon2id$v=19$m=…,t=…,p=…$salt$hash.
func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	give, err := p.take(ctx)
	if err != nil {
		return "", err
	}
	defer give()
	salt := make([]byte, current.salt)
	rand.Read(salt)
	return current.encode(salt, current.sum(password, salt)), nil
}

// matches compares a password with a hash, "" being that of nobody: then as much is computed and nothing matches. stale is
// whether the hash was made with other parameters than those of today.
func (p *passwords) matches(ctx context.Context, hash, password string) (same, stale bool, err error) {
	give, err := p.take(ctx)
	if err != nil {
		return false, false, err
	}
	defer give()
	nobody := hash == ""
	if nobody {
		hash = p.dummy
	}
	with, salt, want, err := decode(hash)
	if err != nil {
		return false, false, err
	}
	got := with.sum(password, salt)
	return subtle.ConstantTimeCompare(got, want) == 1 && !nobody, with != current, nil
}

func (h hashing) sum(password string, salt []byte) []byte {
	return argon2.IDKey([]byte(password), salt, h.passes, h.memory, h.threads, h.length)
}

func (h hashing) encode(salt, sum []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.passes, h.threads, b64.EncodeToString(salt), b64.EncodeToString(sum))
}

// decode reads a hash. One that would cost more than a login may is a damaged one.
func decode(text string) (h hashing, salt, sum []byte, err error) {
	damaged := fmt.Errorf("store: a password's hash is damaged")
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, nil, nil, damaged
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.threads); err != nil {
		return h, nil, nil, damaged
	}
	salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return h, nil, nil, damaged
	}
	sum, err = base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(salt) < 8 || len(sum) < 16 || len(sum) > 64 || h.passes < 1 || h.passes > 20 || h.threads < 1 || h.memory < 8*uint32(h.threads) || h.memory > 1<<20 {
		return h, nil, nil, damaged
	}
	h.salt, h.length = len(salt), uint32(len(sum))
	return h, salt, sum, nil
}
