# The few commands that everybody uses. `make` alone lists them.
#
# llama.cpp is compiled only for bin/sluice-runner (package runner/engine). Everything else builds without it.

SHELL := bash
CACHE := $(or $(SLUICE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sluice)
PYTHON := $(CACHE)/venv/bin/python

# -O3 -march=native: as fast as the per-CPU libraries that the module's cmake builds, 5 times the plain build.
# GGML_USE_CPU_REPACK: the module's cgo flags leave it out; it is worth 1.5-1.9 times on Q4_K models (docs/decisions/0003).
ENGINE := CGO_CPPFLAGS="-I$(CACHE)/include -DGGML_USE_CPU_REPACK" CGO_CFLAGS="-O3 -march=native" CGO_CXXFLAGS="-O3 -march=native"
ENGINE_PKGS := ./runner/engine/... ./cmd/sluice-runner/...
PLAIN_PKGS = $(or $(shell go list ./... | grep -vE '/(runner/engine|cmd/sluice-runner|internal/e2e)(/|$$)'),$(error go list found no packages))

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# lazy: NVML's functions are found when the driver is there; bound at the start, a machine without one could not run the program
LDFLAGS := -X main.version=$(VERSION) -extldflags "-Wl,-z,lazy"

# What tests find: real models, an independent Python, the two binaries.
TESTENV = SLUICE_TEST_MODELS="$(CACHE)/models" SLUICE_TEST_PYTHON="$(PYTHON)" SLUICE_TEST_BIN="$(CURDIR)/bin" SLUICE_TEST_CLIENTS="$(CACHE)"

.PHONY: e2e test-api help demo run build gateway engine engine-test setup check test test-long generate clean

help:
	@echo 'make demo       install what is missing, build, fetch a small model, and show the main job'
	@echo 'make run        leave a server up (prints its URL, its admin key and curl lines)'
	@echo 'make test       install and start everything the tests need, and run them'
	@echo 'make check      seconds: format, vet, imports, unit tests; no server, no llama.cpp'
	@echo 'make test-long  what takes longer: fuzzing, crash loops, the small model on the 60 core questions'
	@echo 'make bench-engine  beside Ollama on the same model: tokens per second, time to first token, 40 minutes'
	@echo 'make bench-sched   beside Ollama with more models than fit: time to first token, loads; estimated memory, 20 minutes'
	@echo 'make bench-gate    the SQL gate beside its parser alone, statements seen before and huge ones, the audit ledger, 2 minutes'
	@echo 'make bench-agent   answers about databases beside the plain prompt: right, declined, leaks, seconds; SET=folder, hours'
	@echo 'make bench-rag     searching 50,000 vectors in PostgreSQL with a filter: what the index finds, milliseconds, 2 minutes'
	@echo 'make build      bin/sluice and bin/sluice-runner'
	@echo 'make generate   the generated files (SQL function lists, architectures, docs/MODELS.md)'
	@echo 'make clean      remove bin/ and the demo'

demo: build
	@dev/demo.sh

run: build
	@dev/run.sh

setup:
	@dev/setup.sh

build: gateway engine

gateway: setup
	@. dev/_lib.sh; mkdir -p bin; slowly "building bin/sluice (DuckDB's binding and the SQL grammar take 2 minutes the first time)" \
	  go build -ldflags '$(LDFLAGS)' -o bin/sluice ./cmd/sluice

engine: setup
	@. dev/_lib.sh; mkdir -p bin; slowly "building bin/sluice-runner (llama.cpp takes about 5 minutes on two cores the first time)" \
	  env $(ENGINE) go build -ldflags '$(LDFLAGS)' -o bin/sluice-runner ./cmd/sluice-runner

check:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet $(PLAIN_PKGS)
	$(TESTENV) go test -skip '^TestReal' $(PLAIN_PKGS)

test: build
	@dev/setup.sh clients
	@dev/models.sh qwen2.5-coder:0.5b smollm2:135m all-minilm >/dev/null
	@$(TESTENV) dev/test.sh

engine-test:
	$(TESTENV) $(ENGINE) go test -count=1 -timeout 20m $(ENGINE_PKGS)

test-long: build
	@dev/setup.sh clients
	@dev/models.sh qwen2.5-coder:0.5b smollm2:135m all-minilm >/dev/null
	@$(TESTENV) dev/test-long.sh

# One end-to-end test: make e2e RUN=TestKilledRunner
e2e: build
	@dev/setup.sh clients
	@dev/models.sh qwen2.5-coder:0.5b smollm2:135m all-minilm >/dev/null
	@. dev/_lib.sh; . dev/_postgres.sh; test_postgres; $(TESTENV) go test -count=1 -timeout 30m ./internal/e2e -run '$(RUN)' -v

# Random requests against every route of the API, by a program of its own (schemathesis), as a reader and as a stranger: 3 minutes.
test-api: build
	@dev/schemathesis.sh

# Beside Ollama, built from the same module with the same flags, alternating in one run. ONLY=figure,… for a part.
bench-engine: build
	@dev/models.sh qwen2.5-coder:0.5b smollm2:135m >/dev/null
	@dev/bench-engine.sh

# Three models of which two fit, beside Ollama; estimated against allocated memory. ONLY=figure,… for a part.
bench-sched: build
	@dev/models.sh qwen2.5-coder:0.5b qwen2.5-coder:1.5b smollm2:135m gemma3:270m all-minilm >/dev/null
	@dev/bench-sched.sh

# The gate beside its parser alone; verifying a million entries of the ledger. ONLY=figure,… for a part.
bench-gate: setup
	@dev/bench-gate.sh

# The agent beside the plain prompt, both models, on SET=folder; ONLY=figure,… SIZES=small TAGS=core for a part, KEEP=folder to go on later.
bench-agent: build
	@test -n "$(SET)" || { echo 'SET is the folder of the question set (the form is in testdata/nl2sql/README.md): make bench-agent SET=…'; exit 1; }
	@dev/models.sh qwen2.5-coder:0.5b qwen2.5-coder:1.5b >/dev/null
	@SET='$(SET)' dev/bench-agent.sh

# 50,000 vectors in PostgreSQL, searched with a filter that keeps 1 %: recall and time of the index.
bench-rag: setup
	@dev/bench-rag.sh

# Targets of the contract that come with later steps of the work.
bench-%:
	@echo "make $@ is not there in this version"; exit 1
cuda console docs:
	@echo "make $@ is not there in this version"; exit 1
.PHONY: cuda console docs

generate: engine
	go generate ./sqlguard/... ./database/... ./runner/engine
	bin/sluice-runner probe --markdown >docs/MODELS.md

clean:
	rm -rf bin .demo
