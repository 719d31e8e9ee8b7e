package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"sluice/fault"
)

const askHelp = `"""        begins and ends a question of several lines
/sql       shows the SQL of answers, or no longer
/clear     forgets the conversation
/bye       ends, as Ctrl-D does; Ctrl-C ends a question
`

// session reads a question, answers it, and goes on until the input ends. Ctrl-C cancels the question that is being answered;
// the session, and the conversation before that question, stay.
func (a *asking) session(ctx context.Context, input io.Reader) error {
	// The program's own context ends with the first Ctrl-C: here that is not its meaning.
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	return a.loop(ctx, input, signals)
}

// loop is the session with its signals handed in.
func (a *asking) loop(ctx context.Context, input io.Reader, signals <-chan os.Signal) error {
	lines, failed := typed(ctx, input)
	prompt := a.database + "> "
	fmt.Fprint(a.notes, "/bye or Ctrl-D ends, /? helps.\n"+prompt)
	for {
		select {
		case line, ok := <-lines:
			switch {
			case !ok:
				fmt.Fprintln(a.notes)
				return <-failed
			case line == "/bye":
				return nil
			case line == "/?" || line == "/help":
				fmt.Fprint(a.notes, askHelp)
			case line == "/clear":
				a.turns = nil
				fmt.Fprintln(a.notes, "forgotten.")
			case line == "/sql":
				a.sql = !a.sql
				fmt.Fprintln(a.notes, map[bool]string{true: "the SQL is shown.", false: "the SQL is not shown."}[a.sql])
			case line != "":
				if !a.interruptible(ctx, line, signals) {
					return nil
				}
			}
		case s := <-signals:
			if s != os.Interrupt {
				return nil
			}
			fmt.Fprint(a.notes, "\n/bye or Ctrl-D ends.\n")
		}
		fmt.Fprint(a.notes, prompt)
	}
}

// interruptible asks, and cancels when a signal comes. It tells whether the session goes on. An error is shown and ends the
// question only.
func (a *asking) interruptible(ctx context.Context, question string, signals <-chan os.Signal) (goOn bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.ask(ctx, question) }()
	goOn = true
	for {
		select {
		case err := <-done:
			switch {
			case err == nil, ctx.Err() != nil:
			case fault.CodeOf(err) == fault.Refused:
				fmt.Fprintln(a.notes, describe(err))
			default:
				fmt.Fprintln(a.notes, "error: "+describe(err))
			}
			return goOn
		case s := <-signals:
			goOn = goOn && s == os.Interrupt
			cancel()
		}
	}
}
