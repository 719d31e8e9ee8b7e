package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
	"sluice/internal/fakerunner/fakebin"
	"sluice/models"
	"sluice/runner"
)

// The programs, built once.
var sluiceBinary, fakeBinary string

func buildSluice(dir string) (err error) {
	fakeBinary, err = fakebin.Build(dir)
	if err != nil {
		return err
	}
	if bin := os.Getenv("SLUICE_TEST_BIN"); bin != "" { // make test has built it
		sluiceBinary, err = filepath.Abs(filepath.Join(bin, "sluice"))
		return err
	}
	sluiceBinary = filepath.Join(dir, "sluice")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", sluiceBinary, "sluice/cmd/sluice").CombinedOutput(); err != nil {
		return fmt.Errorf("build sluice: %w\n%s", err, out)
	}
	return nil
}

// backend is a real Sluice in a process of its own; only the runner behind it is a fake, whose script is in the prompt.
type backend struct {
	t          *testing.T
	home, addr string
	cmd        *exec.Cmd
	out        *os.File
}

// thinkTemplate has Qwen3's form of a thought and of a call.
const thinkTemplate = `{{ range .Tools }}tool {{ .Function }} {{ end }}{{ range .Messages }}{{ .Role }}: {{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ .Content }}{{ if .ToolCalls }}<tool_call>
{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}
</tool_call>{{ end }} {{ end }}{{ if .Think }}/think{{ else }}/no_think{{ end }} `

// newBackend starts a Sluice with two models: one that thinks and calls tools, and an encoder.
func newBackend(t *testing.T, settings string) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{t: t, home: t.TempDir(), addr: l.Addr().String()}
	_ = l.Close()
	if err := os.WriteFile(filepath.Join(b.home, "sluice.yaml"), []byte(fmt.Sprintf("listen: %s\nhome: %s\n%s", b.addr, b.home, settings)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	t.Cleanup(b.kill)
	return b
}

func (b *backend) withModels() *backend {
	b.t.Helper()
	b.create("thinker", thinkTemplate, ggml.KV{"general.architecture": "llama", "llama.context_length": uint32(4096), "llama.embedding_length": uint32(8),
		"llama.block_count": uint32(1), "tokenizer.ggml.tokens": []string{"a", "b"}})
	b.create("encoder", "{{ .Prompt }}", ggml.KV{"general.architecture": "bert", "bert.context_length": uint32(512), "bert.embedding_length": uint32(8),
		"bert.block_count": uint32(1), "bert.pooling_type": uint32(1), "tokenizer.ggml.tokens": []string{"a", "b"}})
	return b
}

func (b *backend) url() string { return "http://" + b.addr }

func (b *backend) start() {
	b.t.Helper()
	var err error
	if b.out, err = os.Create(filepath.Join(b.home, "log")); err != nil {
		b.t.Fatal(err)
	}
	b.cmd = exec.Command(sluiceBinary, "serve", "--config", filepath.Join(b.home, "sluice.yaml"))
	b.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SLUICE_") || strings.HasPrefix(v, "OLLAMA_") }),
		"SLUICE_RUNNER="+fakeBinary, "SLUICE_ADMIN_KEY="+secretKey)
	b.cmd.Stdout, b.cmd.Stderr = b.out, b.out
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.until("it listens", func() bool {
		res, err := http.Get(b.url() + "/api/version")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == 200
	})
}

// kill ends the process at once; its runners end by themselves.
func (b *backend) kill() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
	b.cmd = nil
	_ = b.out.Close()
	http.DefaultClient.CloseIdleConnections()
}

// until waits for a real process: nobody tells when it is so far.
func (b *backend) until(what string, ok func() bool) {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(60 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			log, _ := os.ReadFile(filepath.Join(b.home, "log"))
			b.t.Fatalf("never: %s\n%s", what, log)
		}
	}
}

