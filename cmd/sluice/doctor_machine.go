package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/runner"
	"sluice/scheduler/inventory"
)

// here looks at this machine: the engine, what it sees, and why it sees no GPU.
func (d *doctor) here(ctx context.Context) {
	r := &runnerReport{}
	d.report.Runner = r
	binary, err := runnerBinary(d.cfg.Runner)
	libraries, passedOver := backendLibraries(d.cfg.Backends, binary)
	for _, dir := range passedOver {
		d.warn("backends: the engine passes over "+dir, "it takes libraries only from folders with lib/ollama in their path, and from the runner's own: move them to …/lib/ollama")
	}
	child := runner.Config{Binary: binary, Env: (&server{cfg: d.cfg}).backends()}
	if err == nil {
		r.Path = binary
		err = speaks(ctx, child)
	}
	r.Works = err == nil
	if err != nil {
		d.broken(err.Error(), "no model can be loaded without it")
	}
	machine, err := inventory.New(inventory.Config{List: func(ctx context.Context) ([]runner.Device, error) { return runner.Devices(ctx, child) }})
	if err != nil {
		d.broken(err.Error(), "")
		return
	}
	d.report.Memory.Groups = machine.Limits()
	if r.Works {
		d.machine = machine
		d.devices(ctx)
	}
	if !slices.ContainsFunc(d.report.Devices, func(d runner.Device) bool { return d.ID != runner.CPU }) {
		seen := gpuFacts{backends: d.cfg.Backends, libraries: libraries, cards: machine.Cards(), engine: r.Works}
		seen.gpus, seen.driver = machine.NVIDIA(ctx)
		text, hint := seen.why()
		d.report.NoGPU = text
		if hint != "" {
			d.warn("no GPU is used: "+text, hint)
		}
	}
}

// devices lists what the machine has, described or real.
func (d *doctor) devices(ctx context.Context) {
	list, err := d.machine.Devices(ctx)
	if err != nil && len(list) == 0 {
		d.broken("the engine cannot list its devices: "+err.Error(), "")
		d.machine = nil
		return
	}
	if err != nil {
		d.warn("what devices have free may be out of date: "+err.Error(), "")
	}
	d.report.Devices = list
	known := d.catalogue.now()
	for _, e := range known.Models {
		for _, id := range e.Devices {
			if !slices.ContainsFunc(list, func(d runner.Device) bool { return d.ID == id }) {
				d.warn(fmt.Sprintf("catalogue: %s may be loaded on %s, which is not there", e.Name, id), "its devices are ids of the table above")
			}
		}
	}
}

// speaks starts a child and stops it again.
func speaks(ctx context.Context, child runner.Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("it said nothing for 30s"))
	defer cancel()
	p, err := runner.Start(ctx, child)
	if err != nil {
		return err
	}
	return p.Stop(ctx)
}

// backendLibraries are the names of ggml's libraries that the engine finds in these folders, and the folders that it does not look
// into: ml/backend/ggml/ggml/src/ggml.go of the module has this rule, and says nothing when it passes one over.
func backendLibraries(folders, runner string) (names, passedOver []string) {
	for _, dir := range filepath.SplitList(folders) {
		abs, err := filepath.Abs(dir)
		if err != nil || abs != filepath.Dir(runner) && !strings.Contains(abs, filepath.FromSlash("lib/ollama")) {
			passedOver = append(passedOver, dir)
			continue
		}
		found, _ := filepath.Glob(filepath.Join(abs, "*ggml-*"))
		for _, path := range found {
			names = append(names, filepath.Base(path))
		}
	}
	return names, passedOver
}

// gpuFacts is what can be seen of GPUs without the engine.
type gpuFacts struct {
	engine    bool // it works
	backends  string
	libraries []string
	cards     []inventory.Card
	gpus      []inventory.GPU
	driver    error
}

func (f gpuFacts) has(library string) bool {
	return slices.ContainsFunc(f.libraries, func(name string) bool { return strings.Contains(name, "ggml-"+library) })
}

func (f gpuFacts) card(vendor string) (inventory.Card, bool) {
	i := slices.IndexFunc(f.cards, func(c inventory.Card) bool { return c.Vendor == vendor })
	if i < 0 {
		return inventory.Card{}, false
	}
	return f.cards[i], true
}

// why says why the engine sees no GPU. A hint means that there is one, and something can be done.
func (f gpuFacts) why() (text, hint string) {
	const build = "build the library (docs/GPU.md), and set backends (SLUICE_BACKENDS) to its folder"
	card, onBus := f.card("NVIDIA")
	switch {
	case len(f.gpus) > 0 && !f.engine:
		return "the runner does not work", ""
	case len(f.gpus) > 0:
		sees := fmt.Sprintf("NVIDIA's driver sees %s (%s)", count(len(f.gpus), "GPU"), f.gpus[0].Name)
		switch {
		case f.backends == "":
			return sees + ", but backends is not set, and the runner by itself computes on the CPU", build
		case !f.has("cuda"):
			return sees + ", but the engine finds no CUDA library (libggml-cuda.so) in backends, " + f.backends, build
		}
		return sees + ", and the CUDA library is there, but the engine sees none", "the driver may be older than the CUDA that the library was built with; what goes wrong is told by: OLLAMA_LIBRARY_PATH=" +
			f.backends + " sluice-runner devices"
	case f.driver != nil && !errors.Is(f.driver, inventory.ErrNoDriver):
		return f.driver.Error(), "nvidia-smi says more; after an update of the driver the machine has to be started again"
	case f.driver == nil:
		return "NVIDIA's driver is there, but shows no GPU", "in a container: docker run --gpus all"
	case onBus:
		return fmt.Sprintf("there is an NVIDIA card (%s), but no driver: libnvidia-ml.so.1 is not found", card.PCI), "install NVIDIA's driver; in a container: docker run --gpus all"
	case len(f.cards) > 0 && !f.has("vulkan") && !f.has("hip"):
		return fmt.Sprintf("no NVIDIA card or driver; the %s GPU (%s) would need ggml's Vulkan or ROCm library in backends", f.cards[0].Vendor, f.cards[0].PCI), ""
	}
	return "there is no NVIDIA driver, and no GPU that the engine could use", ""
}
