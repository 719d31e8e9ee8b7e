package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"

	"sluice/fault"
)

// maxRounds of mending bound the work on a blob that will not become what its digest says.
const maxRounds = 3

// verify compares the file with the digest, and mends it. First come the parts whose bytes on the disk are not those that were
// received: they alone are fetched again. When all are, a byte was wrong when it came: the parts are fetched again one after the
// other until the whole is right.
func (d *download) verify(ctx context.Context) error {
	got := ""
	for range maxRounds {
		var err error
		if got, err = d.digest(ctx); err != nil || got == d.blob.Digest {
			return err
		}
		damaged, err := d.damaged(ctx)
		if err != nil {
			return err
		}
		if len(damaged) > 0 {
			slog.Warn("parts of a blob changed on the disk and are fetched again", "digest", d.blob.Digest, "parts", len(damaged))
			for _, p := range damaged {
				d.reset(p)
			}
			if err := d.all(ctx); err != nil {
				return err
			}
			continue
		}
		slog.Warn("a blob is not what its digest says, its parts are fetched again one after the other", "digest", d.blob.Digest)
		mended, changed, err := d.again(ctx)
		if err != nil || mended {
			return err
		}
		if !changed { // the registry says the same twice
			break
		}
	}
	d.remove()
	return fault.New(fault.Conflict, "registry.verify", "digest mismatch: the registry %s sends for blob %s bytes that have the digest %s; nothing was stored",
		d.remote.base.Host, d.blob.Digest, got)
}

// again gets the parts anew, one by one, and tells whether that mended the blob, and whether any part came out another.
func (d *download) again(ctx context.Context) (mended, changed bool, err error) {
	for i := 0; i < len(d.parts); i++ {
		p := d.parts[i]
		_, before := p.state()
		d.reset(p)
		if err := d.all(ctx); err != nil {
			return false, false, err
		}
		if i < len(d.parts) && d.parts[i] == p { // or else the blob was divided anew, and fetched whole
			if _, after := p.state(); bytes.Equal(before, after) {
				continue
			}
		}
		changed = true
		got, err := d.digest(ctx)
		if err != nil || got == d.blob.Digest {
			return err == nil, true, err
		}
	}
	return false, changed, nil
}

// digest reads the whole file.
func (d *download) digest(ctx context.Context) (string, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, &ctxReader{ctx, io.NewSectionReader(d.file, 0, d.blob.Size)}, make([]byte, 1<<20)); err != nil {
		return "", d.diskError(ctx, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// damaged lists the parts that are not on the disk what they were when they came.
func (d *download) damaged(ctx context.Context) ([]*part, error) {
	var out []*part
	for _, p := range d.parts {
		h := sha256.New()
		n, err := io.Copy(h, &ctxReader{ctx, io.NewSectionReader(d.file, p.offset, p.size)})
		if err != nil {
			return nil, d.diskError(ctx, err)
		}
		if _, sum := p.state(); n != p.size || !bytes.Equal(sum, h.Sum(nil)) {
			out = append(out, p)
		}
	}
	return out, nil
}
