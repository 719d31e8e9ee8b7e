package models

import (
	"strings"
	"testing"
)

func TestFileName(t *testing.T) {
	for file, want := range map[string]string{
		"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf": "qwen2.5-coder-0.5b-instruct:q4_k_m",
		"Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.GGUF": "qwen2.5-coder-0.5b-instruct:q4_k_m",
		"Meta-Llama-3-8B.Q8_0.gguf":               "meta-llama-3-8b:q8_0",
		"gemma-3-4b-it-UD-Q4_K_XL.gguf":           "gemma-3-4b-it:ud-q4_k_xl",
		"x.i1-IQ2_XXS.gguf":                       "x.i1:iq2_xxs",
		"phi-4-F16.gguf":                          "phi-4:f16",
		"phi-4-bf16.gguf":                         "phi-4:bf16",
		"phi_fp32.gguf":                           "phi:fp32",
		"gpt-oss-20b-mxfp4.gguf":                  "gpt-oss-20b:mxfp4",
		"bitnet-tq2_0.gguf":                       "bitnet:tq2_0",
		"x-q4_0_4_8.gguf":                         "x:q4_0_4_8",
		"smollm2.gguf":                            "smollm2:latest",
		"q4_k_m.gguf":                             "q4_k_m:latest",
		"-q4_k_m.gguf":                            "q4_k_m:latest",
		"model-q9_k.gguf":                         "model-q9_k:latest",
		"my model (v2).gguf":                      "my-model-v2:latest",
		"a:b@c$d.gguf":                            "a-b-c-d:latest",
		"..hidden.gguf":                           "hidden:latest",
		"模型.gguf":                                 "model:latest",
		"モデルx模.gguf":                              "x:latest",
		".gguf":                                   "model:latest",
		strings.Repeat("a", 200) + "-Q4_0.gguf":   strings.Repeat("a", 80) + ":q4_0",
		strings.Repeat("é", 200) + "b.gguf":       "b:latest",
		"x-" + strings.Repeat("q", 100) + ".gguf": "x-" + strings.Repeat("q", 78) + ":latest",
		"con.gguf":                                "con:latest",
		"x\x00y\n.gguf":                           "x-y:latest",
		"\xff\xfe.gguf":                           "model:latest",
	} {
		n, ok := fileName(file)
		if !ok || n.DisplayShortest() != want {
			t.Errorf("%q is %q (%v), want %q", file, n.DisplayShortest(), ok, want)
		}
	}
}

// FuzzFileName holds that every file has a valid name, which the store finds again.
func FuzzFileName(f *testing.F) {
	f.Add("Qwen2.5-Q4_K_M.gguf")
	f.Add("a/b:c.gguf")
	f.Add("-._-Q4_0-q4_0.gguf")
	f.Fuzz(func(t *testing.T, file string) {
		n, ok := fileName(file)
		if !ok {
			t.Fatalf("%q has no name", file)
		}
		again, err := parseName(n.DisplayShortest())
		if err != nil || again != n || strings.ToLower(n.String()) != n.String() {
			t.Errorf("%q is %q, which reads as %q: %v", file, n, again, err)
		}
	})
}
