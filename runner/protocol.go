package runner

import (
	"time"

	"github.com/ollama/ollama/api"
)

// readyLine is what a child writes to stdout once its socket listens. The number is the protocol's: a parent refuses
// a child of another version at once, instead of misreading it later.
const readyLine = "sluice-runner ready 3"

// Paths of the calls, all POST. Load and generate answer with a stream, the others with one JSON object; a failed call
// answers with a failure and a status that is not 200.
const (
	pathLoad       = "/load"       // LoadRequest → LoadEvent…
	pathGenerate   = "/generate"   // GenerateRequest → Chunk…
	pathEmbed      = "/embed"      // EmbedRequest → EmbedResponse
	pathRerank     = "/rerank"     // RerankRequest → RerankResponse
	pathTokenize   = "/tokenize"   // textBody → tokensBody
	pathDetokenize = "/detokenize" // tokensBody → textBody
	pathThreads    = "/threads"    // threadsBody → {}
	pathPing       = "/ping"       // {} → {}, answered between two batches
)

type textBody struct {
	Text    string `json:"text"`
	Special bool   `json:"special,omitempty"` // add the tokens that the tokenizer puts around a text
}

type threadsBody struct {
	Threads int `json:"threads"`
}

type tokensBody struct {
	Tokens []int `json:"tokens"`
}

type failure struct {
	Error *WireError `json:"error"`
}

// LoadRequest says what a child shall load. A child loads one model in its life.
type LoadRequest struct {
	ModelPath      string   `json:"model_path"`
	Adapters       []string `json:"adapters,omitempty"`  // LoRA files, applied at scale 1
	Projector      string   `json:"projector,omitempty"` // file that turns images into embeddings; "" none or inside the model file
	NumCtx         int      `json:"num_ctx"`             // tokens of one sequence
	Parallel       int      `json:"parallel"`            // sequences that are computed in one batch
	NumBatch       int      `json:"num_batch"`           // tokens of one decode call
	NumThread      int      `json:"num_thread,omitempty"`
	Placement      []Share  `json:"placement,omitempty"` // GPUs that get layers, in the order of the layers; the rest, and all without one, is in main memory
	UseMmap        bool     `json:"use_mmap"`
	KVCacheType    string   `json:"kv_cache_type,omitempty"`   // f16 (default), q8_0, q4_0
	FlashAttention string   `json:"flash_attention,omitempty"` // "", "on", "off"; "" lets the engine choose
}

// Share is a run of layers on one device. The shares of a model of n blocks get its last blocks, in order, the first share those
// nearest to the input. Only when they have n+1 layers together do they get the whole model: the output is one more layer behind the
// last block, and the last to go to a GPU (with n or less it is in main memory, as llama.cpp has it). The input is always there. A device that is not there, one that is
// named twice, and more layers than the model has are Invalid. A projector goes to the first share's device.
type Share struct {
	Device string `json:"device"` // Device.ID
	Layers int    `json:"layers"`
}

// CPU is the id of the device that main memory and the cores are.
const CPU = "cpu"

// Device is something that a model can be loaded on, as the engine names it.
type Device struct {
	ID         string `json:"id"`                   // of ggml's backend: "CUDA0", "Vulkan0"; CPU
	Name       string `json:"name,omitempty"`       // "NVIDIA H200"
	Library    string `json:"library"`              // cpu, cuda, …
	PCI        string `json:"pci,omitempty"`        // bus id, such as "0000:1b:00.0"
	Integrated bool   `json:"integrated,omitempty"` // a GPU without memory of its own
	TotalBytes uint64 `json:"total_bytes"`          // 0: not known
	FreeBytes  uint64 `json:"free_bytes"`           // at the time of the reading
	Threads    int    `json:"threads,omitempty"`    // cores, of CPU
}

// DeviceMemory is what a model takes on one device, in bytes.
type DeviceMemory struct {
	Device  string `json:"device"`
	Weights uint64 `json:"weights"` // tensors of the model, adapters and projector, repacked copies too
	KV      uint64 `json:"kv"`      // caches of all sequences
	Compute uint64 `json:"compute"` // buffers of the graphs
}

// Bytes is the sum.
func (m DeviceMemory) Bytes() uint64 { return m.Weights + m.KV + m.Compute }

