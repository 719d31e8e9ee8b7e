package engine

/*
#include "breakdown.h"
*/
import "C"

import (
	"log/slog"
	"math"
	"os"
	"regexp"
	"strconv"

	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
	"sluice/runner"
)

// bufferMemory is what llama.cpp has allocated in one type of buffer, in bytes.
type bufferMemory struct {
	buffer  string // as ggml names it: "CPU", "CPU_REPACK", "CUDA0"
	device  int    // index in ggml's registry, -1 main memory
	weights uint64 // mapped parts of the file too; where tensors were repacked, the mapped original and the copy
	kv      uint64
	compute uint64
}

// maxBuffers is more types of buffers than any machine has.
const maxBuffers = 256

// breakdown asks the context what it and its model take. Not in it are the rows of outputs, which outputBytes finds, the
// vocabulary (some 40 MiB at 150,000 tokens) and what is not of one model.
func (n *native) breakdown() ([]bufferMemory, error) {
	var rows [maxBuffers]C.sluice_memory
	count := int(C.sluice_breakdown(n.ctx, &rows[0], maxBuffers))
	if count < 0 {
		return nil, fault.Bug("llama.cpp does not say what it has allocated")
	}
	list := make([]bufferMemory, count)
	for i, row := range rows[:count] {
		list[i] = bufferMemory{
			buffer: C.GoString(row.buffer), device: int(row.device),
			weights: uint64(row.model), kv: uint64(row.context), compute: uint64(row.compute),
		}
	}
	return list, nil
}

// memory collects what a model takes, by device.
type memory struct {
	order []string
	of    map[string]*runner.DeviceMemory
}

// on is the line of a device.
func (m *memory) on(id string) *runner.DeviceMemory {
	if m.of == nil {
		m.of = map[string]*runner.DeviceMemory{}
	}
	if m.of[id] == nil {
		m.of[id] = &runner.DeviceMemory{Device: id}
		m.order = append(m.order, id)
	}
	return m.of[id]
}

// lines are those of devices that have anything, main memory first.
func (m *memory) lines() (list []runner.DeviceMemory) {
	m.on(runner.CPU)
	for _, id := range m.order {
		switch line := *m.of[id]; {
		case line.Bytes() == 0:
		case id == runner.CPU:
			list = append([]runner.DeviceMemory{line}, list...)
		default:
			list = append(list, line)
		}
	}
	return list
}

// measure adds what llama.cpp has allocated for the model and its context. logged are its log's lines of this load.
func (m *memory) measure(n *native, devices []device, logged []string) error {
	rows, err := n.breakdown()
	if err != nil {
		return err
	}
	for _, row := range rows {
		line := m.on(idAt(devices, row.device))
		line.Weights += row.weights
		line.KV += row.kv
		line.Compute += row.compute
	}
	for _, b := range loggedBuffers(logged, "output") {
		m.on(runner.CPU).Compute += b.bytes
	}
	return nil
}

// idAt is the id of a device of ggml's registry.
func idAt(devices []device, index int) string {
	for _, d := range devices {
		if d.index == index {
			return d.ID
		}
	}
	return runner.CPU
}

// loggedBuffer is a line in which llama.cpp tells of a buffer.
type loggedBuffer struct {
	buffer string
	bytes  uint64 // to a hundredth of a MiB, which is how it is logged
}

var bufferLine = regexp.MustCompile(`:\s*(\S+)\s+(\w+) buffer size =\s*([0-9.]+) MiB`)

// loggedBuffers finds the buffers of a kind: "model", "KV", "output", "compute".
func loggedBuffers(lines []string, kind string) (list []loggedBuffer) {
	for _, line := range lines {
		m := bufferLine.FindStringSubmatch(line)
		if m == nil || m[2] != kind {
			continue
		}
		if mib, err := strconv.ParseFloat(m[3], 64); err == nil {
			list = append(list, loggedBuffer{buffer: m[1], bytes: uint64(math.Round(mib * (1 << 20)))})
		}
	}
	return list
}

// adapter adds an adapter that was applied. llama.cpp has no call for what it took, so this is estimated: the bytes of its
// tensors, each on the device of the layer that it changes, as llama_adapter_lora_init places them.
func (m *memory) adapter(path string, p placement) {
	tensors, err := tensorsOf(path)
	if err != nil {
		slog.Warn("what an adapter takes is not known", "error", err)
		return
	}
	for _, t := range tensors {
		m.on(p.deviceOf(t.Name)).Weights += t.Size()
	}
}

// projector adds an image encoder that was loaded on a device. Its weights are estimated, because clip.cpp has no call for them:
// the bytes of its file's tensors, all on the one device that it takes. Its graph's buffers are as it logs them.
func (m *memory) projector(path, id string, logged []string) {
	tensors, err := tensorsOf(path)
	if err != nil {
		slog.Warn("what a projector takes is not known", "error", err)
		return
	}
	for _, t := range tensors {
		m.on(id).Weights += t.Size()
	}
	for _, b := range loggedBuffers(logged, "compute") {
		on := runner.CPU
		if b.buffer == id {
			on = id
		}
		m.on(on).Compute += b.bytes
	}
}

// tensorsOf lists the tensors of a file that has been loaded.
func tensorsOf(path string) ([]*ggml.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g, err := ggml.Decode(f, 0)
	if err != nil {
		return nil, err
	}
	return g.Tensors().Items(), nil
}
