// What llama.cpp has allocated, in plain C, for memory.go.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct llama_context;

// Bytes of one type of buffer. device is an index of ggml's registry; -1: main memory, whatever way it was got.
typedef struct {
	const char * buffer; // "CPU", "CPU_REPACK", "CUDA0", ...; it lives as long as the process
	int64_t device;
	uint64_t model, context, compute;
} sluice_memory;

// Fills at most max rows and gives their number; -1 when it failed or there are more.
int sluice_breakdown(const struct llama_context * ctx, sluice_memory * out, int max);

#ifdef __cplusplus
}
#endif
