package engine

/*
#include <stddef.h>
#include <string.h>

// Declared by hand from ml/backend/ggml/ggml/include/ggml-backend.h of github.com/ollama/ollama v0.17.4 (see llama.go).
// TestDevicesOfGGML checks the structure.

struct ggml_backend_device;
struct ggml_backend_dev_caps { _Bool async, host_buffer, buffer_from_host_ptr, events; };
struct ggml_backend_dev_props {
	const char * name; const char * description; size_t memory_free; const char * id; size_t memory_total; int type;
	const char * device_id; struct ggml_backend_dev_caps caps; int driver_major, driver_minor, compute_major, compute_minor;
	int integrated; const char * library;
};
extern size_t ggml_backend_dev_count(void);
extern struct ggml_backend_device * ggml_backend_dev_get(size_t);
extern const char * ggml_backend_dev_name(struct ggml_backend_device *);
extern int ggml_backend_dev_type(struct ggml_backend_device *); // an enum
extern void ggml_backend_dev_memory(struct ggml_backend_device *, size_t *, size_t *);
extern void ggml_backend_dev_get_props(struct ggml_backend_device *, struct ggml_backend_dev_props *);

// The properties, with room behind them for what a later version may write there. false: it does.
static _Bool sluice_props(struct ggml_backend_device * device, struct ggml_backend_dev_props * out) {
	struct { struct ggml_backend_dev_props props; unsigned char more[256]; } room;
	memset(&room, 0xa5, sizeof room);
	ggml_backend_dev_get_props(device, &room.props);
	*out = room.props;
	for (size_t i = 0; i < sizeof room.more; i++) {
		if (room.more[i] != 0xa5) return 0;
	}
	return 1;
}
*/
import "C"

import (
	"bufio"
	"cmp"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/ollama/ollama/llama"
	"github.com/ollama/ollama/ml"

	"sluice/runner"
)

// Kinds of devices, as ggml numbers them.
const (
	kindCPU = iota
	kindGPU
	kindIntegrated
	kindAccelerator // computes beside the CPU, in its memory
)

// device is a device of ggml's registry. An id is its name there, "CUDA0", which is unique within a process.
type device struct {
	runner.Device
	known  bool // the properties have the size that is declared here
	index  int  // in the registry, which is what llama.cpp's parameters take
	kind   int
	module ml.DeviceID // what the fallback engine calls it
}

// registry lists ggml's devices, in its order. Without memory nothing is asked that would make a driver set up a device: on
// CUDA each that was asked costs some hundred MiB for as long as the process lives.
func registry(memory bool) (list []device) {
	llama.BackendInit()
	for i := range int(C.ggml_backend_dev_count()) {
		c := C.ggml_backend_dev_get(C.size_t(i))
		var props C.struct_ggml_backend_dev_props
		known := bool(C.sluice_props(c, &props))
		d := device{known: known, index: i, kind: int(C.ggml_backend_dev_type(c)), module: ml.DeviceID{ID: C.GoString(props.id), Library: C.GoString(props.library)}}
		d.Device = runner.Device{
			ID: C.GoString(C.ggml_backend_dev_name(c)), Name: C.GoString(props.description), PCI: strings.ToLower(C.GoString(props.device_id)),
			Library: strings.ToLower(d.module.Library), Integrated: d.kind == kindIntegrated || props.integrated != 0,
		}
		if memory {
			var free, total C.size_t
			C.ggml_backend_dev_memory(c, &free, &total)
			d.FreeBytes, d.TotalBytes = uint64(free), uint64(total)
		}
		list = append(list, d)
	}
	return list
}

// gpus are those that a placement can name.
func gpus(list []device) (out []device) {
	for _, d := range list {
		if d.kind == kindGPU || d.kind == kindIntegrated {
			out = append(out, d)
		}
	}
	return out
}

// Devices lists the GPUs that ggml sees, and last the CPU with main memory. It sets up the GPUs' drivers, so it is for a process
// that ends at once.
func Devices() []runner.Device {
	out := []runner.Device{}
	all := registry(true)
	for _, d := range gpus(all) {
		out = append(out, d.Device)
	}
	cpu := runner.Device{ID: runner.CPU, Library: "cpu", Threads: runtime.NumCPU()}
	for _, d := range all {
		if d.kind == kindCPU {
			cpu.Name, cpu.TotalBytes, cpu.FreeBytes = d.Name, d.TotalBytes, d.FreeBytes
			break
		}
	}
	if available, err := availableMemory(); err == nil {
		cpu.FreeBytes = available // ggml says that all of it is free
	}
	return append(out, cpu)
}

// availableMemory is what the kernel says can be had without swapping. Control groups may allow less: that is the inventory's
// to know, which reads it live.
func availableMemory() (uint64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseUint(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, cmp.Or(lines.Err(), os.ErrNotExist)
}

// hideGPUs keeps the drivers' devices out of a process that shall use none: llama.cpp would set up those that it sees, and
// compute on them, even with every layer in main memory. It must come before the first use of ggml.
func hideGPUs() {
	for name, none := range map[string]string{
		"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1", "GGML_VK_VISIBLE_DEVICES": "",
	} {
		_ = os.Setenv(name, none)
	}
}
