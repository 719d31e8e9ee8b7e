package models

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/goccy/go-yaml"

	"sluice/fault"
	"sluice/units"
)

// The roles that a model may have.
const (
	RoleChat  = "chat"
	RoleSQL   = "sql"
	RoleEmbed = "embed"
)

// Catalogue is models.yaml: the models that this installation knows, the preferred ones first, and the registries that a
// pull may ask.
type Catalogue struct {
	Registries []string `yaml:"registries"`
	Models     []Entry  `yaml:"models"`
}

// Entry is a model of the catalogue.
type Entry struct {
	Name      string      `yaml:"name"`
	Roles     []string    `yaml:"roles"`
	Source    string      `yaml:"source"`     // where a pull gets it; "": its name in the first registry
	Size      units.Bytes `yaml:"size"`       // of the download
	MinMemory units.Bytes `yaml:"min_memory"` // of the machine

	NumCtx    int            `yaml:"num_ctx"`    // tokens, when a request names none; 0: as for all models
	Parallel  int            `yaml:"parallel"`   // requests at a time; 0: as for all models
	KeepAlive *units.Seconds `yaml:"keep_alive"` // when a request names none; nil: as for all models
	Pin       bool           `yaml:"pin"`        // once loaded, never evicted for another model
	Devices   []string       `yaml:"devices"`    // ids of the devices that it may be loaded on (sluice doctor lists them); empty: any
	Replicas  int            `yaml:"replicas"`   // runners at most, each on devices of its own; 0: as many as there is room for
}

// Entry gives the catalogue's entry of a model, nil when there is none. The name is as clients write it.
func (c Catalogue) Entry(name string) *Entry {
	for i := range c.Models {
		if SameName(c.Models[i].Name, name) {
			return &c.Models[i]
		}
	}
	return nil
}

// LoadCatalogue reads models.yaml from a file.
func LoadCatalogue(path string) (Catalogue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Catalogue{}, fault.Wrap(err, fault.NotFound, "models.LoadCatalogue", "the catalogue %s cannot be read", path)
	}
	return ParseCatalogue(path, data)
}

// ParseCatalogue reads models.yaml's text; path is for messages. Unknown keys and wrong types are Invalid with their
// line; mistakes in the values are all reported at once.
func ParseCatalogue(path string, data []byte) (Catalogue, error) {
	var c Catalogue
	if err := yaml.UnmarshalWithOptions(data, &c, yaml.Strict()); err != nil {
		var ye yaml.Error
		if errors.As(err, &ye) && ye.GetToken() != nil && ye.GetToken().Position != nil {
			return Catalogue{}, fault.Wrap(err, fault.Invalid, "models.ParseCatalogue", "%s: line %d: %s", path,
				ye.GetToken().Position.Line, ye.GetMessage())
		}
		return Catalogue{}, fault.Wrap(err, fault.Invalid, "models.ParseCatalogue", "%s: %s", path, err)
	}
	if err := c.validate(); err != nil {
		return Catalogue{}, fault.Wrap(err, fault.Invalid, "models.ParseCatalogue", "%s: %s", path, err)
	}
	return c, nil
}

func (c Catalogue) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, host := range c.Registries {
		if n, err := parseName(host + "/library/x"); err != nil || n.Host != host {
			bad("registry %q is not a host", host)
		}
	}
	seen := map[string]bool{}
	for i, e := range c.Models {
		n, err := parseName(e.Name)
		if err != nil {
			bad("model %d: invalid name %q", i+1, e.Name)
			continue
		}
		if seen[n.DisplayShortest()] {
			bad("model %s is there twice", e.Name)
		}
		seen[n.DisplayShortest()] = true
		if len(e.Roles) == 0 {
			bad("model %s has no roles", e.Name)
		}
		for _, role := range e.Roles {
			if !slices.Contains([]string{RoleChat, RoleSQL, RoleEmbed}, role) {
				bad("model %s: unknown role %q: chat, sql or embed", e.Name, role)
			}
		}
		if e.Source != "" {
			if _, err := parseName(e.Source); err != nil {
				bad("model %s: invalid source %q", e.Name, e.Source)
			}
		}
		if e.NumCtx < 0 || e.Parallel < 0 || e.Replicas < 0 {
			bad("model %s: num_ctx, parallel and replicas must not be negative", e.Name)
		}
		// llama.cpp computes with at most 256 sequences at a time
		if e.Parallel > 256 || e.NumCtx > math.MaxInt32 {
			bad("model %s: parallel is at most 256, num_ctx at most %d", e.Name, math.MaxInt32)
		}
		for k, id := range e.Devices {
			if id == "" || slices.Contains(e.Devices[:k], id) {
				bad("model %s: device %q is empty or there twice", e.Name, id)
			}
		}
		if e.Pin && e.KeepAlive != nil && *e.KeepAlive >= 0 {
			bad("model %s: pin keeps it for ever, so that keep_alive says nothing; leave one of them out", e.Name)
		}
	}
	return errors.Join(errs...)
}

// Default is the first model of a role that is installed and fits into the memory; 0 bytes is not known, and everything
// fits. When there is none, missing is the first that would fit: it has the size and the source to tell. Both are empty
// when nothing of that role fits.
func (c Catalogue) Default(role string, installed func(name string) bool, memoryBytes uint64) (name string, missing *Entry) {
	for i := range c.Models {
		e := &c.Models[i]
		if !slices.Contains(e.Roles, role) || (memoryBytes > 0 && uint64(e.MinMemory) > memoryBytes) {
			continue
		}
		if installed(e.Name) {
			return e.Name, nil
		}
		if missing == nil {
			missing = e
		}
	}
	return "", missing
}
