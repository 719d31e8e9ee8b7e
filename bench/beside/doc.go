// Package beside measures Sluice beside Ollama: it starts both on the same model files, sends requests, and holds what was measured
// to the bounds of bench/figures.tsv. The commands beside it say what is measured.
//
// Both servers of a figure are up at the same time and are asked in turn, so that a slower moment of the machine meets both. An idle
// server takes no time from the other. All requests have raw prompts, num_thread = the cores, temperature 0 and a fixed seed.
//
//	flags, exit status                    run.go
//	names and bounds, medians             figures.go
//	starting Ollama and Sluice            server.go
//	one streamed request and its times    client.go
package beside
