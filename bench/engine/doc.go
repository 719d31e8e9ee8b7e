// Command engine measures Sluice beside Ollama on the same model files, prompts, flags and threads, and prints the engine.* and
// gateway.* figures of bench/figures.tsv. dev/bench-engine.sh builds the peer and starts it; ONLY=name,… picks figures, PAIRS=n says how
// often each side is measured (5).
//
// Both servers of a figure are up at the same time and are asked in turn, so that a slower moment of the machine meets both. An idle
// server takes no time from the other. All requests have raw prompts, num_thread = the cores, temperature 0 and a fixed seed.
//
//	which figures there are, bounds, exit status   main.go, figures.go
//	starting Ollama and Sluice                     server.go
//	one streamed request and its times             client.go
//	throughput, first token, gap                   scenes.go
//	drafts, grammar, several answers, two models   work.go
//	the gateway alone, before a fake runner        streams.go
//	prompts                                        prompts.go
package main