func (b *backend) call(method, path string, body any) (int, string) {
	b.t.Helper()
	in, ok := body.(io.Reader)
	if !ok {
		text, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, b.url()+path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secretKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(text)
}

func (b *backend) create(name, template string, kv ggml.KV) {
	b.t.Helper()
	file, err := os.CreateTemp(b.t.TempDir(), "gguf")
	if err == nil {
		err = ggml.WriteGGUF(file, kv, []*ggml.Tensor{{Name: "token_embd.weight", Kind: 0, Shape: []uint64{8, 2}, WriterTo: bytes.NewReader(make([]byte, 64))}})
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		b.t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	if status, text := b.call("POST", "/api/blobs/"+digest, bytes.NewReader(content)); status/100 != 2 {
		b.t.Fatalf("blob: %d %s", status, text)
	}
	if status, text := b.call("POST", "/api/create", map[string]any{"model": name, "template": template, "files": map[string]string{"m.gguf": digest}, "stream": false}); status != 200 {
		b.t.Fatalf("create: %d %s", status, text)
	}
}

// inFlight waits until so many requests are on the backend's models.
func (b *backend) inFlight(n int) {
	b.t.Helper()
	b.until(fmt.Sprintf("%d requests in flight", n), func() bool {
		_, text := b.call("GET", "/api/ps", nil)
		var ps struct {
			Models []struct {
				InFlight int `json:"in_flight"`
			} `json:"models"`
		}
		if json.Unmarshal([]byte(text), &ps) != nil {
			return false
		}
		for _, m := range ps.Models {
			n -= m.InFlight
		}
		all := n
		for _, m := range ps.Models {
			n += m.InFlight
		}
		return all == 0
	})
}

// runnerOf waits until a server offers a model.
func runnerOf(t *testing.T, s *Server, name string) *Runner {
	t.Helper()
	find := func(list []*models.Model) int {
		return slices.IndexFunc(list, func(m *models.Model) bool { return models.SameName(m.Name, name) })
	}
	eventually(t, s, name+" is offered", func(list []*models.Model) bool { return find(list) >= 0 })
	return s.Runner(s.Models()[find(s.Models())])
}

// Another Sluice, in either language: what a runner here can, one there can.
func TestAnotherSluice(t *testing.T) {
	b := newBackend(t, "").withModels()
	for _, kind := range []string{Ollama, OpenAI} {
		t.Run(kind, func(t *testing.T) {
			s, log := newServer(t, Config{Name: "back", Kind: kind, URL: b.url(), Every: 100 * time.Millisecond})
			run(t, s)
			r := runnerOf(t, s, "thinker")
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			say := func(n int, texts ...string) *gathered {
				t.Helper()
				chat := question(fakebin.Say(texts...) + " go")
				chat.Tools = weather(t)
				var g gathered
				if err := r.Generate(ctx, runner.GenerateRequest{Chat: chat, N: n, Truncate: true, Shift: true}, g.take); err != nil {
					t.Fatalf("%v\n%s", err, log)
				}
				if g.usage == nil || g.usage.PromptTokens == 0 || g.usage.EvalTokens == 0 {
					t.Errorf("usage %+v", g.usage)
				}
				g.usage = nil
				return &g
			}
			if g := say(1, "<think>let me see</think>Hello big world 👋"); g.String() != "[let me see] Hello big world 👋 stop;" || g.chunks < 5 {
				t.Errorf("a thought and an answer in %d chunks: %s", g.chunks, g)
			}
			if g := say(1, "<think>hm</think><tool_call>\n{\"name\":\"weather\",\"arguments\":{\"place\":\"Rome\"}}\n</tool_call>"); g.String() != `[hm]  weather({"place":"Rome"}) stop;` {
				t.Errorf("a call: %s", g)
			}
			if g := say(2, "<think>hm</think>One"); g.String() != "[hm] One stop;[hm] One stop;" {
				t.Errorf("two answers: %s", g)
			}
			var g gathered
			if err := r.Generate(ctx, runner.GenerateRequest{Prompt: "{{text=a b c d}} raw", Chat: &runner.Chat{Options: map[string]any{"num_predict": 2}}, Truncate: true, Shift: true}, g.take); err != nil || g.text[0] != "a b" || g.reasons[0] != "length" {
				t.Errorf("a text: %v %s", err, g.String())
			}
			tokens, err := r.Tokenize(ctx, "some words here", false)
			if err != nil || len(tokens) != 3 {
				t.Errorf("tokens %v %v", tokens, err)
			}
			if text, err := r.Detokenize(ctx, tokens); err != nil || text != "some words here" {
				t.Errorf("their text %q %v", text, err)
			}
			e := runnerOf(t, s, "encoder")
			v, err := e.Embed(ctx, runner.EmbedRequest{Inputs: []string{"one", "two", "one"}, Truncate: true})
			if err != nil || len(v.Vectors) != 3 || !slices.Equal(v.Vectors[0], v.Vectors[2]) || slices.Equal(v.Vectors[0], v.Vectors[1]) || v.PromptTokens != 3 {
				t.Errorf("vectors %+v %v", v, err)
			}
			if err := e.Generate(ctx, runner.GenerateRequest{Chat: question("x")}, g.take); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("a chat with an encoder: %v", err)
			}
			if err := r.Generate(WithHops(ctx, MaxHops), runner.GenerateRequest{Chat: question("x")}, g.take); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("a request in a circle: %v", err)
			}
			leaving, leave := context.WithCancel(ctx)
			err = r.Generate(leaving, runner.GenerateRequest{Chat: question("{{tokens=-1&rate=200}} on"), Truncate: true, Shift: true}, func(runner.Chunk) error { leave(); return nil })
			if fault.CodeOf(err) != fault.Canceled {
				t.Errorf("who left got %v", err)
			}
			b.inFlight(0)
			if strings.Contains(log.String(), secretKey) {
				t.Error("the key is in the log")
			}
		})
	}
}

