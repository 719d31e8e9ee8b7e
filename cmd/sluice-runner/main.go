// Command sluice-runner is the child process that loads one model and computes. It is the only binary that links llama.cpp.
//
//	sluice-runner serve --socket PATH     serves package runner's protocol until stdin ends
//	sluice-runner devices --json          lists what it can compute on
//	sluice-runner probe [--json|--markdown]  says which architectures of models it can load
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

const usage = "usage: sluice-runner serve --socket PATH | devices [--json] | probe [--json|--markdown] | version"

func main() {
	quarantine()
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-runner:", err)
		os.Exit(1)
	}
}

// quarantine keeps the engine to itself, however it was started: a foreign Ollama beside the binary would replace our kernels, and an
// abort would start a debugger. Who sets the variables is obeyed; the parent sets them too.
func quarantine() {
	for name, value := range map[string]string{"OLLAMA_LIBRARY_PATH": "", "GGML_NO_BACKTRACE": "1"} {
		if _, set := os.LookupEnv(name); !set {
			_ = os.Setenv(name, value)
		}
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
	case "probe":
		flags := flag.NewFlagSet(cmd, flag.ContinueOnError)
		asJSON := flags.Bool("json", false, "print JSON")
		markdown := flags.Bool("markdown", false, "print docs/MODELS.md")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		return probe(stdout, *asJSON, *markdown)
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
		threads := ""
		if d.Threads > 0 {
			threads = fmt.Sprintf("\t%d threads", d.Threads)
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d MiB free%s\n", d.ID, d.Library, d.Name, d.FreeBytes>>20, d.TotalBytes>>20, threads); err != nil {
			return err
		}
	}
	return nil
}

// probe prints what the engines say to each architecture. What they log meanwhile goes to stderr.
func probe(w io.Writer, asJSON, markdown bool) error {
	list, err := engine.Probe()
	switch {
	case err != nil:
		return err
	case markdown:
		return engine.WriteModelsPage(w, list)
	case asJSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(list)
	}
	for _, a := range list {
		backend := a.Backend
		if backend == "" {
			backend = "refused"
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\n", a.Name, backend); err != nil {
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
