package gateway

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/runner"
	"sluice/scheduler"
)

// The keys of the fixture.
const (
	adminKey    = "slc_admin"
	readOnlyKey = "slc_readonly"
	writerKey   = "slc_writer"
	agentKey    = "slc_agent"
	narrowKey   = "slc_narrow"
	wrongKey    = "slc_wrong"
)

type memoryKeys struct {
	mu   sync.Mutex
	keys map[string]access.Principal
}

func newMemoryKeys() *memoryKeys {
	p := func(id string, role access.Role) access.Principal {
		return access.Principal{KeyID: id, Owner: access.BootstrapOwner, Name: id, Role: role}
	}
	agent, narrow := p("k-agent", access.Admin), p("k-narrow", access.Admin)
	agent.Agent = true
	narrow.Databases, narrow.Tables, narrow.Models = []string{"shop"}, []string{"shop.item"}, []string{"encoder"}
	return &memoryKeys{keys: map[string]access.Principal{
		adminKey: p("k-admin", access.Admin), readOnlyKey: p("k-readonly", access.ReadOnly), writerKey: p("k-writer", access.ReadWrite),
		agentKey: agent, narrowKey: narrow,
	}}
}

func (m *memoryKeys) Principal(_ context.Context, bearer string) (access.Principal, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p, ok := m.keys[bearer]; ok {
		return p, nil
	}
	return access.Principal{}, fault.New(fault.Unauthenticated, "test", "no such key")
}

func (m *memoryKeys) Create(_ context.Context, by access.Principal, k NewKey) (id, key string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	role, err := access.ParseRole(k.Role)
	if err != nil {
		return "", "", err
	}
	id, key = fmt.Sprintf("k-%d", len(m.keys)), fmt.Sprintf("slc_made_%d", len(m.keys))
	m.keys[key] = access.Principal{KeyID: id, Owner: by.Owner, Name: k.Name, Role: role, Agent: k.Agent, Databases: k.Databases, Tables: k.Tables, Models: k.Models}
	return id, key, nil
}

func (m *memoryKeys) List(context.Context) ([]KeyInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []KeyInfo
	for _, p := range m.keys {
		out = append(out, KeyInfo{ID: p.KeyID, Owner: p.Owner, Name: p.Name, Role: p.Role.String(), Agent: p.Agent, Databases: p.Databases})
	}
	return out, nil
}

func (m *memoryKeys) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, p := range m.keys {
		if p.KeyID == id {
			delete(m.keys, key)
			return nil
		}
	}
	return fault.New(fault.NotFound, "test", "key '%s' not found", id)
}

// fakeRunner answers with the words of its script, one a chunk. A token is a word.
type fakeRunner struct {
	mu       sync.Mutex
	script   []string // words of the answer; nil: "one", "two", "three"
	failAt   int      // the chunk before which it fails with err; 0 never
	err      error
	hold     chan struct{}   // when set: after the first chunk it waits for this or for the end of ctx
	nan      map[string]bool // texts whose embedding would hold a NaN: the engine refuses them
	requests []runner.GenerateRequest
	ended    chan error // when set: gets the error with which each Generate ended
}

// start gives a runner of the same script and with a life of its own.
func (f *fakeRunner) start() scheduler.Runner {
	return &liveFake{fakeRunner: f, done: make(chan struct{})}
}

type liveFake struct {
	*fakeRunner
	done chan struct{}
	once sync.Once
}

func (l *liveFake) Done() <-chan struct{} { return l.done }
func (l *liveFake) Err() error            { return nil }
func (l *liveFake) Stop(context.Context) error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (f *fakeRunner) Load(_ context.Context, req runner.LoadRequest, _ func(float32)) (runner.LoadReport, error) {
	return runner.LoadReport{NumCtx: req.NumCtx, TrainCtx: 4096, Embedding: 8, WeightBytes: 1000, KVBytes: 100, ComputeBytes: 10, GPUBytes: 7, Took: time.Millisecond}, nil
}

func (f *fakeRunner) last() runner.GenerateRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		return runner.GenerateRequest{}
	}
	return f.requests[len(f.requests)-1]
}

func (f *fakeRunner) Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) (err error) {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	script, hold, ended := f.script, f.hold, f.ended
	f.mu.Unlock()
	if ended != nil {
		defer func() { ended <- err }()
	}
	if script == nil {
		script = []string{"one", " two", " 三👋"}
	}
	reason := "stop"
	for i, word := range script {
		if i == req.NumPredict {
			reason = "length"
			script = script[:i]
			break
		}
		if f.failAt == i+1 {
			return f.err
		}
		if err := emit(runner.Chunk{Text: word}); err != nil {
			return err
		}
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return emit(runner.Chunk{Done: true, DoneReason: reason, Usage: &runner.Usage{PromptTokens: len(strings.Fields(req.Prompt)), PromptDuration: time.Millisecond, EvalTokens: len(script)}})
}

func (f *fakeRunner) Embed(_ context.Context, req runner.EmbedRequest) (runner.EmbedResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var res runner.EmbedResponse
	for i, text := range req.Inputs {
		words := strings.Fields(text)
		if len(words) > 16 {
			if !req.Truncate {
				return res, fault.New(fault.Invalid, "fake", "the input is longer than the context")
			}
			res.Truncated = true
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		v := make([]float32, 8)
		for j := range v {
			v[j] = float32(h.Sum64()>>(8*j)&0xff) + 1
		}
		if f.nan[text] {
			return runner.EmbedResponse{}, fault.New(fault.Invalid, "fake", "the model gave no number at position 3 of the vector of input %d", i)
		}
		res.Vectors = append(res.Vectors, v)
		res.PromptTokens += len(words)
	}
	return res, nil
}

func (f *fakeRunner) Tokenize(_ context.Context, text string) ([]int, error) {
	tokens := make([]int, len(strings.Fields(text)))
	for i := range tokens {
		tokens[i] = i
	}
	return tokens, nil
}

func (f *fakeRunner) Detokenize(_ context.Context, tokens []int) (string, error) {
	return strings.Repeat("w ", len(tokens)), nil
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
