package runner

import "time"

// readyLine is what a child writes to stdout once its socket listens. The number is the protocol's: a parent refuses
// a child of another version at once, instead of misreading it later.
const readyLine = "sluice-runner ready 1"

// Paths of the calls, all POST. Load and generate answer with a stream, the others with one JSON object; a failed call
// answers with a failure and a status that is not 200.
const (
	pathLoad       = "/load"       // LoadRequest → LoadEvent…
	pathGenerate   = "/generate"   // GenerateRequest → Chunk…
	pathEmbed      = "/embed"      // EmbedRequest → EmbedResponse
	pathTokenize   = "/tokenize"   // textBody → tokensBody
	pathDetokenize = "/detokenize" // tokensBody → textBody
)

type textBody struct {
	Text string `json:"text"`
}

type tokensBody struct {
	Tokens []int `json:"tokens"`
}

type failure struct {
	Error *WireError `json:"error"`
}

// LoadRequest says what a child shall load. A child loads one model in its life.
type LoadRequest struct {
	ModelPath      string `json:"model_path"`
	NumCtx         int    `json:"num_ctx"`   // tokens of one sequence
	Parallel       int    `json:"parallel"`  // sequences
	NumBatch       int    `json:"num_batch"` // tokens of one decode call
	NumThread      int    `json:"num_thread,omitempty"`
	NumGPU         int    `json:"num_gpu"` // layers on GPUs; -1 all that fit
	UseMmap        bool   `json:"use_mmap"`
	KVCacheType    string `json:"kv_cache_type,omitempty"`   // f16 (default), q8_0, q4_0
	FlashAttention string `json:"flash_attention,omitempty"` // "", "on", "off"; "" lets the engine choose
}

// LoadReport is what the child says about the loaded model.
type LoadReport struct {
	NumCtx       int           `json:"num_ctx"`   // as allocated, per sequence
	TrainCtx     int           `json:"train_ctx"` // the model's trained length, 0 unknown
	Embedding    int           `json:"embedding"` // width of an embedding
	Pooled       bool          `json:"pooled"`    // the model pools by itself (an encoder): it embeds, it cannot generate
	WeightBytes  uint64        `json:"weight_bytes"`
	KVBytes      uint64        `json:"kv_bytes"`
	ComputeBytes uint64        `json:"compute_bytes"`
	GPUBytes     uint64        `json:"gpu_bytes"` // the part of all of these that lies on GPUs
	Took         time.Duration `json:"took"`
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
	Prompt     string   `json:"prompt"`
	NumPredict int      `json:"num_predict"` // tokens; negative: until the model ends or the context is full
	NumKeep    int      `json:"num_keep"`
	Stop       []string `json:"stop,omitempty"`
	Schema     string   `json:"schema,omitempty"` // JSON Schema of the answer; `null` means any JSON; "" unconstrained
	Truncate   bool     `json:"truncate"`         // cut a prompt that exceeds the context, keeping num_keep and the tail; else an error
	Shift      bool     `json:"shift"`            // go on when the context is full by dropping the older half; else end with "length"
	Sampling   Sampling `json:"sampling"`
}

// Chunk is a line of a generation's stream. Exactly the last one has Done or Error.
type Chunk struct {
	Text       string     `json:"text,omitempty"` // whole UTF-8 characters
	Done       bool       `json:"done,omitempty"`
	DoneReason string     `json:"done_reason,omitempty"` // stop, length
	Usage      *Usage     `json:"usage,omitempty"`
	Error      *WireError `json:"error,omitempty"`
}

// Usage counts what a request cost.
type Usage struct {
	PromptTokens   int           `json:"prompt_tokens"`
	CachedTokens   int           `json:"cached_tokens"` // of the prompt, taken from the prefix cache
	Truncated      bool          `json:"truncated,omitempty"`
	PromptDuration time.Duration `json:"prompt_duration"`
	EvalTokens     int           `json:"eval_tokens"`
	EvalDuration   time.Duration `json:"eval_duration"`
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

// WireError carries a fault across the process boundary.
type WireError struct {
	Code string `json:"code"`
	Msg  string `json:"msg"`
}
