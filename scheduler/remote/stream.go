package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"sluice/runner"
)

// maxAnswer bounds an answer, in bytes: a server that repeats itself for ever ends somewhere.
const maxAnswer = 1 << 30

// streaming is one generation, of one or more requests one after the other.
type streaming struct {
	s     *Server
	emit  func(runner.Chunk) error
	began bool // a chunk has been handed on: nobody else can answer any more
}

func (st *streaming) hand(c runner.Chunk) error {
	st.began = true
	return st.emit(c)
}

// failed is a failure in the middle, or before anything was handed on.
func (st *streaming) failed(cause error) error {
	if st.began {
		return st.s.brokeOff(cause)
	}
	return st.s.lost(cause)
}

// said is a failure that the server tells within its answer.
func (st *streaming) said(status int, text string) error {
	if st.began {
		return st.s.brokeOff(fmt.Errorf("it says: %s", text))
	}
	body, _ := marshal(map[string]string{"message": text})
	return st.s.refusal(status, nil, body)
}

// lines sends a request and hands each line of its answer to next, until that says that it was the last one. An answer that ends before
// is a failure, unless whole says that nothing is missing.
func (st *streaming) lines(ctx context.Context, path string, in any, next func([]byte) (last bool, err error), whole func() bool) error {
	a, err := st.s.send(ctx, path, in, st.s.cfg.FirstByte, st.s.cfg.Idle, maxAnswer)
	if err != nil {
		return err
	}
	defer a.Close()
	buf := bufio.NewReaderSize(a, 64<<10)
	for {
		line, err := readLine(buf)
		switch {
		case ctx.Err() != nil:
			return canceled(ctx)
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0):
			if errors.Is(err, io.EOF) && whole() {
				return nil
			}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return st.failed(err)
		}
		last, err := next(line)
		if err != nil {
			return err
		}
		if last {
			a.drain()
			return nil
		}
	}
}

// readLine reads a line without its end. The last one may come with io.EOF.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("a line is longer than %d MiB", maxLine>>20)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return line, err
		}
		line = line[:len(line)-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		return line, nil
	}
}
