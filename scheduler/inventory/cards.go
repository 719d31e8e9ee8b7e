package inventory

import (
	"io/fs"
	"path"
	"strings"
)

// Card is a GPU on the bus, whether it has a driver or not.
type Card struct {
	PCI    string `json:"pci"`
	Vendor string `json:"vendor"` // "NVIDIA", "AMD", "Intel"
}

var vendors = map[string]string{"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}

// Cards lists the GPUs that the kernel sees on the bus. A container sees the host's, also those that it may not use; some see none.
func (m *Machine) Cards() []Card {
	const dir = "sys/bus/pci/devices"
	entries, err := fs.ReadDir(m.cfg.Files, dir)
	if err != nil {
		return nil
	}
	read := func(device, name string) string {
		text, err := fs.ReadFile(m.cfg.Files, path.Join(dir, device, name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	var out []Card
	for _, e := range entries {
		// Class 0x0300: VGA, 0x0302: a GPU without a screen, 0x0380: another display; 0x12: a processing accelerator.
		class := read(e.Name(), "class")
		if vendor := vendors[read(e.Name(), "vendor")]; vendor != "" && (strings.HasPrefix(class, "0x03") || strings.HasPrefix(class, "0x12")) {
			out = append(out, Card{PCI: e.Name(), Vendor: vendor})
		}
	}
	return out
}
