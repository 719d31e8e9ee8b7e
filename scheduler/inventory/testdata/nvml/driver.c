// A library with the names and shapes of NVIDIA's (nvml.h), for machines that have no driver: what is tested is the way to it. It has two
// GPUs of 80 GiB, the second one cut into MIG slices. FAKE_INIT and FAKE_LOST are what opening it and reading the first GPU answer;
// after FAKE_GONE, a driver that was replaced, it has to be opened anew.
// Without MIG it is an old driver's, which does not have those functions at all.
#include <stdio.h>
#include <stdlib.h>

struct gpu { unsigned number, part; } gpus[2] = {{0, 0}, {1, 0}}, parts[2] = {{1, 1}, {1, 2}};
struct memory { unsigned long long total, free, used; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
static int env(const char *name) { const char *v = getenv(name); return v ? atoi(v) : 0; }

static int ready;

int nvmlInit_v2(void) { ready = 1; return env("FAKE_INIT"); }
const char *nvmlErrorString(int r) { return r == 9 ? "Driver Not Loaded" : r == 15 ? "GPU is lost" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned *n) { if (env("FAKE_GONE")) ready = 0; *n = 2; return ready ? 0 : 1; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct gpu **d) { *d = &gpus[i]; return 0; }
int nvmlDeviceGetMemoryInfo(struct gpu *d, struct memory *m) {
	if (d->number == 0 && env("FAKE_LOST")) return env("FAKE_LOST");
	m->total = (d->part ? 20ull * d->part : 80ull) << 30;
	m->used = (1ull + d->part) << 30;
	m->free = m->total - m->used;
	return 0;
}
int nvmlDeviceGetName(struct gpu *d, char *name, unsigned n) { (void)d; snprintf(name, n, "NVIDIA H100"); return 0; }
int nvmlDeviceGetUUID(struct gpu *d, char *id, unsigned n) { snprintf(id, n, "GPU-%u-%u", d->number, d->part); return 0; }
int nvmlDeviceGetPciInfo_v3(struct gpu *d, struct pci *p) { p->domain = 0; p->bus = 0x1b + d->number; p->device = 0; return 0; }
#ifdef MIG
int nvmlDeviceGetMigMode(struct gpu *d, unsigned *now, unsigned *pending) { *now = *pending = d->number == 1; return 0; }
int nvmlDeviceGetMaxMigDeviceCount(struct gpu *d, unsigned *n) { (void)d; *n = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *d, unsigned i, struct gpu **part) {
	(void)d;
	if (i > 1) return 6; // there is none at this place
	*part = &parts[i];
	return 0;
}
#endif
