package engine

import (
	"fmt"
	"strings"
	"testing"
)

func TestOutOfMemory(t *testing.T) {
	for name, row := range map[string]struct {
		log  string
		want string // "" it is no matter of memory
	}{
		"a GPU is full": {"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory\n" +
			"alloc_tensor_range: failed to allocate CUDA0 buffer of size 4294967296\n" +
			"llama_model_load: error loading model: unable to allocate CUDA0 buffer", "4.0 GiB could not be had of CUDA0"},
		"main memory is full": {"ggml_aligned_malloc: insufficient memory (attempted to allocate 96.00 MB)\n" +
			"ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 100663296\n" +
			"alloc_tensor_range: failed to allocate CPU buffer of size 100663296\n" +
			"llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache", "96 MiB could not be had of main memory"},
		"a graph": {"ggml_gallocr_reserve_n_impl: failed to allocate Vulkan0 buffer of size 318767104\n" +
			"llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers", "304 MiB could not be had of Vulkan0"},
		"the outputs":               {"output_reserve: failed to allocate output buffer of size 9273.12 MiB", "9273.12 MiB could not be had for the outputs"},
		"the file cannot be mapped": {"llama_model_load: error loading model: mmap failed: Cannot allocate memory", `llama.cpp says "cannot allocate memory"`},
		"C++ has none":              {"llama_model_load: error loading model: std::bad_alloc", `llama.cpp says "bad_alloc"`},
		"a wrong file":              {"llama_model_load: error loading model: missing tensor 'blk.0.attn_q.weight'\nllama_model_load_from_file_impl: failed to load model", ""},
		"nothing is said":           {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			why, ok := outOfMemory(strings.Split(row.log, "\n"))
			if why != row.want || ok != (row.want != "") {
				t.Errorf("got %q, %t; want %q", why, ok, row.want)
			}
		})
	}
}

func TestLastLog(t *testing.T) {
	var l lastLog
	l.add(logInfo, "a line of no use\n")
	l.add(logWarn, "before\n")
	mark := l.mark()
	l.add(logInfo, "load_tensors:   CPU model buffer size =    12.50 MiB\n")
	l.add(logWarn+1, "one\ntwo\n")
	if got := strings.Join(l.since(mark), "|"); got != "load_tensors:   CPU model buffer size =    12.50 MiB|one|two" {
		t.Errorf("got %q", got)
	}
	if b := loggedBuffers(l.since(mark), "model"); len(b) != 1 || b[0] != (loggedBuffer{"CPU", 12<<20 + 1<<19}) {
		t.Errorf("buffers %+v", b)
	}
	for i := range 3 * maxLogged {
		l.add(logWarn, fmt.Sprint(i))
	}
	if got := l.since(mark); len(got) != maxLogged || got[len(got)-1] != fmt.Sprint(3*maxLogged-1) {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}
