package engine

/*
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// What follows is declared by hand from llama.cpp/include/llama.h of github.com/ollama/ollama v0.17.4, because cgo cannot name
// the include folder of another module. All of it is public API, by opaque pointers; the two structures by value are checked
// by TestHandMadeDeclarations. Look here again when the version in go.mod changes.

struct llama_model; struct llama_context; struct llama_vocab; struct llama_sampler;

typedef struct { int32_t id; float logit; float p; } llama_token_data;
typedef struct { llama_token_data * data; size_t size; int64_t selected; bool sorted; } llama_token_data_array;
struct llama_sampler_chain_params { bool no_perf; };

extern const struct llama_vocab * llama_model_get_vocab(const struct llama_model *);
extern int32_t  llama_vocab_n_tokens(const struct llama_vocab *);
extern int      llama_vocab_type(const struct llama_vocab *); // an enum
extern int      llama_vocab_get_attr(const struct llama_vocab *, int32_t); // an enum
extern const char * llama_vocab_get_text(const struct llama_vocab *, int32_t);
extern uint64_t llama_model_size(const struct llama_model *);
extern bool     llama_model_is_recurrent(const struct llama_model *);
extern bool     llama_model_is_hybrid(const struct llama_model *);
extern uint32_t llama_model_n_cls_out(const struct llama_model *);
extern int32_t  llama_model_n_embd(const struct llama_model *);

extern void     llama_free(struct llama_context *);

extern int32_t  llama_n_threads(struct llama_context *);
extern void     llama_set_n_threads(struct llama_context *, int32_t, int32_t);
extern void     llama_set_embeddings(struct llama_context *, bool);
extern void     llama_set_causal_attn(struct llama_context *, bool);
extern float *  llama_get_logits_ith(struct llama_context *, int32_t);
extern float *  llama_get_embeddings_seq(struct llama_context *, int32_t);

extern struct llama_sampler * llama_sampler_chain_init(struct llama_sampler_chain_params);
extern void                   llama_sampler_chain_add(struct llama_sampler *, struct llama_sampler *);
extern struct llama_sampler * llama_sampler_init_dist(uint32_t);
extern struct llama_sampler * llama_sampler_init_top_k(int32_t);
extern struct llama_sampler * llama_sampler_init_top_p(float, size_t);
extern struct llama_sampler * llama_sampler_init_min_p(float, size_t);
extern struct llama_sampler * llama_sampler_init_typical(float, size_t);
extern struct llama_sampler * llama_sampler_init_temp(float);
extern struct llama_sampler * llama_sampler_init_grammar(const struct llama_vocab *, const char *, const char *);
extern void                   llama_sampler_accept(struct llama_sampler *, int32_t);
extern void                   llama_sampler_apply(struct llama_sampler *, llama_token_data_array *);
extern void                   llama_sampler_reset(struct llama_sampler *);
extern void                   llama_sampler_free(struct llama_sampler *);

// From tools/mtmd/mtmd.h.
struct mtmd_context;
struct mtmd_context_params {
	bool use_gpu; bool print_timings; int n_threads; const char * image_marker; const char * media_marker; int flash_attn_type;
	bool warmup; int image_min_tokens; int image_max_tokens;
};
extern struct mtmd_context_params mtmd_context_params_default(void);
extern struct mtmd_context * mtmd_init_from_file(const char *, const struct llama_model *, struct mtmd_context_params);
extern bool mtmd_decode_use_non_causal(struct mtmd_context *);
extern bool mtmd_decode_use_mrope(struct mtmd_context *);

// A chain in the order of llama.cpp's common sampler, so that a seed gives the text that it gives in Ollama.
static struct llama_sampler * sluice_chain(int32_t k, float typical, float top_p, float min_p, float temp, uint32_t seed) {
	struct llama_sampler_chain_params params = { true };
	struct llama_sampler * chain = llama_sampler_chain_init(params);
	llama_sampler_chain_add(chain, llama_sampler_init_top_k(k));
	llama_sampler_chain_add(chain, llama_sampler_init_typical(typical, 0));
	llama_sampler_chain_add(chain, llama_sampler_init_top_p(top_p, 0));
	llama_sampler_chain_add(chain, llama_sampler_init_min_p(min_p, 0));
	llama_sampler_chain_add(chain, llama_sampler_init_temp(temp));
	llama_sampler_chain_add(chain, llama_sampler_init_dist(seed));
	return chain;
}

static int32_t sluice_draw(struct llama_sampler * chain, llama_token_data * data, size_t n, bool sorted) {
	llama_token_data_array a = { data, n, -1, sorted };
	llama_sampler_apply(chain, &a);
	return a.selected < 0 ? -1 : a.data[a.selected].id;
}

static bool sluice_allows(struct llama_sampler * grammar, int32_t id) {
	llama_token_data one = { id, 0, 0 };
	llama_token_data_array a = { &one, 1, -1, false };
	llama_sampler_apply(grammar, &a);
	return one.logit > -INFINITY;
}

// Keeps the candidates that the grammar allows, in their order, and gives their number.
static size_t sluice_mask(struct llama_sampler * grammar, llama_token_data * data, size_t n) {
	llama_token_data_array a = { data, n, -1, false };
	llama_sampler_apply(grammar, &a);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (data[i].logit > -INFINITY) data[kept++] = data[i];
	}
	return kept;
}

// The first of the largest, -1 when there is none (all NaN). Sixteen lanes, which the compiler turns into vectors.
static int32_t sluice_argmax(const float * l, int32_t n) {
	float m[16];
	for (int j = 0; j < 16; j++) m[j] = -INFINITY;
	int32_t i = 0;
	for (; i + 16 <= n; i += 16) {
		for (int j = 0; j < 16; j++) m[j] = l[i+j] > m[j] ? l[i+j] : m[j];
	}
	float best = -INFINITY;
	for (; i < n; i++) best = l[i] > best ? l[i] : best;
	for (int j = 0; j < 16; j++) best = m[j] > best ? m[j] : best;
	for (i = 0; i < n; i++) {
		if (l[i] == best) return i;
	}
	return -1;
}

static bool sluice_before(llama_token_data a, llama_token_data b) {
	return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void sluice_sink(llama_token_data * h, int32_t n, int32_t i) {
	for (;;) {
		int32_t worst = i, c = 2*i + 1;
		if (c < n && sluice_before(h[worst], h[c])) worst = c;
		if (c + 1 < n && sluice_before(h[worst], h[c+1])) worst = c + 1;
		if (worst == i) return;
		llama_token_data t = h[i]; h[i] = h[worst]; h[worst] = t;
		i = worst;
	}
}

// The k best, best first; k <= n. A heap with the worst of them on top: most of a vocabulary loses one comparison.
static void sluice_best(const float * l, int32_t n, int32_t k, llama_token_data * out) {
	for (int32_t i = 0; i < k; i++) out[i] = (llama_token_data) { i, l[i], 0 };
	for (int32_t i = k/2; i-- > 0;) sluice_sink(out, k, i);
	for (int32_t i = k; i < n; i++) {
		if (l[i] > out[0].logit) {
			out[0] = (llama_token_data) { i, l[i], 0 };
			sluice_sink(out, k, 0);
		}
	}
	for (int32_t end = k - 1; end > 0; end--) {
		llama_token_data t = out[0]; out[0] = out[end]; out[end] = t;
		sluice_sink(out, end, 0);
	}
}

static void sluice_all(const float * l, int32_t n, llama_token_data * out) {
	for (int32_t i = 0; i < n; i++) out[i] = (llama_token_data) { i, l[i], 0 };
}

static double sluice_log_sum_exp(const float * l, int32_t n, float max) {
	double sum = 0;
	for (int32_t i = 0; i < n; i++) sum += expf(l[i] - max);
	return max + log(sum);
}
*/
import "C"

