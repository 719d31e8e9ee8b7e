package inventory

import (
	"fmt"
	"strings"

	"sluice/runner"
)

// update puts NVIDIA's numbers into the engine's list, and tells whether every GPU there has live ones now. Those that use main
// memory have: the kernel's.
func update(list []runner.Device, gpus []GPU) bool {
	all := true
	pairs := match(list, gpus)
	for i := range list {
		d := &list[i]
		switch g, ok := pairs[i]; {
		case ok:
			if d.TotalBytes == 0 {
				d.TotalBytes = g.Total
			}
			d.FreeBytes = min(g.Free, d.TotalBytes)
		case d.ID != runner.CPU && !d.Integrated:
			all = false
		}
	}
	return all
}

// match finds the GPU of each of the engine's CUDA devices, by place in the list: by bus id; else, when the engine tells none, by order.
// A candidate whose size is another's is none: the engine counts a MIG slice as a device, and its order need not be the bus's.
func match(list []runner.Device, gpus []GPU) map[int]GPU {
	pairs := map[int]GPU{}
	var blind []int // CUDA devices without a bus id
	for i, d := range list {
		if !isCUDA(d) {
			continue
		}
		if d.PCI == "" {
			blind = append(blind, i)
			continue
		}
		var fits []GPU
		for _, g := range gpus {
			if samePCI(g.PCI, d.PCI) && sameSize(d.TotalBytes, g.Total) {
				fits = append(fits, g)
			}
		}
		if len(fits) == 1 { // of equal MIG slices nobody knows which one the engine has
			pairs[i] = fits[0]
		}
	}
	var whole []GPU
	for _, g := range gpus {
		if g.Slice {
			return pairs
		}
		whole = append(whole, g)
	}
	if len(pairs) > 0 || len(blind) != len(whole) {
		return pairs
	}
	byOrder := map[int]GPU{}
	for n, i := range blind {
		if !sameSize(list[i].TotalBytes, whole[n].Total) {
			return pairs
		}
		byOrder[i] = whole[n]
	}
	return byOrder
}

// sameSize compares the engine's total with the driver's. CUDA leaves out what the driver keeps for itself: 0.5 to 3 %.
func sameSize(engine, driver uint64) bool {
	return driver > 0 && (engine == 0 || engine >= driver/10*9 && engine/10*9 <= driver)
}

// samePCI compares bus ids: the engine writes 0000:1b:00.0, the driver 00000000:1B:00.0.
func samePCI(a, b string) bool {
	x, okA := parsePCI(a)
	y, okB := parsePCI(b)
	return okA && okB && x == y
}

func parsePCI(text string) (id [4]uint32, ok bool) {
	text = strings.TrimSpace(text)
	if n := strings.Count(text, ":"); n == 1 {
		text = "0:" + text // without a domain
	}
	n, err := fmt.Sscanf(text, "%x:%x:%x.%x", &id[0], &id[1], &id[2], &id[3])
	return id, err == nil && n == 4
}
