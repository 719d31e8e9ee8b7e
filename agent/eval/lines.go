package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"sluice/agent"
	"sluice/fault"
)

// Line is what Out gets for each question.
type Line struct {
	ID         string        `json:"id"`
	SQL        string        `json:"sql"` // as the model wrote it; empty when the agent declined, but for Plain
	Answer     string        `json:"answer"`
	Outcome    agent.Outcome `json:"outcome"`
	Declined   bool          `json:"declined"`
	Seconds    float64       `json:"seconds"`
	ModelCalls int           `json:"model_calls"`
	Verified   bool          `json:"verified,omitempty"` // answered by a confirmed pair's SQL
	Leaks      []string      `json:"leaks,omitempty"`
	Run        string        `json:"run,omitempty"` // how it was asked: Config.How
}

// OpenLines opens the file that a run writes its lines to. A new run wants a file that is not there or empty, so that no hour of
// work is overwritten; one that resumes gets the lines of those that were asked already, and a last line that a kill cut
// short is removed. Lines of a run of another kind are a Conflict. The caller closes the file.
func OpenLines(path string, resume bool, how string) (f *os.File, done []Line, err error) {
	if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, nil, fault.Wrap(err, fault.Invalid, "eval.OpenLines", "cannot open %s", path)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, fault.Wrap(err, fault.Invalid, "eval.OpenLines", "cannot read %s", path)
	}
	if len(data) > 0 && !resume {
		return nil, nil, &fault.Error{Code: fault.Conflict, Op: "eval.OpenLines", Msg: path + " holds the lines of an earlier run",
			Hint: "--resume goes on with it; remove it to begin anew"}
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if err := f.Truncate(int64(whole)); err != nil {
		return nil, nil, fault.Wrap(err, fault.Invalid, "eval.OpenLines", "cannot write %s", path)
	}
	if _, err := f.Seek(int64(whole), io.SeekStart); err != nil {
		return nil, nil, fault.Wrap(err, fault.Invalid, "eval.OpenLines", "cannot write %s", path)
	}
	n := 0
	for text := range bytes.Lines(data[:whole]) {
		n++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var l Line
		if err := json.Unmarshal(text, &l); err != nil || l.ID == "" {
			return nil, nil, fault.New(fault.Invalid, "eval.OpenLines", "%s line %d is no line of a run", path, n)
		}
		if l.Run != how {
			return nil, nil, &fault.Error{Code: fault.Conflict, Op: "eval.OpenLines", Msg: path + " was written by another run: " + l.Run + "; this one is: " + how,
				Hint: "give the same flags as then, or another --out"}
		}
		done = append(done, l)
	}
	return f, done, nil
}