// A server that is killed: before its first byte another one may answer, after it nobody; once it is back it is found again.
func TestAnotherSluiceIsKilled(t *testing.T) {
	b := newBackend(t, "").withModels()
	s, _ := newServer(t, Config{Name: "back", Kind: Ollama, URL: b.url(), Every: 100 * time.Millisecond})
	run(t, s)
	r := runnerOf(t, s, "thinker")
	failed := make(chan error, 1)
	go func() {
		failed <- r.Generate(context.Background(), runner.GenerateRequest{Chat: question("{{delay=10m}} wait"), Truncate: true, Shift: true}, new(gathered).take)
	}()
	b.inFlight(1)
	b.kill()
	err := <-failed
	if !Unavailable(err) || fault.CodeOf(err) != fault.Busy {
		t.Errorf("killed before the first byte: %v", err)
	}
	s.Failed(err)
	if well(s.Models()) {
		t.Error("it is offered although it is dead")
	}
	b.start()
	r = runnerOf(t, s, "thinker")
	err = r.Generate(context.Background(), runner.GenerateRequest{Chat: question("{{tokens=-1&rate=100}} on"), Truncate: true, Shift: true}, func(runner.Chunk) error { b.kill(); return nil })
	if err == nil || Unavailable(err) || fault.CodeOf(err) != fault.Busy || !strings.Contains(fault.Public(err).Msg, "broke off") {
		t.Errorf("killed in the middle: %v", err)
	}
	eventually(t, s, "its death is noticed", unwell)
	b.start()
	r = runnerOf(t, s, "thinker")
	var g gathered
	if err := r.Generate(t.Context(), runner.GenerateRequest{Chat: question(fakebin.Say("<think>hm</think>back") + " go"), Truncate: true, Shift: true}, g.take); err != nil || g.text[0] != "back" {
		t.Errorf("after the restart: %v %s", err, g.String())
	}
}

