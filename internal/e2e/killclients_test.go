package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client asks again and again. Each question has an answer of its own, which the grammar forces.
func (l *loadOf) client(t *testing.T, i int, ask func(context.Context, string) (bool, error), stop <-chan struct{}) {
	for round := 0; ; round++ {
		select {
		case <-stop:
			return
		default:
		}
		// No answer takes this long: who has no end within it has none at all.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		answered, err := ask(ctx, fmt.Sprintf("client %d round %d", i, round))
		cancel()
		switch {
		case err != nil:
			t.Errorf("client %d, round %d: %v", i, round, err)
			return
		case answered:
			l.answers.Add(1)
		default:
			l.failures.Add(1)
			<-time.After(100 * time.Millisecond)
		}
	}
}

// client of the load, apart from the other tests' connections.
var client = &http.Client{Transport: &http.Transport{}}

// long makes an answer of some fifty tokens, so that a kill falls into it.
func long(own string) string {
	return own + strings.Repeat(", and "+own, 3)
}

func schemaOf(own string) object { return object{"type": "string", "enum": []string{long(own)}} }

func (l *loadOf) post(ctx context.Context, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", l.server.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer at all: %w", err)
	}
	return resp, nil
}

// overloaded is Anthropic's 503.
const overloaded = 529

// refused accepts an error in front of the answer: one that tells to try again, with a reason in JSON.
func refused(resp *http.Response) (bool, error) {
	text, err := io.ReadAll(resp.Body)
	var body struct{ Error any }
	if err != nil || json.Unmarshal(text, &body) != nil || body.Error == nil || resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != overloaded {
		return false, fmt.Errorf("%d %q, %v: no error that tells the client to try again", resp.StatusCode, text, err)
	}
	return false, nil
}

// judge holds the text of an answer against what was asked for; what was cut off must be the beginning of it.
func judge(text, own string, ended bool) (bool, error) {
	want := strconv.Quote(long(own))
	if ended && strings.TrimSpace(text) != want || !ended && !strings.HasPrefix(want, strings.TrimSpace(text)) {
		return false, fmt.Errorf("asked for %s, got %q (ended: %t)", want, text, ended)
	}
	return ended, nil
}

func (l *loadOf) nativeStream(ctx context.Context, own string) (bool, error) {
	resp, err := l.post(ctx, "/api/chat", object{
		"model": tiny, "messages": []object{{"role": "user", "content": "Who are you?"}}, "format": schemaOf(own), "options": object{"num_predict": 400},
	})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	text, last := "", ""
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		var line struct {
			Message    struct{ Content string }
			Done       bool
			DoneReason string `json:"done_reason"`
			Error      string
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil || last != "" {
			return false, fmt.Errorf("line %q behind %q: %v", in.Text(), last, err)
		}
		text += line.Message.Content
		if line.Done {
			last = "done: " + line.DoneReason
		} else if line.Error != "" {
			last = "error"
		}
	}
	if in.Err() != nil || last == "" {
		return false, fmt.Errorf("the stream has no end: %q, %w", text, errors.Join(in.Err(), io.ErrUnexpectedEOF))
	}
	return judge(text, own, last != "error")
}

// events reads server-sent events up to the end of the stream.
func events(body io.Reader, each func(event, data string) error) error {
	in := bufio.NewScanner(body)
	in.Buffer(nil, 1<<20)
	event := ""
	for in.Scan() {
		if name, ok := strings.CutPrefix(in.Text(), "event: "); ok {
			event = name
		}
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			if err := each(event, data); err != nil {
				return err
			}
			event = ""
		}
	}
	return in.Err()
}

func (l *loadOf) openaiStream(ctx context.Context, own string) (bool, error) {
	resp, err := l.post(ctx, "/v1/chat/completions", object{
		"model": tiny, "stream": true, "messages": []object{{"role": "user", "content": "Who are you?"}}, "max_tokens": 400,
		"response_format": object{"type": "json_schema", "json_schema": object{"name": "me", "schema": schemaOf(own)}},
	})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	text, finish, failed, done := "", "", false, false
	err = events(resp.Body, func(_, data string) error {
		if done {
			return fmt.Errorf("%q after [DONE]", data)
		}
		if data == "[DONE]" {
			done = true
			return nil
		}
		var chunk struct {
			Error   any
			Choices []struct {
				Delta        struct{ Content string }
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return fmt.Errorf("event %q: %w", data, err)
		}
		failed = failed || chunk.Error != nil
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			finish += c.FinishReason
		}
		return nil
	})
	if err != nil || !failed && (!done || finish == "") {
		return false, fmt.Errorf("the stream has no end: %q, finish %q, done %t, %v", text, finish, done, err)
	}
	return judge(text, own, !failed)
}

func (l *loadOf) whole(ctx context.Context, own string) (bool, error) {
	resp, err := l.post(ctx, "/api/generate", object{
		"model": tiny, "prompt": "Who are you?", "stream": false, "format": schemaOf(own), "options": object{"num_predict": 400},
	})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	var body struct {
		Response string
		Done     bool
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || !body.Done {
		return false, fmt.Errorf("%+v, %v", body, err)
	}
	return judge(body.Response, own, true)
}

const embedText = "A cat sits on the mat."

// vectorOf embeds embedText; nil with an error that tells to try again.
func (l *loadOf) vectorOf(ctx context.Context) ([]float64, error) {
	resp, err := l.post(ctx, "/api/embed", object{"model": embedder, "input": []string{embedText, "Trade and revenue."}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, err := refused(resp)
		return nil, err
	}
	var body struct{ Embeddings [][]float64 }
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || len(body.Embeddings) != 2 {
		return nil, fmt.Errorf("%d vectors, %v", len(body.Embeddings), err)
	}
	return body.Embeddings[0], nil
}

func (l *loadOf) embed(ctx context.Context, _ string) (bool, error) {
	vector, err := l.vectorOf(ctx)
	if vector == nil || err != nil {
		return false, err
	}
	sum := 0.0 // both are normalised
	for i := range vector {
		sum += vector[i] * l.vector[i]
	}
	if sum < 0.999 {
		return false, fmt.Errorf("the same text has another vector: cosine %f", sum)
	}
	return true, nil
}

func (l *loadOf) anthropicStream(ctx context.Context, own string) (bool, error) {
	resp, err := l.post(ctx, "/v1/messages", object{
		"model": tiny, "stream": true, "max_tokens": 60, "messages": []object{{"role": "user", "content": "Count from one to twenty for " + own}},
	})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	last := ""
	err = events(resp.Body, func(event, data string) error {
		if last == "message_stop" || last == "error" {
			return fmt.Errorf("%s %q after %s", event, data, last)
		}
		last = event
		return nil
	})
	if err != nil || last != "message_stop" && last != "error" {
		return false, fmt.Errorf("the stream has no end: last event %q, %v", last, err)
	}
	return last == "message_stop", nil
}
