// Package tinygguf makes tiny GGUF models with random weights: a few hundred kilobytes that a real engine loads in
// milliseconds. They stand in where the job needs a kind of model that has no small public file: vision, thinking, LoRA,
// reranking, and architectures that llama.cpp cannot load. Their answers mean nothing, but they are answers of the real code.
//
// The same seed gives the same bytes. `go run ./internal/tinygguf/write FOLDER` writes them all.
//
//	the list of models            models.go
//	the file format               file.go
//	vocabularies                  vocab.go
//	decoders: llama, qwen2, olmo3 decoder.go
//	one that thinks               think.go
//	a LoRA adapter                lora.go
//	encoders, a reranker          encoder.go
//	a projector, a vision model   vision.go
package tinygguf
