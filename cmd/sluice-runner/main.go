// Command sluice-runner is the child process that loads one model and computes. It is the only binary that links llama.cpp.
//
//	sluice-runner serve --socket PATH     serves package runner's protocol until stdin ends
//	sluice-runner devices --json          lists what it can compute on
//	sluice-runner version
//
// Nobody but the scheduler starts the first; the others are for people and for the inventory.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"sluice/runner"
	"sluice/runner/engine"
)

const usage = "usage: sluice-runner serve --socket PATH | devices [--json] | version"

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-runner:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%s", usage)
	}
	switch cmd, rest := args[0], args[1:]; cmd {
	case "serve":
		flags := flag.NewFlagSet(cmd, flag.ContinueOnError)
		socket := flags.String("socket", "", "path of the unix socket to listen on")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		if *socket == "" {
			return fmt.Errorf("serve: --socket is required; %s", usage)
		}
		e := engine.New()
		return runner.Serve(context.Background(), *socket, e, stdin, stdout)
	case "devices":
		flags := flag.NewFlagSet(cmd, flag.ContinueOnError)
		asJSON := flags.Bool("json", false, "print JSON")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		return devices(stdout, *asJSON)
	case "version":
		_, err := fmt.Fprintln(stdout, version())
		return err
	default:
		return fmt.Errorf("unknown command %q; %s", cmd, usage)
	}
}

func devices(w io.Writer, asJSON bool) error {
	list := engine.Devices()
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(list)
	}
	for _, d := range list {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%d threads\n", d.ID, d.Library, d.Threads); err != nil {
			return err
		}
	}
	return nil
}

// version names this build and the engine in it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "sluice-runner (unknown build)"
	}
	v := "sluice-runner " + info.Main.Version
	for _, dep := range info.Deps {
		if dep.Path == "github.com/ollama/ollama" {
			v += ", llama.cpp of " + dep.Path + " " + dep.Version
		}
	}
	return v
}
