package models

import (
	"regexp"
	"strings"

	"github.com/ollama/ollama/types/model"
)

// typeForm finds the type of the weights at the end of a file's name: q4_k_m, iq2_xxs, f16, mxfp4, ud-q4_k_xl.
var typeForm = regexp.MustCompile(`^(.+?)[-._]((?:ud-)?(?:i?q[1-8](?:_[0-9a-z]{1,3}){0,3}|tq[12]_0|(?:b?f|fp)(?:16|32)|mxfp4(?:_moe)?))$`)

// maxPart is how long a part of a name may be.
const maxPart = 80

// fileName is the name of the model in a GGUF file of a folder: the file's name in lower case, with the type of the weights as the
// tag where the name ends with one, :latest otherwise. What no name may have becomes a hyphen.
//
//	Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf    qwen2.5-coder-0.5b-instruct:q4_k_m
//	my model.gguf                              my-model:latest
func fileName(file string) (model.Name, bool) {
	base, _ := cutSuffixFold(file, ".gguf")
	base, tag := splitType(base)
	if tag == "" {
		tag = "latest"
	}
	n, err := parseName(tame(base) + ":" + tag)
	return n, err == nil
}

// splitType takes the type of the weights from the end of a file's name without its extension.
func splitType(base string) (rest, kind string) {
	base = strings.ToLower(base)
	if m := typeForm.FindStringSubmatch(base); m != nil && len(m[2]) <= maxPart {
		return m[1], m[2]
	}
	return base, ""
}

// tame makes a text a part of a name.
func tame(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			b.WriteRune(r)
		case b.Len() == 0: // the first one must be one of those
		case r == '.', r == '-':
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == maxPart {
			break
		}
	}
	if out := strings.TrimRight(b.String(), "-."); out != "" {
		return out
	}
	return "model"
}

func cutSuffixFold(s, suffix string) (string, bool) {
	if at := len(s) - len(suffix); at >= 0 && strings.EqualFold(s[at:], suffix) {
		return s[:at], true
	}
	return s, false
}
