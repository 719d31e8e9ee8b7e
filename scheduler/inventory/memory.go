package inventory

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// memory is what main memory there is, in bytes, and how many cores. Zero is not known.
type memory struct {
	Total  uint64
	Free   uint64
	Cores  int
	Limits []Limit
}

// Limit is one that is in force on this process. Sizes are in bytes.
type Limit struct {
	Group string `json:"group"` // of the control group, below its mount: "/system.slice/sluice.service"
	File  string `json:"file"`  // that sets it: "memory.max", "memory.limit_in_bytes"
	Bytes uint64 `json:"bytes"`
	Room  uint64 `json:"room"` // what is left of it, caches that the kernel can drop included
}

// Memory gives what main memory this process may use, and what of it is free, in bytes: the machine's, or the tightest limit of the
// control groups that it is in. 0 is not known. It starts no process.
func (m *Machine) Memory(context.Context) (total, free uint64) {
	mem := m.memory()
	return mem.Total, mem.Free
}

// Limits are the control groups' limits on main memory, the tightest first.
func (m *Machine) Limits() []Limit { return m.memory().Limits }

func (m *Machine) memory() memory {
	files := m.cfg.Files
	out := memory{Cores: m.cfg.Cores}
	groups, err := controlGroups(files)
	out.Limits = groups.limits
	total, free := uint64(math.MaxUint64), uint64(math.MaxUint64)
	if t, f := meminfo(files); t > 0 {
		total, free = t, f
	}
	for _, l := range groups.limits {
		total, free = min(total, l.Bytes), min(free, l.Room)
	}
	if total < math.MaxUint64 {
		out.Total, out.Free = total, min(free, total)
	}
	if groups.cores > 0 && groups.cores < out.Cores {
		out.Cores = groups.cores
	}
	if err != nil {
		m.warn("groups", "a control group's limit cannot be read and is not obeyed", err)
	}
	return out
}

// meminfo reads the kernel's own account. MemAvailable is what a program can get without swapping; kernels before 3.14 do not have it.
func meminfo(files fs.FS) (total, available uint64) {
	text, err := fs.ReadFile(files, "proc/meminfo")
	if err != nil {
		return 0, 0
	}
	values := map[string]uint64{}
	in := bufio.NewScanner(bytes.NewReader(text))
	for in.Scan() {
		name, rest, ok := strings.Cut(in.Text(), ":")
		if n, unit, _ := strings.Cut(strings.TrimSpace(rest), " "); ok && unit == "kB" {
			if kib, err := strconv.ParseUint(n, 10, 53); err == nil {
				values[name] = kib << 10
			}
		}
	}
	available, ok := values["MemAvailable"]
	if !ok {
		available = values["MemFree"] + values["Buffers"] + values["Cached"]
	}
	return values["MemTotal"], min(available, values["MemTotal"])
}
