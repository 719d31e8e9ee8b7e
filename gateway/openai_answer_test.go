package gateway

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
)

// Whatever the pieces of n answers and their order, the chunks of a stream add up to the answer that is not streamed.
func TestTheChunksOfAChatAddUpToTheWhole(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rnd.IntN(3)
		req := &openaiChatRequest{Logprobs: rnd.IntN(2) == 0}
		req.N = &n
		var turns []turn
		calls := make([]int, n)
		for range rnd.IntN(12) {
			i := rnd.IntN(n)
			tr := turn{index: i}
			if rnd.IntN(3) == 0 {
				tr.thinking = fmt.Sprintf("t%d 👋", rnd.IntN(100))
			}
			if rnd.IntN(2) == 0 {
				tr.content = fmt.Sprintf("c%d ñ", rnd.IntN(100))
				tr.logprobs = []api.Logprob{{TokenLogprob: api.TokenLogprob{Token: tr.content, Logprob: -rnd.Float64()}}}
			}
			if rnd.IntN(4) == 0 {
				call := api.ToolCall{ID: fmt.Sprintf("call_%d_%d", i, calls[i]), Function: api.ToolCallFunction{Index: calls[i], Name: "f"}}
				call.Function.Arguments.Set("a<b", calls[i])
				tr.calls = []api.ToolCall{call}
				calls[i]++
			}
			turns = append(turns, tr)
		}
		for _, i := range rnd.Perm(n) {
			turns = append(turns, turn{index: i, end: &turnEnd{reason: []string{"stop", "length"}[rnd.IntN(2)], called: calls[i] > 0}})
		}

		whole, stream := newChatAnswers(req, "fp", 1), newChatAnswers(req, "fp", 1)
		added := make([]map[string]any, n)
		for _, tr := range turns {
			if err := whole.take(tr); err != nil {
				t.Fatal(err)
			}
			for _, chunk := range stream.chunks(tr) {
				b, err := marshal(chunk)
				if err != nil {
					t.Fatal(err)
				}
				addChunk(t, added, object(t, b))
			}
		}
		if err := whole.missing(); err != nil {
			t.Fatal(err)
		}
		b, err := marshal(whole.whole())
		if err != nil {
			t.Fatal(err)
		}
		v := object(t, b)
		for i := range n {
			choice := dig(v, "choices", i)
			want := map[string]any{"role": "assistant", "content": "", "reasoning": "", "tool_calls": []any(nil), "tokens": "", "end": dig(choice, "finish_reason")}
			if text, ok := dig(choice, "message", "content").(string); ok {
				want["content"] = text
			}
			if text, ok := dig(choice, "message", "reasoning").(string); ok {
				want["reasoning"] = text
			}
			if list, ok := dig(choice, "message", "tool_calls").([]any); ok {
				want["tool_calls"] = list
			}
			want["tokens"] = tokens(choice)
			if !reflect.DeepEqual(added[i], want) {
				t.Errorf("seed %d, answer %d: the chunks add up to\n%v\nthe whole is\n%v", seed, i, added[i], want)
			}
		}
	}
}

// addChunk adds a chunk to its answer as clients do.
func addChunk(t testing.TB, answers []map[string]any, chunk map[string]any) {
	t.Helper()
	choice := dig(chunk, "choices", 0)
	i := int(dig(choice, "index").(float64))
	delta, _ := dig(choice, "delta").(map[string]any)
	if answers[i] == nil {
		if delta["role"] != "assistant" {
			t.Fatalf("the first chunk of an answer has no role: %v", chunk)
		}
		answers[i] = map[string]any{"role": "assistant", "content": "", "reasoning": "", "tool_calls": []any(nil), "tokens": "", "end": nil}
	} else if delta["role"] != nil {
		t.Fatalf("a role in mid-stream: %v", chunk)
	}
	a := answers[i]
	if a["end"] != nil {
		t.Fatalf("a chunk behind the end of its answer: %v", chunk)
	}
	for _, field := range []string{"content", "reasoning"} {
		if text, ok := delta[field].(string); ok {
			a[field] = a[field].(string) + text
		}
	}
	if list, ok := delta["tool_calls"].([]any); ok {
		a["tool_calls"] = append(a["tool_calls"].([]any), list...)
	}
	a["tokens"] = a["tokens"].(string) + tokens(choice)
	a["end"] = dig(choice, "finish_reason")
}

func tokens(choice any) string {
	var b strings.Builder
	list, _ := dig(choice, "logprobs", "content").([]any)
	for _, l := range list {
		fmt.Fprintf(&b, "%v=%v;", dig(l, "token"), dig(l, "logprob"))
	}
	return b.String()
}

func TestAPieceOfNoAnswerIsABug(t *testing.T) {
	answers := newChatAnswers(&openaiChatRequest{}, "fp", 1)
	for _, i := range []int{-1, 1} {
		if err := answers.take(turn{index: i}); err == nil {
			t.Errorf("answer %d was taken", i)
		}
	}
	if answers.missing() == nil {
		t.Error("an answer without an end passes for whole")
	}
}

func TestAnImpossibleTokenHasAFormInJSON(t *testing.T) {
	for _, x := range []float64{math.Inf(-1), math.NaN()} {
		if got := logarithm(x); got != -9999 {
			t.Errorf("%v became %v", x, got)
		}
	}
	if got := logarithm(-0.5); got != -0.5 {
		t.Error(got)
	}
}

func TestIDsDoNotComeTwice(t *testing.T) {
	seen := map[string]bool{}
	for range 10000 {
		id := newID("x-")
		if seen[id] || len(id) < 20 {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}
