package models

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// Bounds of what a manifest may name besides its GGUF files. A layer costs the manifest a hundred bytes and may be named again and
// again: without a bound on the sum, one license of 16 MiB named 4096 times would take 64 GiB of memory.
const (
	maxText     = 16 << 20 // bytes of all texts together, each as often as it is named
	maxJSON     = 1 << 20  // bytes of the config and of the parameters: small objects take fifty times their text in memory
	maxMessages = 4096
	maxAdapters = 64
)

// withinBounds holds what a manifest says against the bounds, whoever wrote it: a registry, Create or another program.
func withinBounds(m *manifest) error {
	const op = "models.withinBounds"
	texts, adapters := int64(0), 0
	for i, l := range m.all() {
		isConfig := i == len(m.Layers)
		switch {
		case isConfig || knownText(l.MediaType):
			if texts += max(l.Size, 0); l.Size > maxText || texts > maxText {
				return fault.New(fault.Invalid, op, "its texts (template, system, messages, licenses …) are longer than %d MiB together", maxText>>20)
			}
			if (isConfig || l.MediaType == mediaParams) && l.Size > maxJSON {
				return fault.New(fault.Invalid, op, "its parameters or its config are longer than %d MiB", maxJSON>>20)
			}
		case l.MediaType == mediaAdapter:
			if adapters++; adapters > maxAdapters {
				return fault.New(fault.Invalid, op, "it has more than %d adapters", maxAdapters)
			}
		}
	}
	return nil
}

// decodeMessages reads a list of messages one by one, so that a list of ten million empty ones is refused before it takes a gigabyte.
func decodeMessages(text string) ([]api.Message, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	if t, err := dec.Token(); err != nil || t == nil {
		return nil, err
	} else if t != json.Delim('[') {
		return nil, errors.New("the messages are no list")
	}
	var out []api.Message
	for dec.More() {
		if len(out) == maxMessages {
			return nil, fault.New(fault.Invalid, "models.decodeMessages", "it has more than %d messages", maxMessages)
		}
		var m api.Message
		if err := dec.Decode(&m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	_, err := dec.Token()
	return out, err
}

var errNoFile = errors.New("it is not a file")

// openFile opens a file for reading. What is none (a pipe would be waited for until somebody writes into it) is errNoFile.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		_ = f.Close() // it was only looked at
		return nil, err
	}
	return f, nil
}

// unread tells that a file could not be read, as against one that was read and is no good: another try may end otherwise.
func unread(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path)
}

// datable is a time as clients can be told it. Clocks and remote servers say what they like, and a year of five digits has no JSON form:
// one such time would make the whole list of models fail.
func datable(t time.Time) time.Time {
	if year := t.UTC().Year(); year < 1 || year > 9998 {
		return time.Unix(0, 0)
	}
	return t
}
