package inventory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"sluice/fault"
	"sluice/runner"
	"sluice/units"
)

// Described is a machine that is written in a file, for `sluice doctor --simulate` and tests. What it has free never changes.
type Described struct{ devices []runner.Device }

// form is the file's: YAML, of which JSON is a part.
type form struct {
	RAM     units.Bytes `yaml:"ram"`     // of the machine, or of the container
	Free    units.Bytes `yaml:"free"`    // of ram; absent: all
	Threads int         `yaml:"threads"` // cores
	GPUs    []formGPU   `yaml:"gpus"`
}

type formGPU struct {
	ID         string      `yaml:"id"`      // as the engine names it: CUDA0
	Name       string      `yaml:"name"`    // for people
	Library    string      `yaml:"library"` // cuda, vulkan, rocm …
	PCI        string      `yaml:"pci"`
	Integrated bool        `yaml:"integrated"` // it has no memory of its own
	Total      units.Bytes `yaml:"total"`
	Free       units.Bytes `yaml:"free"` // absent: all
}

// maxFile bounds the file: the parser's time grows with the square of how deep lists lie in each other.
const maxFile = 16 << 10

// Describe reads a machine from a file.
func Describe(path string) (*Described, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "inventory.Describe", "the machine %s cannot be read: %s", path, errors.Unwrap(err))
	}
	return ParseDescribed(path, text)
}

// ParseDescribed reads the file's text; path is for messages. Unknown keys and wrong types are Invalid with their line; what is wrong
// with the values is told all at once.
func ParseDescribed(path string, text []byte) (*Described, error) {
	const op = "inventory.ParseDescribed"
	if len(text) > maxFile {
		return nil, fault.New(fault.Invalid, op, "%s: it has %d bytes, more than the %d KiB that any machine needs", path, len(text), maxFile>>10)
	}
	var f form
	if err := decode(text, &f); err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
			return nil, fault.Wrap(err, fault.Invalid, op, "%s: line %d: %s", path, at.GetToken().Position.Line, at.GetMessage())
		}
		return nil, fault.Wrap(err, fault.Invalid, op, "%s: %s", path, err)
	}
	if err := f.validate(); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, op, "%s: %s", path, err)
	}
	d := &Described{}
	rest := func(free, total units.Bytes) uint64 {
		if free == 0 {
			return uint64(total)
		}
		return uint64(free)
	}
	for _, g := range f.GPUs {
		d.devices = append(d.devices, runner.Device{
			ID: g.ID, Name: g.Name, Library: g.Library, PCI: g.PCI, Integrated: g.Integrated, TotalBytes: uint64(g.Total), FreeBytes: rest(g.Free, g.Total),
		})
	}
	d.devices = append(d.devices, runner.Device{
		ID: runner.CPU, Name: "main memory", Library: "cpu", TotalBytes: uint64(f.RAM), FreeBytes: rest(f.Free, f.RAM), Threads: f.Threads,
	})
	return d, nil
}

// decode reads the text. Anchors, aliases and tags are refused, for what they are worth in such a file: on some the decoder panics, on
// others it recurses until the process ends, which nobody can recover from (both found by fuzzing).
func decode(text []byte, into *form) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("it cannot be read as YAML")
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return err
	}
	var plain plainOnly
	for _, doc := range file.Docs {
		if doc.Body != nil {
			ast.Walk(&plain, doc.Body)
		}
	}
	if plain.bad != nil {
		return fmt.Errorf("line %d: anchors, aliases and tags (%s) are not for such a file", plain.bad.Position.Line, plain.bad.Value)
	}
	return yaml.UnmarshalWithOptions(text, into, yaml.Strict())
}

// plainOnly looks for the first node that is more than keys, lists and values.
type plainOnly struct{ bad *token.Token }

func (p *plainOnly) Visit(node ast.Node) ast.Visitor {
	switch node.Type() {
	case ast.AnchorType, ast.AliasType, ast.TagType:
		if p.bad == nil {
			p.bad = node.GetToken()
		}
		return nil
	}
	return p
}

func (f form) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.RAM == 0 {
		bad("ram: how much main memory is there? such as 64GiB")
	}
	if f.Free > f.RAM {
		bad("free: %s is more than ram, %s", f.Free.Memory(), f.RAM.Memory())
	}
	if f.Threads < 1 {
		bad("threads: how many cores are there? 1 or more")
	}
	seen := map[string]bool{runner.CPU: true}
	for i, g := range f.GPUs {
		if g.ID == "" || seen[g.ID] {
			bad("gpus[%d]: id: %q is missing, there already, or %s, which main memory is", i, g.ID, runner.CPU)
		}
		seen[g.ID] = true
		if g.Library == "" {
			bad("gpus[%d]: library: is missing, such as cuda", i)
		}
		if g.Total == 0 {
			bad("gpus[%d]: total: is missing, such as 24GiB", i)
		}
		if g.Free > g.Total {
			bad("gpus[%d]: free: %s is more than total, %s", i, g.Free.Memory(), g.Total.Memory())
		}
	}
	return errors.Join(errs...)
}

// Devices gives the machine's devices, main memory last.
func (d *Described) Devices(context.Context) ([]runner.Device, error) {
	return slices.Clone(d.devices), nil
}

// Memory gives its main memory, in bytes.
func (d *Described) Memory(context.Context) (total, free uint64) {
	cpu := d.devices[len(d.devices)-1]
	return cpu.TotalBytes, cpu.FreeBytes
}
