package engine

import (
	"context"
	"runtime"
	"slices"

	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
	"sluice/runner"
)

//go:generate go run sluice/internal/archlist architectures.go

// fallback gives the engine that loads what llama.cpp cannot, or nil where llama.cpp shall try. Engine.Load hands it the
// request, and all later calls.
//
// The file's facts decide: an architecture that llama.cpp does not know, or Ollama's layout of models that see, with the
// vision tensors inside the file, which llama.cpp refuses for tensors it has no use for.
func fallback(facts fileFacts, _ runner.LoadRequest) runner.Engine {
	known := slices.Contains(llamaArchitectures, facts.arch)
	why, unfit := unfitArchitectures[facts.arch]
	switch {
	case unfit:
		return refused{arch: facts.arch, why: why}
	case known && !facts.seesInside():
		return nil
	case slices.Contains(moduleArchitectures, facts.moduleName()):
		return newModule(facts)
	case known:
		return nil // it will say what it does not like
	}
	return refused{arch: facts.arch, why: "neither llama.cpp nor the fallback engine of this version knows it"}
}

// unfitArchitectures are no models that answer token by token or embed, whoever may have a name for them. llama.cpp loads some, and
// aborts, or talks nonsense, when they are used like the others.
var unfitArchitectures = map[string]string{
	"clip":             "it is a projector of images, to be named beside a model",
	"mllama_vision":    "it is a projector of images for a layout that Ollama gave up; fetch the model anew",
	"t5":               "it reads with an encoder first, which is not built here",
	"wavtokenizer-dec": "it makes sound",
	"whisper":          "it reads sound",
	"dream":            "it is a diffusion model",
	"llada":            "it is a diffusion model",
	"llada-moe":        "it is a diffusion model",
	"rnd1":             "it is a diffusion model",
	"stable-diffusion": "it makes images",
	"flux":             "it makes images",
}

// secondTry gives the engine for a file that llama.cpp refused although it knows the architecture, or nil. Ollama's layouts of some
// have other tensors than llama.cpp's: of those that Ollama itself never gives to llama.cpp.
func secondTry(facts fileFacts) runner.Engine {
	kv := ggml.KV{"general.architecture": facts.arch}
	if !kv.OllamaEngineRequired() || !slices.Contains(moduleArchitectures, facts.moduleName()) {
		return nil
	}
	return newModule(facts)
}

// seesInside says whether the file has the tensors of a vision encoder too, as Ollama converts models that see.
func (f fileFacts) seesInside() bool { return f.of("vision.block_count") > 0 }

// moduleName is the architecture as the module's registry has it: one that pools is another model there.
func (f fileFacts) moduleName() string {
	if f.of("pooling_type") > 0 {
		return f.arch + "_embed"
	}
	return f.arch
}

// refused is the engine of an architecture that nothing here can load.
type refused struct{ arch, why string }

func (r refused) err() error {
	return fault.New(fault.Invalid, "engine.Load", "a model of the architecture %q cannot be loaded: %s (docs/MODELS.md lists those that can)", r.arch, r.why)
}

func (r refused) Load(context.Context, runner.LoadRequest, func(float32)) (runner.LoadReport, error) {
	return runner.LoadReport{}, r.err()
}

func (r refused) Generate(context.Context, runner.GenerateRequest, func(runner.Chunk) error) error {
	return r.err()
}

func (r refused) Embed(context.Context, runner.EmbedRequest) (runner.EmbedResponse, error) {
	return runner.EmbedResponse{}, r.err()
}

func (r refused) Rerank(context.Context, runner.RerankRequest) (runner.RerankResponse, error) {
	return runner.RerankResponse{}, r.err()
}

func (r refused) Tokenize(context.Context, string, bool) ([]int, error) { return nil, r.err() }

func (r refused) Detokenize(context.Context, []int) (string, error) { return "", r.err() }

func (r refused) SetThreads(context.Context, int) error { return r.err() }

func (r refused) Ping(context.Context) error { return r.err() }

// someThreads is how many threads to compute with: more than there are cores would wait for each other in spin loops.
func someThreads(asked int) int {
	if asked <= 0 || asked > runtime.NumCPU() {
		return runtime.NumCPU()
	}
	return asked
}
