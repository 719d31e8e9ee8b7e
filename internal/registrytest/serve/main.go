// Command serve runs the CNCF registry on loopback until its standard input closes or a signal ends it, for checks from outside of Go.
//
//	serve [-listen 127.0.0.1:0] [-dir FOLDER] [-redirect] [-seed NAME=MODELS-FOLDER:MODEL]…
//
// With -redirect it sends whoever asks 127.0.0.1 for a blob to localhost, as Ollama's registry sends to its storage: Ollama's client
// pulls from no registry that does not.
//
// It prints "registry http://127.0.0.1:PORT" when it can be used.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"sluice/internal/registrytest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "where to listen")
	dir := flag.String("dir", "", "a folder to keep the registry in; none: a temporary one")
	redirect := flag.Bool("redirect", false, "send clients to localhost for blobs")
	var seeds []string
	flag.Func("seed", "NAME=MODELS-FOLDER:MODEL, a model to put into it; may be given again", func(s string) error {
		seeds = append(seeds, s)
		return nil
	})
	flag.Parse()
	r, err := registrytest.Start(registrytest.Options{Listen: *listen, Dir: *dir})
	if err != nil {
		return err
	}
	defer r.Close()
	if *redirect {
		r.Add(registrytest.Fault{Do: registrytest.Instead, Path: "/blobs/", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if name, port, err := net.SplitHostPort(q.Host); err == nil && name != "localhost" {
				http.Redirect(w, q, "http://"+net.JoinHostPort("localhost", port)+q.URL.RequestURI(), http.StatusTemporaryRedirect)
				return
			}
			r.Handler().ServeHTTP(w, q)
		})})
	}
	for _, seed := range seeds {
		name, from, ok := strings.Cut(seed, "=")
		folder, model, ok2 := strings.Cut(from, ":")
		if !ok || !ok2 {
			return fmt.Errorf("-seed %s is not NAME=MODELS-FOLDER:MODEL", seed)
		}
		if err := r.Seed(folder, model, name); err != nil {
			return err
		}
	}
	fmt.Println("registry " + r.URL)
	ended, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	closed := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		closed <- err
	}()
	select {
	case <-ended.Done():
		return nil
	case err := <-closed:
		return err
	}
}
