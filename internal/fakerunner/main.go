// Command fakerunner is a child that speaks package runner's protocol without a model. Tests make it load slowly, answer at a
// pace, refuse, or die in the middle of a stream.
//
// What it does is a script in the form of a URL's query: from the environment (FAKERUNNER), then from the model's path behind
// a "?", then from the prompt between "{{" and "}}"; the last one wins. Keys, all optional:
//
//	load=200ms           how long a load takes, in ten steps of progress
//	load_error=invalid   the load fails with this code; too_large is of the kind "memory", as if it had run out on the way
//	load_die=1           the child dies in the load
//	oom_above=1000       the load fails as with load_error=too_large when a device would have more of the model than so many bytes
//	text=a b c           the answer's words; without it the words of the prompt come back, or how many images came and their
//	                     sizes. Any text may stand here (fakebin.Say writes it): thinking, a tool call. Given several
//	                     times, the answers of a request for several have them in turn
//	tokens=5             words after which the model ends by itself; beyond the text they are w7, w8, …; -1: it never ends
//	rate=100             words a second; 0 is as fast as it can
//	delay=50ms           before the first word, as if a long prompt were read
//	die_after=3          words after which the child kills itself; error_after=3: it fails with code busy
//	hang=1               it never answers, not even a ping, and does not notice that the caller left
//	spin=2s              before the first word it computes for so long, and answers no ping until then
//	ping=2s              how long a batch takes, after which a ping is answered; stay=1: it ignores the end of stdin
//	width=8              of an embedding
//	train=2048           the trained context
//	weights=1000         bytes reported; kv=100: of all caches, or kv_token=10: of each token of each sequence; compute=10: on each
//	                     device that has any of the rest. gpu=900: so many bytes of the weights are on the first GPU
//	layers=32            blocks of the model. With it, and without gpu, a placement gets its part of weights and kv: a share of so
//	                     many of the layers, with the output one more than the blocks
//	devices=[...]        JSON of runner.Device: what the machine has (fakebin.Machine writes it); in FAKERUNNER only. Without it
//	                     there is a CPU with 16 GiB. A placement that names another device is refused
//	pooled=1             it embeds only; reranks=1: it scores only, by the words that a document shares with the query
//	vision=1             it takes images, each 4 tokens
//
// A token is a word with the space before it. Embeddings depend on the text alone. The word drawn has always half of the
// probability. It answers as many prompts at a time as it was loaded with sequences for, and logs each number of threads
// that it is told. "fakerunner devices --json" lists the devices. What it cannot: schemas, grammars and drafts change nothing.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"sluice/runner"
)

func main() {
	if !slices.Equal(os.Args[1:], []string{"devices", "--json"}) && (len(os.Args) != 4 || os.Args[1] != "serve" || os.Args[2] != "--socket") {
		fmt.Fprintln(os.Stderr, "usage: fakerunner serve --socket PATH | devices --json")
		os.Exit(2)
	}
	script, err := parse(script{}, os.Getenv("FAKERUNNER"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakerunner:", err)
		os.Exit(2)
	}
	if os.Args[1] == "devices" {
		if err := json.NewEncoder(os.Stdout).Encode(script.machine()); err != nil {
			fmt.Fprintln(os.Stderr, "fakerunner:", err)
			os.Exit(1)
		}
		return
	}
	var stdin io.Reader = os.Stdin
	if script.stay {
		stdin = nil
	}
	fmt.Fprintln(os.Stderr, "fakerunner: started")
	if err := runner.Serve(context.Background(), os.Args[3], &fake{script: script}, stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakerunner:", err)
		os.Exit(1)
	}
}
