// Package config is what an operator can set: the file, SLUICE_* and OLLAMA_* variables, and defaults.
//
// Order of precedence: flags (cmd/sluice applies them), SLUICE_*, OLLAMA_* where Ollama has the same setting, the
// file, defaults. An unknown key is an error with its line; all mistakes are reported at once. The environment is
// handed in as a function: only cmd reads the real one.
//
//	the settings and their defaults        config.go
//	the file: unknown keys, ${VARIABLES}   file.go
//	SLUICE_* and OLLAMA_* variables        env.go
//	what is refused                        validate.go, databases.go
//	addresses: host:port, loopback         address.go
package config
