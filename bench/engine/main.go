package main

import "sluice/bench/beside"

// The models, by the names that they get.
var files = map[string]string{
	"q05":  "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
	"smol": "smollm2-135m-instruct-q4_1.gguf",
}

// scenes in an order that starts servers anew as seldom as possible.
var scenes = []beside.Scene{
	{Name: "engine.single_vs_ollama", Run: single},
	{Name: "engine.four_vs_ollama_default", Run: many(4, 4, 1)},
	{Name: "engine.four_vs_ollama_parallel4", Run: many(4, 4, 4)},
	{Name: "engine.gap_vs_ollama", Run: gap},
	{Name: "engine.nbest4", Run: nbest},
	{Name: "engine.prefix_ttft", Run: prefix},
	{Name: "engine.lookup_repair", Run: lookup(repairs, "expect")},
	{Name: "engine.lookup_elsewhere", Run: lookup(elsewhere, "auto")},
	{Name: "engine.grammar_ms", Run: grammar},
	{Name: "engine.eight_vs_ollama_parallel8", Run: many(8, 8, 8)},
	{Name: "engine.two_models_in_turn", Run: twoModels},
	{Name: "gateway.streams", Run: streams},
}

func main() { beside.Main(files, scenes, "engine.", "gateway.") }
