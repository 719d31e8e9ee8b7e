// llama_context::memory_breakdown() has no function in llama.h: the one there only prints. It is declared by hand from
// llama.cpp/src/llama-context.h of github.com/ollama/ollama v0.17.4, because cgo cannot name the include folder of another
// module. The method's symbol does not tell its result's type: TestMemoryIsMeasured compares what comes out with what
// llama.cpp logs, with the model's size and with the formula of the cache, and so notices another one.
#include "breakdown.h"

#include <cstddef>
#include <map>

struct ggml_backend_buffer_type;
struct ggml_backend_device;
typedef struct ggml_backend_buffer_type * ggml_backend_buffer_type_t;
typedef struct ggml_backend_device * ggml_backend_dev_t;

extern "C" {
const char * ggml_backend_buft_name(ggml_backend_buffer_type_t);
bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t);
ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t);
size_t ggml_backend_dev_count(void);
ggml_backend_dev_t ggml_backend_dev_get(size_t);
int ggml_backend_dev_type(ggml_backend_dev_t); // an enum: 0 CPU, 1 GPU, 2 integrated GPU, 3 accelerator of the CPU
}

struct llama_memory_breakdown_data {
	size_t model = 0;
	size_t context = 0;
	size_t compute = 0;
};

struct llama_context {
	std::map<ggml_backend_buffer_type_t, llama_memory_breakdown_data> memory_breakdown() const;
};

// Buffers that the CPU reads (CPU, CPU_Mapped, CUDA_Host), and those of the CPU's own device that nobody else can read
// (CPU_REPACK, AMX), are main memory.
static int64_t device_of(ggml_backend_buffer_type_t buffer) {
	ggml_backend_dev_t device = ggml_backend_buft_get_device(buffer);
	if (ggml_backend_buft_is_host(buffer) || !device) return -1;
	int type = ggml_backend_dev_type(device);
	if (type != 1 && type != 2) return -1;
	for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
		if (ggml_backend_dev_get(i) == device) return (int64_t) i;
	}
	return -1;
}

extern "C" int sluice_breakdown(const struct llama_context * ctx, sluice_memory * out, int max) {
	try {
		int n = 0;
		for (const auto & row : ctx->memory_breakdown()) {
			if (n == max) return -1;
			out[n++] = sluice_memory{
				ggml_backend_buft_name(row.first), device_of(row.first), row.second.model, row.second.context, row.second.compute,
			};
		}
		return n;
	} catch (...) { // out of memory: it must not cross into Go
		return -1;
	}
}
