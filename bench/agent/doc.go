// Command agent measures the answers to questions about databases, and prints the agent.* figures of bench/figures.tsv.
// dev/bench-agent.sh starts it; SET names the question set.
//
// Each model answers the whole set twice on one server, with the plain prompt and as the agent that serves people does; the
// score is agent/eval's. Temperatures and seeds are the agent's own: 0 and seed 1 for the plain prompt and the first
// statement, 0.7 and seed 2 for the others.
//
//	which figures there are               main.go
//	the runs, and going on after a kill   runs.go
//	the model, over HTTP                  remote.go
//	cold: how long an answer takes        latency.go
//	warm: what is read again              prefix.go
package main
