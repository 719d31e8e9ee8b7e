package runner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"sluice/internal/fakerunner/fakebin"
	"sluice/runner"
)

// fakeBinary is the fake runner, built once.
var fakeBinary string

func TestMain(m *testing.M) {
	switch os.Getenv("RUNNER_TEST_ROLE") {
	case "":
		os.Exit(tests(m))
	case "devices":
		lister()
	case "parent":
		parent()
	case "child":
		child(os.Getenv("RUNNER_TEST_SAYS"), os.Getenv("RUNNER_TEST_ANSWER"))
	}
}

func tests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "runner-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if fakeBinary, err = fakebin.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// parent is a program that starts a child and waits to be killed. It tells the child's folder on stdout.
func parent() {
	p, err := runner.Start(context.Background(), runner.Config{Binary: os.Args[1]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "sluice-runner-*"))
	fmt.Println(strings.Join(dirs, "\n"))
	<-p.Done()
}

// lister is a runner that is asked for its devices: it says what it is told to, and then waits or exits as told.
func lister() {
	if !slices.Equal(os.Args[1:], []string{"devices", "--json"}) {
		fmt.Fprintln(os.Stderr, "called with", os.Args[1:])
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "the driver is too old")
	fmt.Print(os.Getenv("RUNNER_TEST_SAYS"))
	switch os.Getenv("RUNNER_TEST_END") {
	case "hang":
		select {}
	case "fail":
		os.Exit(3)
	case "flood":
		for range 1 << 12 {
			fmt.Print(strings.Repeat(" ", 1<<10))
		}
	}
}

// child is a broken runner: it says one line, and answers every request with the same bytes. It writes its environment to
// its log first.
func child(says, answer string) {
	for _, v := range os.Environ() {
		fmt.Fprintln(os.Stderr, "env "+v)
	}
	listener, err := net.Listen("unix", os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('}') // the request, up to the end of its body
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}()
	fmt.Println(says)
	_, err = os.Stdin.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrClosed) {
		_ = listener.Close()
	}
}
