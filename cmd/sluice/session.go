package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// maxLine is what may be typed or pasted at a time.
const maxLine = 16 << 20

const sessionHelp = `"""        begins and ends a message of several lines
/clear     forgets the conversation
/bye       ends, as Ctrl-D does; Ctrl-C ends an answer
`

// session reads a line, answers it, and goes on until the input ends. Ctrl-C cancels the answer that is being written; the
// session, and the conversation before that question, stay.
func (t *talk) session(ctx context.Context, input io.Reader) error {
	// The program's own context ends with the first Ctrl-C: here that is not its meaning.
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	return t.loop(ctx, input, signals)
}

// loop is the session with its signals handed in.
func (t *talk) loop(ctx context.Context, input io.Reader, signals <-chan os.Signal) error {
	begin := len(t.messages)
	lines, failed := typed(ctx, input)
	fmt.Fprint(t.notes, "/bye or Ctrl-D ends, /? helps.\n>>> ")
	for {
		select {
		case line, ok := <-lines:
			switch {
			case !ok:
				fmt.Fprintln(t.notes)
				return <-failed
			case line == "/bye":
				return nil
			case line == "/?" || line == "/help":
				fmt.Fprint(t.notes, sessionHelp)
			case line == "/clear":
				t.messages = t.messages[:begin]
				fmt.Fprintln(t.notes, "forgotten.")
			case line != "":
				if !t.interruptible(ctx, line, signals) {
					return nil
				}
			}
		case s := <-signals:
			if s != os.Interrupt {
				return nil
			}
			fmt.Fprint(t.notes, "\n/bye or Ctrl-D ends.\n")
		}
		fmt.Fprint(t.notes, ">>> ")
	}
}

// interruptible asks, and cancels when a signal comes. It tells whether the session goes on. An error is shown and ends the
// question only: a model that is busy now may not be busy a minute later.
func (t *talk) interruptible(ctx context.Context, prompt string, signals <-chan os.Signal) (goOn bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- t.ask(ctx, prompt) }()
	goOn = true
	for {
		select {
		case err := <-done:
			if err != nil && ctx.Err() == nil {
				fmt.Fprintln(t.notes, "error: "+describe(err))
			}
			return goOn
		case s := <-signals:
			goOn = goOn && s == os.Interrupt
			cancel()
		}
	}
}

// typed gives what is typed, a message at a time. The goroutine ends with the input: a read of a terminal cannot be
// interrupted.
func typed(ctx context.Context, input io.Reader) (<-chan string, <-chan error) {
	lines, failed := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(input)
		in.Buffer(nil, maxLine)
		for in.Scan() {
			select {
			case lines <- message(in):
			case <-ctx.Done():
				return
			}
		}
		failed <- in.Err()
	}()
	return lines, failed
}

// message gives the line that was read, or all between two """.
func message(in *bufio.Scanner) string {
	text, several := strings.CutPrefix(strings.TrimSpace(in.Text()), `"""`)
	if !several {
		return text
	}
	for !strings.Contains(text, `"""`) && in.Scan() {
		text += "\n" + in.Text()
	}
	text, _, _ = strings.Cut(text, `"""`)
	return strings.TrimSpace(text)
}