// LoadReport is what the child says about the loaded model.
type LoadReport struct {
	Backend   string         `json:"backend"`   // "llama", or "ollama" for architectures that llama.cpp cannot load
	Parallel  int            `json:"parallel"`  // sequences, as allocated
	Vision    bool           `json:"vision"`    // it takes images
	Reranks   bool           `json:"reranks"`   // it scores pairs of texts: it neither generates nor embeds
	NumCtx    int            `json:"num_ctx"`   // as allocated, per sequence
	TrainCtx  int            `json:"train_ctx"` // the model's trained length, 0 unknown
	Embedding int            `json:"embedding"` // width of an embedding
	Pooled    bool           `json:"pooled"`    // the model pools by itself (an encoder): it embeds, it cannot generate
	Memory    []DeviceMemory `json:"memory"`    // as allocated, a line for each device that has any of it
	Took      time.Duration  `json:"took"`
	Chats     bool           `json:"-"` // it runs elsewhere and renders by itself, see GenerateRequest.Chat; NumCtx may be 0, which is not known
}

// Bytes is what the model takes on all devices.
func (r LoadReport) Bytes() (all uint64) {
	for _, m := range r.Memory {
		all += m.Bytes()
	}
	return all
}

// GPUBytes is the part of Bytes that lies outside of main memory.
func (r LoadReport) GPUBytes() (all uint64) {
	for _, m := range r.Memory {
		if m.Device != CPU {
			all += m.Bytes()
		}
	}
	return all
}

// LoadEvent is a line of a load's stream. The last one has Report or Error.
type LoadEvent struct {
	Progress float32     `json:"progress"` // 0..1
	Report   *LoadReport `json:"report,omitempty"`
	Error    *WireError  `json:"error,omitempty"`
}

// Sampling has Ollama's options with Ollama's names; the caller fills the defaults.
type Sampling struct {
	Temperature      float32 `json:"temperature"`
	TopK             int     `json:"top_k"`
	TopP             float32 `json:"top_p"`
	MinP             float32 `json:"min_p"`
	TypicalP         float32 `json:"typical_p"` // 1 is off; 0 would keep a single token (reference: measured on the package)
	RepeatLastN      int     `json:"repeat_last_n"`
	RepeatPenalty    float32 `json:"repeat_penalty"`
	PresencePenalty  float32 `json:"presence_penalty"`
	FrequencyPenalty float32 `json:"frequency_penalty"`
	Seed             int     `json:"seed"` // -1 random
}

// GenerateRequest asks for a completion of a rendered prompt.
type GenerateRequest struct {
	Prompt      string   `json:"prompt"`
	Images      [][]byte `json:"images,omitempty"` // encoded files; the n-th stands where the prompt has [img-n]
	NumPredict  int      `json:"num_predict"`      // tokens; negative: until the model ends or the context is full
	NumKeep     int      `json:"num_keep"`
	Stop        []string `json:"stop,omitempty"`
	Schema      string   `json:"schema,omitempty"`  // JSON Schema of the answer; `null` means any JSON; "" unconstrained
	Grammar     string   `json:"grammar,omitempty"` // GBNF of the answer with a rule "root"; not together with Schema
	After       string   `json:"after,omitempty"`   // Schema or Grammar bind only behind this text of the answer, such as "</think>"
	Truncate    bool     `json:"truncate"`          // cut a prompt that exceeds the context, keeping num_keep and the tail; else an error
	Shift       bool     `json:"shift"`             // go on when the context is full by dropping the older half; else end with "length"
	Logprobs    bool     `json:"logprobs,omitempty"`
	TopLogprobs int      `json:"top_logprobs,omitempty"` // 0..20 alternatives for each token
	N           int      `json:"n,omitempty"`            // answers from one reading of the prompt; 0 is 1
	Draft       Draft    `json:"draft,omitempty"`
	Owner       string   `json:"owner,omitempty"` // opaque: whose request it is; Usage.CachedTokens tells of what the same owner had read. "" nobody
	Sampling    Sampling `json:"sampling"`

	// Chat is what Prompt was rendered from. A child does not get it; a runner whose report says Chats answers it instead of Prompt,
	// Images, Schema and After, and tells thinking and calls apart by itself. Without messages it is a text: Prompt goes as it is.
	Chat *Chat `json:"-"`
}

