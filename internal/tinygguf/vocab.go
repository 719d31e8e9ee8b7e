package tinygguf

// Ids of special tokens. The module's mistral3 has those of images written into its code, so they stand where it wants them.
const (
	tokenEnd        = 0 // <|endoftext|>
	tokenMsgEnd     = 2 // <|im_end|>
	tokenThink      = 3
	tokenThinkEnd   = 4
	tokenBOS        = 7
	tokenEOS        = 8
	tokenUnknown    = 9
	typeNormal      = 1 // token types of llama.cpp
	typeControl     = 3
	typeUserDefined = 4
)

var specials = []string{
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<s>", "</s>", "<unk>",
	"[IMG]", "<image>", "[IMG_BREAK]", "[IMG_END]", "[INST]", "[/INST]",
}

// written are specials that a model may show in its text; the others are control tokens.
var written = map[string]bool{"<think>": true, "</think>": true, "<tool_call>": true, "</tool_call>": true}

// words have tokens of their own, so that texts are not bytes only. A space before a word belongs to it.
var words = []string{
	" the", " and", " cat", " dog", " of", " to", " in", " is", " one", " two", " three", " four", " five", " list", " numbers",
	" answer", " yes", " no", " data", " table", "user", "assistant", "system", "Hello", " world", "Yes", "No", "Let", " me",
	" think", " it", " was", "\n\n", "name", "true", "false", "null", `{"`, `":`, `",`,
}

// bpe is a byte-level vocabulary: every text can be written in it.
type bpe struct {
	tokens []string
	types  []int32
	merges []string
	ids    map[string]int
}

func newBPE() *bpe {
	v := &bpe{ids: map[string]int{}}
	for _, s := range specials {
		kind := int32(typeControl)
		if written[s] {
			kind = typeUserDefined
		}
		v.add(s, kind)
	}
	for b := range 256 {
		v.add(visible(byte(b)), typeNormal)
	}
	for _, w := range words {
		left := visible(w[0])
		for i := 1; i < len(w); i++ {
			right := visible(w[i])
			if _, known := v.ids[left+right]; !known {
				v.merges = append(v.merges, left+" "+right)
				v.add(left+right, typeNormal)
			}
			left += right
		}
	}
	return v
}

func (v *bpe) add(token string, kind int32) {
	v.ids[token] = len(v.tokens)
	v.tokens = append(v.tokens, token)
	v.types = append(v.types, kind)
}

// id of a text that is one token.
func (v *bpe) id(text string) int {
	if id, ok := v.ids[text]; ok {
		return id // a special one
	}
	written := ""
	for i := range len(text) {
		written += visible(text[i])
	}
	id, ok := v.ids[written]
	if !ok {
		panic("tinygguf: " + text + " is no token")
	}
	return id
}

// write adds the vocabulary's keys. pre names the rule that splits words before they are looked up.
func (v *bpe) write(f *file, pre string) {
	f.set("tokenizer.ggml.model", "gpt2")
	f.set("tokenizer.ggml.pre", pre)
	f.set("tokenizer.ggml.tokens", v.tokens)
	f.set("tokenizer.ggml.token_type", v.types)
	f.set("tokenizer.ggml.merges", v.merges)
	f.set("tokenizer.ggml.bos_token_id", tokenBOS)
	f.set("tokenizer.ggml.unknown_token_id", tokenUnknown)
}

// visible is how GPT-2 writes a byte: as itself where it can be seen, else as one of the letters from U+0100 on.
func visible(b byte) string {
	n := rune(0)
	for c := range 256 {
		shown := c >= '!' && c <= '~' || c >= 0xa1 && c <= 0xac || c >= 0xae
		if byte(c) == b {
			if shown {
				return string(rune(c))
			}
			return string(0x100 + n)
		}
		if !shown {
			n++
		}
	}
	panic("unreachable")
}

// wordPiece is BERT's vocabulary: letters, digits, signs and a few words, those that begin a word with U+2581 before them.
func wordPiece() (tokens []string, types []int32) {
	for _, s := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		tokens, types = append(tokens, s), append(types, typeControl)
	}
	pieces := []string{}
	for c := '!'; c <= '~'; c++ {
		if c < 'A' || c > 'Z' { // it is lower case
			pieces = append(pieces, string(c))
		}
	}
	for _, p := range append(pieces, "the", "cat", "dog", "sits", "trade", "revenue", "word", "is", "of", "and") {
		tokens, types = append(tokens, "▁"+p), append(types, typeNormal)
	}
	for _, p := range append(pieces, "ing", "ed", "er") {
		tokens, types = append(tokens, p), append(types, typeNormal)
	}
	return tokens, types
}

const (
	wordPad  = 0
	wordUnk  = 1
	wordCLS  = 2
	wordSep  = 3
	wordMask = 4
)
