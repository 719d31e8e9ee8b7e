package remote

import (
	"encoding/json"
	"maps"

	"sluice/runner"
)

// perRequest are the options that a server elsewhere is told. Those of the load, but for the context, are for its operator to choose.
var perRequest = []string{
	"num_ctx", "num_keep", "num_predict", "seed", "stop", "temperature", "top_k", "top_p", "min_p", "typical_p",
	"repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty",
}

// options are those of a request, under Ollama's names. What the caller did not ask for is not there: the server knows its model's own.
func options(req runner.GenerateRequest) map[string]any {
	given := sampling(req)
	if req.Chat != nil {
		given = req.Chat.Options
	}
	out := map[string]any{}
	for _, name := range perRequest {
		if v := given[name]; v != nil {
			out[name] = v
		}
	}
	return out
}

// sampling writes the options of a request that did not come with its caller's own.
func sampling(req runner.GenerateRequest) map[string]any {
	s := req.Sampling
	out := map[string]any{
		"temperature": s.Temperature, "top_k": s.TopK, "top_p": s.TopP, "min_p": s.MinP, "typical_p": s.TypicalP, "repeat_last_n": s.RepeatLastN,
		"repeat_penalty": s.RepeatPenalty, "presence_penalty": s.PresencePenalty, "frequency_penalty": s.FrequencyPenalty,
	}
	if s.Seed >= 0 {
		out["seed"] = s.Seed
	}
	if req.NumPredict > 0 {
		out["num_predict"] = req.NumPredict
	}
	if len(req.Stop) > 0 {
		out["stop"] = req.Stop
	}
	return out
}

// integer reads what JSON or Go code gives for a whole number.
func integer(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case float64:
		return int(n), true
	case json.Number:
		i, err := n.Int64()
		return int(i), err == nil
	}
	return 0, false
}

// ofAnswer are the options for the i-th of several answers that are asked for one by one: with one seed they would all be the same.
func ofAnswer(options map[string]any, i int) map[string]any {
	seed, ok := integer(options["seed"])
	if i == 0 || !ok || seed < 0 {
		return options
	}
	options = maps.Clone(options)
	options["seed"] = seed + i
	return options
}
