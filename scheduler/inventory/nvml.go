package inventory

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// ErrNoDriver says that this machine has no NVIDIA driver: its library is not there.
var ErrNoDriver = errors.New("there is no NVIDIA driver")

// GPU is what NVIDIA's driver says about one of its GPUs, or about a MIG slice of one. Sizes are in bytes.
type GPU struct {
	Name  string
	UUID  string
	PCI   string // bus id; a slice has its GPU's
	Total uint64
	Free  uint64
	Slice bool
}

// nvidia reads by NVML, the driver's own library, which is opened at run time and never closed: the dynamic linker has noted its
// addresses by then. One goroutine at a time calls it.
type nvidia struct {
	path    string // of the library; "": as the dynamic linker finds it
	lib     nvml.Interface
	ready   bool // it was initialised, and has made no mistake since
	missing bool // it is not there: it is not looked for again
}

// needed are the functions that are called always. Calling one that a library does not have ends the process: the dynamic linker does
// that, and nobody can stop it.
var needed = []string{"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetName"}

// slicing are those of MIG, which old drivers lack.
var slicing = []string{"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"}

// read gives all GPUs; beside an error, those that could be read. After an error the library is initialised anew: a driver that was
// replaced answers none of its old handles.
func (n *nvidia) read() ([]GPU, error) {
	if n.missing {
		return nil, ErrNoDriver
	}
	if n.lib == nil {
		n.lib = nvml.New(nvml.WithLibraryPath(n.path))
	}
	if !n.ready {
		switch ret := n.lib.Init(); ret {
		case nvml.SUCCESS:
		case nvml.ERROR_LIBRARY_NOT_FOUND:
			n.missing = true
			return nil, ErrNoDriver
		default:
			return nil, refused("opening it", ret)
		}
	}
	gpus, err := n.all()
	n.ready = err == nil
	return gpus, err
}

func (n *nvidia) all() ([]GPU, error) {
	for _, name := range needed {
		if !n.has(name) {
			return nil, fmt.Errorf("NVIDIA's driver is too old: its library has no %s", name)
		}
	}
	count, ret := n.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, refused("counting GPUs", ret)
	}
	var gpus []GPU
	var errs []error
	for i := range count {
		dev, ret := n.lib.DeviceGetHandleByIndex(i)
		if ret == nvml.ERROR_NO_PERMISSION {
			continue // of another container
		}
		if ret != nvml.SUCCESS {
			errs = append(errs, refused(fmt.Sprintf("finding GPU %d", i), ret))
			continue
		}
		g, err := describe(dev)
		if err != nil {
			errs = append(errs, fmt.Errorf("GPU %d: %w", i, err))
			continue
		}
		if pci, ret := dev.GetPciInfo(); ret == nvml.SUCCESS {
			g.PCI = fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
		}
		if g.Total > 0 { // else it shares main memory and has none of its own
			gpus = append(gpus, g)
		}
		gpus = append(gpus, n.slices(dev, g)...)
	}
	return gpus, errors.Join(errs...)
}

func (n *nvidia) has(name string) bool { return n.lib.Extensions().LookupSymbol(name) == nil }

// slices gives the MIG slices of a GPU that is cut into such.
func (n *nvidia) slices(dev nvml.Device, of GPU) (out []GPU) {
	for _, name := range slicing {
		if !n.has(name) {
			return nil
		}
	}
	if mode, _, ret := dev.GetMigMode(); ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	most, ret := dev.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	for i := range most {
		mig, ret := dev.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // a place without a slice
		}
		if g, err := describe(mig); err == nil {
			g.PCI, g.Slice = of.PCI, true
			out = append(out, g)
		}
	}
	return out
}

func describe(dev nvml.Device) (g GPU, err error) {
	mem, ret := dev.GetMemoryInfo()
	switch ret {
	case nvml.SUCCESS:
		g.Total, g.Free = mem.Total, mem.Free
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION:
	default:
		return g, refused("reading a GPU's memory", ret)
	}
	if g.Name, ret = dev.GetName(); ret != nvml.SUCCESS {
		g.Name = ""
	}
	if g.UUID, ret = dev.GetUUID(); ret != nvml.SUCCESS {
		g.UUID = ""
	}
	return g, nil
}

func refused(what string, ret nvml.Return) error {
	return fmt.Errorf("NVIDIA's library: %s: %s", what, nvml.ErrorString(ret))
}
