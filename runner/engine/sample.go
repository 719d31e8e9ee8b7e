package engine

import (
	"fmt"
	"runtime"

	"github.com/ollama/ollama/llama"

	"sluice/runner"
)

// randomSeed lets llama.cpp draw a seed.
const randomSeed = 0xFFFFFFFF

// samplingParams are Ollama's options as llama.cpp takes them. Values outside of what the samplers expect are brought to the
// nearest that they do: some would divide by zero or leave no candidate, which aborts.
func samplingParams(s runner.Sampling, grammar string, numCtx int) llama.SamplingParams {
	p := llama.SamplingParams{
		TopK: max(s.TopK, 0), TopP: clamp(s.TopP), MinP: clamp(s.MinP), TypicalP: clamp(s.TypicalP), Temp: max(s.Temperature, 0),
		RepeatLastN: s.RepeatLastN, PenaltyRepeat: s.RepeatPenalty, PenaltyFreq: s.FrequencyPenalty, PenaltyPresent: s.PresencePenalty,
		Seed: uint32(s.Seed), Grammar: grammar,
	}
	if s.Seed == -1 {
		p.Seed = randomSeed
	}
	if p.TypicalP == 0 {
		p.TypicalP = 1 // 0 would keep the single most typical token, which is not even the most likely
	}
	if p.PenaltyRepeat <= 0 {
		p.PenaltyRepeat = 1
	}
	if p.RepeatLastN < 0 || p.RepeatLastN > numCtx {
		p.RepeatLastN = numCtx // there is nothing older, and llama.cpp allocates as many tokens as it is told
	}
	if p.PenaltyRepeat == 1 && p.PenaltyFreq == 0 && p.PenaltyPresent == 0 {
		p.RepeatLastN = 0 // 0.9 ms per token saved
	}
	return p
}

func clamp(p float32) float32 { return min(max(p, 0), 1) }

// sampler keeps the last sampling context. They are freed by finalizers only, 1.8 MB of C memory each that Go's collector
// does not see, so one is used again where the parameters are the same, and the collector is asked now and then.
type sampler struct {
	*llama.SamplingContext
	params llama.SamplingParams
	made   int
}

// collectEvery bounds the garbage: so many sampling contexts may wait for their finalizers.
const collectEvery = 16

// prepare makes the sampler ready for an answer to the prompt. The prompt counts for the penalties, as in Ollama.
func (s *sampler) prepare(model *llama.Model, params llama.SamplingParams, prompt []int) error {
	if s.SamplingContext != nil && s.params == params {
		s.Reset()
	} else {
		made, err := llama.NewSamplingContext(model, params)
		if err != nil {
			return fmt.Errorf("engine: %w", err)
		}
		s.SamplingContext, s.params = made, params
		if s.made++; s.made%collectEvery == 0 {
			runtime.GC()
		}
	}
	for _, id := range prompt[len(prompt)-min(len(prompt), params.RepeatLastN):] {
		s.Accept(id, false)
	}
	return nil
}
