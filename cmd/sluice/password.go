package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// secrets reads passwords: lines of stdin with --password-stdin, else from the terminal, where they do not show.
type secrets struct {
	cmd   *cobra.Command
	stdin bool
	lines *bufio.Reader
}

// passwordFlag adds --password-stdin. A password is never a flag: everybody on the machine sees those.
func passwordFlag(cmd *cobra.Command, what string) *secrets {
	s := &secrets{cmd: cmd}
	cmd.Flags().BoolVar(&s.stdin, "password-stdin", false, "read "+what+" from stdin, a line each")
	return s
}

// read asks for one password.
func (s *secrets) read(prompt string) (string, error) {
	if s.lines == nil {
		s.lines = bufio.NewReader(s.cmd.InOrStdin())
	}
	if s.stdin {
		line, err := s.lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return "", usageError{fmt.Errorf("--password-stdin: a line for this is missing on stdin: %s", strings.ToLower(prompt))}
		}
		return line, nil
	}
	terminal, ok := s.cmd.InOrStdin().(*os.File)
	if !ok || !canHide(terminal) {
		return "", usageError{errors.New("there is no terminal to ask for a password on: give it on stdin with --password-stdin")}
	}
	fmt.Fprint(s.cmd.ErrOrStderr(), prompt+": ")
	defer fmt.Fprintln(s.cmd.ErrOrStderr())
	show, err := hide(terminal)
	if err != nil {
		return "", fmt.Errorf("the terminal cannot hide what is typed: %w", err)
	}
	line, err := s.lines.ReadString('\n')
	if err = errors.Join(err, show()); err != nil {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// fresh asks for a new password, on a terminal twice.
func (s *secrets) fresh(prompt string) (string, error) {
	first, err := s.read(prompt)
	if err != nil || s.stdin {
		return first, err
	}
	again, err := s.read("Again")
	if err == nil && again != first {
		err = errors.New("the two are not the same")
	}
	return first, err
}

func canHide(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// hide has a terminal not show what is typed, until show is called.
func hide(f *os.File) (show func() error, err error) {
	before, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	silent := *before
	silent.Lflag &^= unix.ECHO
	silent.Lflag |= unix.ICANON | unix.ISIG
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &silent); err != nil {
		return nil, err
	}
	return func() error { return unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, before) }, nil
}
