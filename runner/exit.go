package runner

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"sluice/fault"
)

// ExitError tells why a child ended without being asked to.
type ExitError struct {
	Signal  string        // such as "killed"; "" when it exited by itself
	Code    int           // exit status, -1 with a signal
	Silent  time.Duration // we killed it, because it had answered nothing for so long; 0: we did not
	LastLog []string      // its last lines on stderr
}

// Error gives the reason and the last line of the log. That line is for our log, not for callers.
func (e *ExitError) Error() string {
	s := "runner: the child ended: " + e.Reason()
	if n := len(e.LastLog); n > 0 {
		s += "; its last line: " + e.LastLog[n-1]
	}
	return s
}

// Reason is what a caller may be told.
func (e *ExitError) Reason() string {
	if e.Silent > 0 {
		return fmt.Sprintf("gave no answer for %s and was replaced", e.Silent)
	}
	if e.Signal != "" {
		return "ended by signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// exitError reads why a child ended from what exec.Cmd.Wait returned.
func exitError(err error, lastLog []string) *ExitError {
	e := &ExitError{Code: -1, LastLog: lastLog}
	var exit *exec.ExitError
	switch {
	case err == nil:
		e.Code = 0
	case errors.As(err, &exit):
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Signal = ws.Signal().String()
		} else {
			e.Code = exit.ExitCode()
		}
	}
	return e
}

// died is the fault for a caller whose request a dying child carried: worth another try, because the next request loads
// the model again. The cause is the *ExitError.
func died(doing string, exit *ExitError) error {
	msg := fmt.Sprintf("the model's runner stopped (%s) while %s; the next request loads the model again", exit.Reason(), doing)
	if exit.Silent > 0 {
		msg = fmt.Sprintf("the model's runner stopped answering (for %s) while %s; the next request loads the model again", exit.Silent, doing)
	}
	return &fault.Error{Code: fault.Busy, Op: "runner", RetryAfter: time.Second, Err: exit, Msg: msg}
}

// lastLines keeps the last lines that a child wrote, and hands every line on. It is an io.Writer for exec.Cmd.
type lastLines struct {
	mu      sync.Mutex
	partial []byte
	lines   []string // at most maxLines, oldest first
	each    func(line string)
}

const (
	maxLines   = 40
	maxLineLen = 4 << 10 // bytes; a longer line is cut into several
)

// Write splits what it gets into lines.
func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range p {
		if b != '\n' {
			l.partial = append(l.partial, b)
		}
		if b == '\n' || len(l.partial) >= maxLineLen {
			l.flush()
		}
	}
	return len(p), nil
}

// flush ends a line. The lock is held.
func (l *lastLines) flush() {
	line := string(l.partial)
	l.partial = l.partial[:0]
	if len(l.lines) == maxLines {
		l.lines = append(l.lines[:0], l.lines[1:]...)
	}
	l.lines = append(l.lines, line)
	if l.each != nil {
		l.each(line)
	}
}

// last gives the lines kept, with an unfinished one at the end.
func (l *lastLines) last() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.flush()
	}
	return append([]string(nil), l.lines...)
}