func TestAWrongKeyIsForTheOperator(t *testing.T) {
	b := newBackend(t, "")
	s, log := newServer(t, Config{Name: "back", Kind: Ollama, URL: b.url(), Key: "slc_wrong_and_secret"})
	if _, err := s.ask(t.Context()); fault.CodeOf(err) != fault.Internal || Unavailable(err) {
		t.Errorf("%v", err)
	}
	if !strings.Contains(log.String(), "refuses our key") || strings.Contains(log.String(), "slc_wrong_and_secret") {
		t.Errorf("the log says: %s", log)
	}
}

// Two Sluices in a row: clients of the first use the models of the second, and hear when it is gone and when it is back.
func TestTwoSluicesInARow(t *testing.T) {
	back := newBackend(t, "").withModels()
	front := newBackend(t, fmt.Sprintf("remotes: [{name: back, kind: ollama, url: '%s', key: %s}]\n", back.url(), secretKey))
	chat := func(text string) (int, string) {
		return front.call("POST", "/api/chat", map[string]any{"model": "thinker", "stream": false, "messages": []map[string]any{{"role": "user", "content": text}}})
	}
	var last string
	front.until("the models of the other are there", func() bool {
		status, text := chat(fakebin.Say("<think>hm</think>Hi") + " go")
		last = text
		return status == 200
	})
	if !strings.Contains(last, `"content":"Hi"`) || !strings.Contains(last, `"thinking":"hm"`) {
		t.Errorf("through both: %s", last)
	}
	if status, text := front.call("GET", "/api/tags", nil); status != 200 || !strings.Contains(text, `"thinker:latest"`) || !strings.Contains(text, `"encoder:latest"`) {
		t.Errorf("what it lists: %d %s", status, text)
	}
	if status, text := front.call("POST", "/api/embed", map[string]any{"model": "encoder", "input": "x"}); status != 200 {
		t.Errorf("vectors: %d %s", status, text)
	}
	if status, text := front.call("POST", "/api/tokenize", map[string]any{"model": "thinker", "text": "a b c"}); status != 200 || !strings.Contains(text, `"count":3`) {
		t.Errorf("tokens: %d %s", status, text)
	}
	back.kill()
	if status, text := chat("x"); status != 503 {
		t.Errorf("without the other: %d %s", status, text)
	}
	back.start()
	front.until("it is well again", func() bool { status, _ := chat("x"); return status == 200 })
}

// Two Sluices that name each other: neither has the model any more, and a request for it ends.
func TestACircleOfSluices(t *testing.T) {
	a := newBackend(t, "").withModels()
	b := newBackend(t, fmt.Sprintf("remotes: [{name: a, kind: ollama, url: '%s', key: %s}]\n", a.url(), secretKey))
	a.kill()
	settings := fmt.Sprintf("listen: %s\nhome: %s\nremotes: [{name: b, kind: openai, url: '%s', key: %s, models: [thinker]}]\n", a.addr, a.home, b.url(), secretKey)
	if err := os.WriteFile(filepath.Join(a.home, "sluice.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	a.start()
	chat := func() (int, string) {
		return b.call("POST", "/api/chat", map[string]any{"model": "thinker", "stream": false, "messages": []map[string]any{{"role": "user", "content": "x"}}})
	}
	b.until("b answers with a's model", func() bool { status, _ := chat(); return status == 200 })
	if status, text := a.call("DELETE", "/api/delete", map[string]any{"model": "thinker"}); status != 200 {
		t.Fatalf("delete: %d %s", status, text)
	}
	for _, one := range []*backend{a, b} {
		one.until("nobody is told of a model that nobody has", func() bool {
			status, text := one.call("GET", "/api/tags", nil)
			return status == 200 && !strings.Contains(text, "thinker")
		})
	}
	for range 20 {
		if status, text := chat(); status == 200 || status == 0 {
			t.Fatalf("an answer of nobody: %d %s", status, text)
		}
	}
}
