// Command sched measures the scheduler beside Ollama's, and prints the sched.* figures of bench/figures.tsv. dev/bench-sched.sh builds
// the peer and starts it.
//
// The scene: three models of which two fit (ours by limits.memory, Ollama by OLLAMA_MAX_LOADED_MODELS=2), eight clients that take
// requests from one list, 300 in all. Both servers are up all the time and get the list in pieces of sixty, in turn, so that a slower
// moment of the machine meets both.
//
//	which figures there are              main.go
//	the scene of three models            scene.go
//	estimated against allocated bytes    fit.go and its kin
package main
