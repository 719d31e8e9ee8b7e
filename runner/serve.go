package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sluice/fault"
)

// stopGrace is how long Serve waits for requests whose context has ended. The child exits afterwards whatever they do.
const stopGrace = 2 * time.Second

// Serve is the main of a child: it listens on the unix socket, writes one line to ready once it does, and serves the engine
// until ctx ends or stdin reaches its end, which is what the parent's death looks like from here.
//
// The socket's folder was made by the parent for this child. It is removed if it is empty then, because a parent that was
// killed cannot do it.
func Serve(ctx context.Context, socket string, engine Engine, stdin io.Reader, ready io.Writer) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("runner: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if stdin != nil {
		// Not waited for: a read of stdin cannot be interrupted. It ends with the process.
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}

	c := &child{engine: engine}
	server := &http.Server{
		Handler: c.routes(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if _, err := fmt.Fprintln(ready, readyLine); err != nil {
		cancel()
	}

	select {
	case err = <-served:
		return fmt.Errorf("runner: %w", err)
	case <-ctx.Done():
	}
	_ = listener.Close() // unlinks the socket
	_ = os.Remove(filepath.Dir(socket))
	_ = server.Close()
	<-served
	idle := make(chan struct{})
	go func() { c.running.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-time.After(stopGrace):
	}
	return nil
}

// child answers the parent's calls.
type child struct {
	engine  Engine
	running sync.WaitGroup // requests

	mu     sync.Mutex
	loaded bool // Load has been called
	usable bool // Load has succeeded
}

func (c *child) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, h func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			c.running.Add(1)
			defer c.running.Done()
			h(w, r)
		})
	}
	handle(pathLoad, c.load)
	handle(pathGenerate, c.generate)
	handle(pathEmbed, func(w http.ResponseWriter, r *http.Request) {
		unary(c, w, r, c.engine.Embed)
	})
	handle(pathRerank, func(w http.ResponseWriter, r *http.Request) {
		unary(c, w, r, c.engine.Rerank)
	})
	handle(pathThreads, func(w http.ResponseWriter, r *http.Request) {
		unary(c, w, r, func(ctx context.Context, in threadsBody) (struct{}, error) {
			return struct{}{}, c.engine.SetThreads(ctx, in.Threads)
		})
	})
	handle(pathPing, func(w http.ResponseWriter, r *http.Request) {
		unary(c, w, r, func(ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, c.engine.Ping(ctx) })
	})
	handle(pathTokenize, func(w http.ResponseWriter, r *http.Request) {
		unary(c, w, r, func(ctx context.Context, in textBody) (tokensBody, error) {
			tokens, err := c.engine.Tokenize(ctx, in.Text, in.Special)
			return tokensBody{Tokens: tokens}, err
		})
	})
	handle(pathDetokenize, func(w http.ResponseWriter, r *http.Request) {
		unary(c, w, r, func(ctx context.Context, in tokensBody) (textBody, error) {
			text, err := c.engine.Detokenize(ctx, in.Tokens)
			return textBody{Text: text}, err
		})
	})
	return mux
}

// ready refuses calls before a model is loaded: an engine need not guard against them.
func (c *child) ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.usable {
		return fault.New(fault.Conflict, "runner.Serve", "no model is loaded")
	}
	return nil
}

func (c *child) load(w http.ResponseWriter, r *http.Request) {
	var req LoadRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		fail(w, badBody(err))
		return
	}
	c.mu.Lock()
	again := c.loaded
	c.loaded = true
	c.mu.Unlock()
	if again {
		fail(w, fault.New(fault.Conflict, "runner.Serve", "a model is loaded already; a runner loads one in its life"))
		return
	}
	out := lines(w)
	report, err := c.engine.Load(r.Context(), req, func(p float32) { _ = out(LoadEvent{Progress: p}) })
	if err != nil {
		_ = out(LoadEvent{Error: toWire(err)})
		return
	}
	c.mu.Lock()
	c.usable = true
	c.mu.Unlock()
	_ = out(LoadEvent{Progress: 1, Report: &report})
}

func (c *child) generate(w http.ResponseWriter, r *http.Request) {
	var req GenerateRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		fail(w, badBody(err))
		return
	}
	if err := c.ready(); err != nil {
		fail(w, err)
		return
	}
	out := lines(w)
	ended := false
	err := c.engine.Generate(r.Context(), req, func(chunk Chunk) error {
		if ended {
			return fault.Bug("the engine emitted a chunk after its last one")
		}
		ended = chunk.Done
		return out(chunk)
	})
	if err == nil && !ended {
		err = fault.Bug("the engine ended a generation without a last chunk")
	}
	if err != nil && !ended {
		_ = out(Chunk{Error: toWire(err)})
	}
}

// unary answers a call of one object with one object.
func unary[In, Out any](c *child, w http.ResponseWriter, r *http.Request, call func(context.Context, In) (Out, error)) {
	var in In
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		fail(w, badBody(err))
		return
	}
	if err := c.ready(); err != nil {
		fail(w, err)
		return
	}
	out, err := call(r.Context(), in)
	if err != nil {
		fail(w, err)
		return
	}
	// Encoded before the status is sent, so that a value JSON cannot carry (NaN) is a failure and not half an answer.
	body, err := json.Marshal(out)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// lines gives a function that writes one line of a stream and sends it at once.
func lines(w http.ResponseWriter) func(any) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc, flush := json.NewEncoder(w), http.NewResponseController(w)
	return func(line any) error {
		return errors.Join(enc.Encode(line), flush.Flush())
	}
}

func fail(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(w).Encode(failure{Error: toWire(err)})
}

func badBody(err error) error {
	return fault.Wrap(err, fault.Invalid, "runner.Serve", "the runner could not read the request")
}
