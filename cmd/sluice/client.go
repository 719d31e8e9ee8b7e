package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/fault"
)

// client talks to a running server.
type client struct {
	url, key string
}

// newClient takes the address from SLUICE_URL, else from SLUICE_HOST or OLLAMA_HOST, and the key from SLUICE_KEY, else from
// `sluice login`.
func newClient() *client {
	url := os.Getenv("SLUICE_URL")
	for _, name := range []string{"SLUICE_HOST", "OLLAMA_HOST"} {
		if host := os.Getenv(name); url == "" && host != "" {
			url = config.HostPort(host)
		}
	}
	if url == "" {
		url = "127.0.0.1:11434"
	}
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	c := &client{url: strings.TrimRight(url, "/"), key: os.Getenv("SLUICE_KEY")}
	if c.key == "" {
		c.key = savedToken(c.url, time.Now())
	}
	return c
}

// send makes a request; a non-2xx answer becomes the *fault.Error that the server meant. The caller closes the body.
func (c *client) send(ctx context.Context, method, path string, body any, accept string) (*http.Response, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case io.Reader:
		reader = b
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, reader)
	if err != nil {
		return nil, usageError{fmt.Errorf("SLUICE_URL: %w", err)}
	}
	req.Header.Set("Content-Type", "application/json")
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fault.New(fault.Canceled, "client", "cancelled")
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("no server answers at %s (start one with `sluice serve`, or set SLUICE_URL)", c.url)
		}
		return nil, fmt.Errorf("%s: %w", c.url, errors.Unwrap(err))
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp, nil
}

// call makes a request and decodes the whole answer into out.
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	resp, err := c.send(ctx, method, path, body, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// lines reads a stream of JSON lines. A line with an error ends it with that error.
func (c *client) lines(ctx context.Context, method, path string, body any, each func(line []byte) error) error {
	resp, err := c.send(ctx, method, path, body, "application/x-ndjson")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := bufio.NewReaderSize(resp.Body, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e struct{ Error any }
			if json.Unmarshal(line, &e) == nil && e.Error != nil {
				return decodeError(line, fault.Internal)
			}
			if err := each(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if ctx.Err() != nil {
				return fault.New(fault.Canceled, "client", "cancelled")
			}
			return fmt.Errorf("the server closed the stream: %w", err)
		}
	}
}

var codesOf = map[int]fault.Code{
	400: fault.Invalid, 401: fault.Unauthenticated, 403: fault.Denied, 404: fault.NotFound, 409: fault.Conflict,
	413: fault.TooLarge, 422: fault.Refused, 501: fault.Unimplemented, 503: fault.Busy,
}

func readError(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	code, ok := codesOf[resp.StatusCode]
	if !ok {
		code = fault.Internal
	}
	return decodeError(text, code)
}

// decodeError reads both dialects: {"error":"text"} and {"error":{"message":…}}.
func decodeError(text []byte, code fault.Code) error {
	var flat struct{ Error string }
	if json.Unmarshal(text, &flat) == nil && flat.Error != "" {
		return fault.New(code, "client", "%s", flat.Error)
	}
	var full struct {
		Error struct {
			Code, Kind, Message, Hint string
			Position                  int
		}
	}
	if json.Unmarshal(text, &full) == nil && full.Error.Message != "" {
		for _, c := range fault.Codes() {
			if c.String() == full.Error.Code {
				code = c
			}
		}
		return &fault.Error{Code: code, Op: "client", Kind: full.Error.Kind, Msg: full.Error.Message, Hint: full.Error.Hint, Position: full.Error.Position}
	}
	return fault.New(code, "client", "%s", strings.TrimSpace(string(text)))
}

func wantJSON(cmd *cobra.Command) bool {
	on, _ := cmd.Flags().GetBool("json")
	return on
}

func printJSON(cmd *cobra.Command, v any) error {
	out := json.NewEncoder(cmd.OutOrStdout())
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// data is the envelope of the server's own routes.
type data[T any] struct {
	Data T `json:"data"`
	Meta struct {
		RequestID string          `json:"request_id"`
		Scans     json.RawMessage `json:"scans,omitempty"`
	} `json:"meta"`
}