import (
	"unsafe"

	"github.com/ollama/ollama/llama"
)

// pointer is the C pointer of a *llama.Model or *llama.Context: the wrapper's first field, which it does not export. It makes
// them, because its calls for adapters and images take nothing else. TestHandMadeDeclarations shows that this is the pointer.
func pointer[T llama.Model | llama.Context](wrapper *T) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(wrapper))
}

// native is what the wrapper hides of a model and its context. It belongs to the loop.
type native struct {
	model *C.struct_llama_model
	vocab *C.struct_llama_vocab
	ctx   *C.struct_llama_context
	n     int // tokens of the vocabulary

	candidates *C.llama_token_data // room for the whole vocabulary, made when it is first needed
}

func newNative(model *llama.Model, ctx *llama.Context) *native {
	n := &native{model: (*C.struct_llama_model)(pointer(model)), ctx: (*C.struct_llama_context)(pointer(ctx))}
	n.vocab = vocabOf(model)
	n.n = int(C.llama_vocab_n_tokens(n.vocab))
	return n
}

// free frees the context. The model is the wrapper's to free.
func (n *native) free() {
	C.free(unsafe.Pointer(n.candidates))
	n.candidates = nil
	C.llama_free(n.ctx)
	n.ctx = nil
}

// projector loads the file of an image encoder beside a model. The wrapper's own call computes with 4 threads, however many cores
// there are. whole: the rows of an image look at each other; several: each has several positions. nil when it cannot be loaded.
func projector(model *llama.Model, path string, threads int, gpu bool) (p *llama.MtmdContext, whole, several bool) {
	file := C.CString(path)
	defer C.free(unsafe.Pointer(file))
	params := C.mtmd_context_params_default()
	params.n_threads, params.use_gpu, params.print_timings = C.int(threads), C.bool(gpu), false
	c := C.mtmd_init_from_file(file, (*C.struct_llama_model)(pointer(model)), params)
	if c == nil {
		return nil, false, false
	}
	p = new(llama.MtmdContext)
	*(*unsafe.Pointer)(unsafe.Pointer(p)) = unsafe.Pointer(c)
	return p, bool(C.mtmd_decode_use_non_causal(c)), bool(C.mtmd_decode_use_mrope(c))
}

