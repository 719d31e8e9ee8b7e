package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	journalSuffix  = ".journal"
	journalVersion = 1
	maxJournal     = 4 << 20
	maxParts       = 4096
)

// journal says what is durably in the file beside it. It is written after the file's bytes were synced, so it may know less than
// what is there, and never more.
type journal struct {
	Version int           `json:"version"`
	Digest  string        `json:"digest"`
	Size    int64         `json:"size"`
	ETag    string        `json:"etag,omitempty"` // what the registry said of the blob
	Parts   []journalPart `json:"parts"`
}

// journalPart is a range of the blob, of which Done bytes are there, and their SHA-256.
type journalPart struct {
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	Done   int64  `json:"done"`
	SHA256 string `json:"sha256,omitempty"` // of the bytes that are done; empty when none are
}

var errJournal = errors.New("the journal is damaged")

// parseJournal reads a journal of one blob. Whatever does not describe the blob from its first to its last byte is an error:
// then the blob is fetched anew.
func parseJournal(data []byte, digest string, size int64) (*journal, error) {
	var j journal
	if len(data) > maxJournal || json.Unmarshal(data, &j) != nil {
		return nil, errJournal
	}
	if j.Version != journalVersion || j.Digest != digest || j.Size != size || len(j.Parts) > maxParts || len(j.ETag) > maxETag {
		return nil, errJournal
	}
	at := int64(0)
	for _, p := range j.Parts {
		if p.Offset != at || p.Size <= 0 || p.Size > size-at || p.Done < 0 || p.Done > p.Size {
			return nil, errJournal
		}
		if sum, err := hex.DecodeString(p.SHA256); err != nil || p.Done > 0 && len(sum) != sha256.Size {
			return nil, errJournal
		}
		at += p.Size
	}
	if at != size {
		return nil, errJournal
	}
	return &j, nil
}

func readJournal(path, digest string, size int64) (*journal, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJournal+1))
	if err != nil {
		return nil, err
	}
	return parseJournal(data, digest, size)
}

// write replaces the journal in one step.
func (j *journal) write(path string) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) // a link that somebody put there is not followed
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
