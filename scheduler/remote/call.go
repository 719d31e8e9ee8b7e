package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"sluice/fault"
)

// HopHeader counts the Sluice servers that a request has gone through. Two that name each other as servers elsewhere would hand one on
// for ever.
const HopHeader = "X-Sluice-Hop"

// MaxHops is how many of them there may be.
const MaxHops = 4

type hopsKey struct{}

// WithHops notes that a request came through n Sluice servers, for the requests that are made for it.
func WithHops(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, hopsKey{}, n)
}

func hops(ctx context.Context) int {
	n, _ := ctx.Value(hopsKey{}).(int)
	return n
}

// Bounds of what a server may answer with, in bytes.
const (
	maxError  = 64 << 10
	maxList   = 16 << 20
	maxShow   = 4 << 20
	maxLine   = 16 << 20
	maxObject = 512 << 20 // vectors of 2048 texts as text
)

// drainLimit is how long the end of an answer is waited for of which all has come: some servers never end it.
const drainLimit = 200 * time.Millisecond

var (
	errFirstByte = errors.New("the time for its first byte is over")
	errIdle      = errors.New("it said nothing more for too long")
)

// answer is the body of an answer. Reading it fails when the server is silent for too long, or when ctx ends; Close ends it at once.
type answer struct {
	http.Header
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	over   atomic.Pointer[error] // why the timer ended it
	begun  atomic.Bool           // a byte has come
	fixed  bool                  // the time limit does not begin anew
	left   int64                 // bytes that may still come
}

// Read reads, and lets the time limit begin anew.
func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, errors.New("the answer is too large")
	}
	n, err := a.body.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	if n > 0 && a.over.Load() == nil {
		a.begun.Store(true)
		if !a.fixed {
			a.timer.Reset(a.idle)
		}
	}
	if why := a.over.Load(); why != nil && err != nil && !errors.Is(err, io.EOF) {
		err = *why
	}
	return n, err
}

// within sets a time limit for all that is still read.
func (a *answer) within(d time.Duration) {
	a.fixed = true
	a.timer.Reset(d)
}

// drain reads the end of an answer, so that the connection can be used again.
func (a *answer) drain() {
	a.within(drainLimit)
	_, _ = io.CopyN(io.Discard, a, 1<<10) // one that does not end is closed
}

// Close ends the request.
func (a *answer) Close() {
	a.timer.Stop()
	a.cancel(context.Canceled)
	_ = a.body.Close()
}

// send sends a request and waits for the beginning of its answer; in nil is a GET. A refusal is a fault, so is a server that does not
// answer. first and idle are the time limits for its first byte and between two pieces, most bounds its bytes.
func (s *Server) send(ctx context.Context, path string, in any, first, idle time.Duration, most int64) (*answer, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if in != nil {
		text, err := marshal(in)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "remote", "this request cannot be written for a server elsewhere")
		}
		method, body = http.MethodPost, bytes.NewReader(text)
	}
	inner, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(inner, method, s.base.JoinPath(path).String(), body)
	if err != nil {
		cancel(nil)
		return nil, fault.Wrap(err, fault.Internal, "remote", "no request can be made")
	}
	req.Header.Set("Accept", "application/json, text/event-stream, application/x-ndjson")
	req.Header.Set("User-Agent", "sluice")
	req.Header.Set(HopHeader, strconv.Itoa(hops(ctx)+1))
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.cfg.Key)
	}
	a := &answer{cancel: cancel, idle: idle, left: most}
	a.timer = time.AfterFunc(first, func() {
		cause := errFirstByte
		if a.begun.Load() {
			cause = errIdle
		}
		a.over.Store(&cause)
		cancel(cause)
	})
	res, err := s.http.Do(req)
	if err != nil {
		a.timer.Stop()
		cause := context.Cause(inner)
		cancel(nil)
		if ctx.Err() != nil {
			return nil, canceled(ctx)
		}
		if cause != nil {
			err = cause
		}
		return nil, s.lost(err)
	}
	a.Header, a.body = res.Header, res.Body
	if res.StatusCode/100 == 2 {
		return a, nil
	}
	defer a.Close()
	a.left = maxError
	a.within(min(idle, 10*time.Second))
	said, _ := io.ReadAll(a) // what came of it
	if ctx.Err() != nil {
		return nil, canceled(ctx)
	}
	return nil, s.refusal(res.StatusCode, res.Header, said)
}

// call sends a request that is answered with one JSON object, before its time is over.
func (s *Server) call(ctx context.Context, path string, in, out any, limit time.Duration, most int64) (http.Header, error) {
	limited, stop := context.WithTimeoutCause(ctx, limit, errFirstByte)
	defer stop()
	a, err := s.send(limited, path, in, limit, limit, most)
	if err == nil {
		defer a.Close()
		if err = json.NewDecoder(a).Decode(out); err == nil {
			a.drain()
			return a.Header, nil
		}
		err = s.lost(fmt.Errorf("%s: %w", path, err))
	}
	switch {
	case ctx.Err() != nil:
		return nil, canceled(ctx)
	case limited.Err() != nil:
		return nil, s.lost(errFirstByte)
	}
	return nil, err
}

// marshal is json.Marshal without the escapes meant for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