// weights is the size of the model's tensors in bytes.
func (n *native) weights() uint64 { return uint64(C.llama_model_size(n.model)) }

// vocabBPE is llama.cpp's number of vocabularies that split texts by a regular expression; the attributes are those of special tokens.
const (
	vocabBPE          = 2
	specialAttributes = 1<<0 | 1<<3 | 1<<4 // unknown, control, user defined
)

// splits says whether texts are split by a regular expression before they are looked up.
func (n *native) splits() bool { return C.llama_vocab_type(n.vocab) == vocabBPE }

// specials are the texts that are read as special tokens wherever they stand.
func (n *native) specials() []string {
	var texts []string
	for id := range n.n {
		if C.llama_vocab_get_attr(n.vocab, C.int32_t(id))&specialAttributes == 0 {
			continue
		}
		if text := C.GoString(C.llama_vocab_get_text(n.vocab, C.int32_t(id))); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// forgetful says whether the model keeps a state instead of a key and value per token (Mamba, RWKV, and hybrids of them): its
// sequences cannot be cut back.
func (n *native) forgetful() bool {
	return bool(C.llama_model_is_recurrent(n.model)) || bool(C.llama_model_is_hybrid(n.model))
}

func (n *native) setThreads(threads int) {
	C.llama_set_n_threads(n.ctx, C.int32_t(threads), C.int32_t(threads))
}

func (n *native) threads() int { return int(C.llama_n_threads(n.ctx)) }

// setEmbeddings says whether batches give embeddings, which the wrapper always asks for: 4 % of a decode.
func (n *native) setEmbeddings(on bool) { C.llama_set_embeddings(n.ctx, C.bool(on)) }

func (n *native) setCausal(on bool) { C.llama_set_causal_attn(n.ctx, C.bool(on)) }

// logits are the last batch's at a row that asked for them: llama.cpp aborts at another. They are C memory, good until the
// next batch, and may be written to.
func (n *native) logits(row int) []float32 {
	return unsafe.Slice((*float32)(C.llama_get_logits_ith(n.ctx, C.int32_t(row))), n.n)
}

// pooledRow is what the last batch gave for a whole sequence: its embedding, or with rank the classifier's outputs. nil: nothing.
func (n *native) pooledRow(sequence int, rank bool) []float32 {
	row := C.llama_get_embeddings_seq(n.ctx, C.int32_t(sequence))
	if row == nil {
		return nil
	}
	width := int(C.llama_model_n_embd(n.model))
	if rank {
		width = int(C.llama_model_n_cls_out(n.model))
	}
	return append([]float32(nil), unsafe.Slice((*float32)(row), width)...)
}

// argmax is the id of the largest, -1 when all are NaN.
func argmax(logits []float32) int {
	return int(C.sluice_argmax((*C.float)(&logits[0]), C.int32_t(len(logits))))
}

// room is memory for as many candidates as the vocabulary has.
func (n *native) room() *C.llama_token_data {
	if n.candidates == nil {
		n.candidates = (*C.llama_token_data)(C.malloc(C.size_t(n.n) * C.sizeof_llama_token_data))
	}
	return n.candidates
}

// candidates is a choice of tokens with their logits, in the memory of a native. The next one overwrites it.
type candidates struct {
	data   *C.llama_token_data
	n      int
	sorted bool // best first
}

// best takes the k best of the logits, best first; all of them when there are no more.
func (n *native) best(logits []float32, k int) candidates {
	c := candidates{data: n.room(), n: min(k, len(logits)), sorted: true}
	C.sluice_best((*C.float)(&logits[0]), C.int32_t(len(logits)), C.int32_t(c.n), c.data)
	return c
}

// all takes every token.
func (n *native) all(logits []float32) candidates {
	c := candidates{data: n.room(), n: len(logits)}
	C.sluice_all((*C.float)(&logits[0]), C.int32_t(c.n), c.data)
	return c
}

// at is the i-th candidate.
func (c candidates) at(i int) (id int, logit float32) {
	d := unsafe.Slice(c.data, c.n)[i]
	return int(d.id), float32(d.logit)
}

// top is the best candidate; c is not empty.
func (c candidates) top() int {
	id, most := c.at(0)
	if c.sorted {
		return id
	}
	for i := range c.n {
		if other, logit := c.at(i); logit > most {
			id, most = other, logit
		}
	}
	return id
}

// logSumExp is the natural logarithm of the sum of the exponentials, the most of which is given.
func logSumExp(logits []float32, most float32) float64 {
	return float64(C.sluice_log_sum_exp((*C.float)(&logits[0]), C.int32_t(len(logits)), C.float(most)))
}

// chain draws from candidates. It must be freed.
type chain struct{ c *C.struct_llama_sampler }

func newChain(p sampling) chain {
	return chain{C.sluice_chain(C.int32_t(p.topK), C.float(p.typicalP), C.float(p.topP), C.float(p.minP), C.float(p.temp), C.uint32_t(p.seed))}
}

// draw gives the id of a candidate, or -1 when there is none left. It reorders and overwrites them.
func (s chain) draw(c candidates) int {
	return int(C.sluice_draw(s.c, c.data, C.size_t(c.n), C.bool(c.sorted)))
}

func (s chain) free() { C.llama_sampler_free(s.c) }

// grammar says which tokens may follow those that it accepted. It must be freed.
type grammar struct{ c *C.struct_llama_sampler }

// vocabOf gives a model's vocabulary, which never changes.
func vocabOf(model *llama.Model) *C.struct_llama_vocab {
	return C.llama_model_get_vocab((*C.struct_llama_model)(pointer(model)))
}

// newGrammar parses GBNF. The text has passed grammar.Check: some that has not would crash here. ok is false when it is invalid.
func newGrammar(vocab *C.struct_llama_vocab, gbnf string) (g grammar, ok bool) {
	text, root := C.CString(gbnf), C.CString("root")
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(root))
	g.c = C.llama_sampler_init_grammar(vocab, text, root)
	return g, g.c != nil
}

// allows says whether a token may be next. The end of the answer is a token like the others here.
func (g grammar) allows(id int) bool { return bool(C.sluice_allows(g.c, C.int32_t(id))) }

// mask leaves the candidates that may be next, in their order.
func (g grammar) mask(c candidates) candidates {
	c.n = int(C.sluice_mask(g.c, c.data, C.size_t(c.n)))
	return c
}

// accept takes a token that is allowed and not an end. llama.cpp throws at another, through cgo, which is the process's end.
func (g grammar) accept(id int) { C.llama_sampler_accept(g.c, C.int32_t(id)) }

// reset goes back to the beginning.
func (g grammar) reset() { C.llama_sampler_reset(g.c) }

func (g grammar) free() { C.llama_sampler_free(g.c) }