// Chat is a request before it was rendered, for runners that render by themselves.
type Chat struct {
	Messages []api.Message
	Tools    api.Tools
	Think    *api.ThinkValue
	Format   string // JSON Schema; "null" any JSON; "" none

	// Options are those of the request, with Ollama's names, instead of Sampling, Stop and NumPredict: what is not in them is for
	// the server to choose, which knows its model's own.
	Options map[string]any
	Force   *ForcedCall // the answer must be a call; nil: the model decides
}

// ForcedCall is a call that a request requires.
type ForcedCall struct {
	Tool   string // of this tool; "" any
	Schema string // JSON Schema of {"name": …, "arguments": …}, for servers that know no required calls
}

// Draft says whether tokens are guessed from what the prompt and the answer repeat, and checked several in one batch. The
// text is the same either way; only its speed differs.
type Draft string

const (
	DraftAuto   Draft = ""       // where it has paid so far in this answer
	DraftOff    Draft = "off"    // never
	DraftExpect Draft = "expect" // the answer will repeat much of the prompt, as the repair of a statement does
)

// Chunk is a line of a generation's stream. Exactly the last one has Done or Error. A chunk with DoneReason ends the answer
// Index; of several answers only the end of the last has Done and Usage.
type Chunk struct {
	Index      int        `json:"index,omitempty"`    // which of N answers
	Text       string     `json:"text,omitempty"`     // whole UTF-8 characters
	Logprobs   []Logprob  `json:"logprobs,omitempty"` // of the tokens drawn since the answer's last chunk
	Done       bool       `json:"done,omitempty"`
	DoneReason string     `json:"done_reason,omitempty"` // stop, length
	Stop       string     `json:"stop,omitempty"`        // with reason stop: the request's stop text that ended it; "" the model ended it
	Usage      *Usage     `json:"usage,omitempty"`
	Error      *WireError `json:"error,omitempty"`

	Thinking string         `json:"-"` // of a runner that Chats
	Calls    []api.ToolCall `json:"-"` // of a runner that Chats
}

// Logprob is the natural logarithm of a token's probability, before any sampling option (temperature 1, all candidates).
type Logprob struct {
	Token   string    `json:"token"` // as text; broken UTF-8 as U+FFFD
	Bytes   []byte    `json:"bytes"`
	Logprob float64   `json:"logprob"`
	Top     []Logprob `json:"top,omitempty"` // most likely first
}

// Usage counts what a request cost.
type Usage struct {
	PromptTokens   int           `json:"prompt_tokens"`
	CachedTokens   int           `json:"cached_tokens"` // of the prompt, taken from the prefix cache
	Truncated      bool          `json:"truncated,omitempty"`
	PromptDuration time.Duration `json:"prompt_duration"`
	EvalTokens     int           `json:"eval_tokens"`
	EvalDuration   time.Duration `json:"eval_duration"`
	DraftTokens    int           `json:"draft_tokens,omitempty"`    // guessed
	AcceptedTokens int           `json:"accepted_tokens,omitempty"` // of these, right
}

// EmbedRequest asks for one vector per input, not normalised.
type EmbedRequest struct {
	Inputs   []string `json:"inputs"`
	Truncate bool     `json:"truncate"`
}

// EmbedResponse has the vectors in the order of the inputs.
type EmbedResponse struct {
	Vectors      [][]float32 `json:"vectors"`
	PromptTokens int         `json:"prompt_tokens"`
	Truncated    bool        `json:"truncated,omitempty"`
}

// RerankRequest asks how well each document answers the query. Only a model whose report says Reranks can tell.
type RerankRequest struct {
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	Truncate  bool     `json:"truncate"` // cut documents that are too long; else an error
}

// RerankResponse has the model's raw scores in the order of the documents: logits, higher is better, without bounds.
type RerankResponse struct {
	Scores       []float32 `json:"scores"`
	PromptTokens int       `json:"prompt_tokens"`
	Truncated    bool      `json:"truncated,omitempty"`
}

// WireError carries a fault across the process boundary.
type WireError struct {
	Code string `json:"code"`
	Msg  string `json:"msg"`
	Hint string `json:"hint,omitempty"`
	Kind string `json:"kind,omitempty"`
}

// KindMemory is the Kind of a fault.TooLarge of Load that says that memory ran out on the way. What was asked for may fit
// elsewhere or later; other faults of that code say that it never will.
const KindMemory = "memory"
