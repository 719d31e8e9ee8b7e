// Package e2e tests the whole program: the two binaries, a real model, real clients, a real database and a real lake.
// It needs what `make test` prepares: SLUICE_TEST_BIN (the binaries), SLUICE_TEST_MODELS (GGUF files), SLUICE_TEST_PYTHON
// (with the ollama client, pyarrow and duckdb), SLUICE_TEST_POSTGRES and SLUICE_TEST_PGBIN (a server, psql). What is missing
// fails the tests; nothing is skipped.
//
//	starting a server, calling it    server_test.go
//	Ollama clients, the runner       models_test.go
//	questions, the gate, the lake    data_test.go
//	a database as a model            ask_test.go
//	keys, exit codes, the binaries   program_test.go
//	PostgreSQL: values, rights       postgres_test.go
//	cancelled, away, asked           postgres_life_test.go
package e2e
