// Command fakerunner is a child that speaks package runner's protocol without a model. Tests make it load slowly, answer at a
// pace, refuse, or die in the middle of a stream.
//
// What it does is a script in the form of a URL's query: from the environment (FAKERUNNER), then from the model's path behind
// a "?", then from the prompt between "{{" and "}}"; the last one wins. Keys, all optional:
//
//	load=200ms           how long a load takes, in ten steps of progress
//	load_error=invalid   the load fails with this code; load_die=1: the child dies in it
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
//	train=2048           the trained context; weights=1000, kv=100, gpu=0: bytes reported
//	pooled=1             it embeds only; reranks=1: it scores only, by the words that a document shares with the query
//	vision=1             it takes images, each 4 tokens
//
// A token is a word with the space before it. Embeddings depend on the text alone. The word drawn has always half of the
// probability. It answers as many prompts at a time as it was loaded with sequences for, and logs each number of threads
// that it is told. What it cannot: schemas, grammars and drafts change nothing.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"sluice/runner"
)

func main() {
	if len(os.Args) != 4 || os.Args[1] != "serve" || os.Args[2] != "--socket" {
		fmt.Fprintln(os.Stderr, "usage: fakerunner serve --socket PATH")
		os.Exit(2)
	}
	script, err := parse(script{}, os.Getenv("FAKERUNNER"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakerunner:", err)
		os.Exit(2)
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
