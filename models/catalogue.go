package models

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"

	"sluice/fault"
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
	Name      string   `yaml:"name"`
	Roles     []string `yaml:"roles"`
	Source    string   `yaml:"source"`     // where a pull gets it; "": its name in the first registry
	Size      Bytes    `yaml:"size"`       // of the download
	MinMemory Bytes    `yaml:"min_memory"` // of the machine

	// What a model may be given later. A setting that nobody obeys is refused, so that nobody relies on it.
	NumCtx    any `yaml:"num_ctx"`
	Parallel  any `yaml:"parallel"`
	KeepAlive any `yaml:"keep_alive"`
	Pin       any `yaml:"pin"`
	Devices   any `yaml:"devices"`
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
		for _, later := range []struct {
			key   string
			value any
		}{{"num_ctx", e.NumCtx}, {"parallel", e.Parallel}, {"keep_alive", e.KeepAlive}, {"pin", e.Pin}, {"devices", e.Devices}} {
			if later.value != nil {
				bad("models.%s.%s is not there in this version", e.Name, later.key)
			}
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

// Bytes is a size, written like 8GiB or 398MB.
type Bytes uint64

var (
	bytesForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?)?B?$`)
	units     = map[string]float64{
		"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
	}
)

// UnmarshalYAML reads a size.
func (b *Bytes) UnmarshalYAML(decode func(any) error) error {
	var text string
	if err := decode(&text); err != nil {
		return err
	}
	m := bytesForm.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%q is not a size such as 8GiB or 398MB", text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || n*units[m[2]] > math.MaxInt64 {
		return fmt.Errorf("%q is not a size such as 8GiB or 398MB", text)
	}
	*b = Bytes(n * units[m[2]])
	return nil
}

// String writes a size in decimal units, as downloads are counted: "4.7 GB".
func (b Bytes) String() string {
	for _, u := range []string{"T", "G", "M", "K"} {
		if float64(b) >= units[u] {
			return strconv.FormatFloat(math.Round(float64(b)/units[u]*10)/10, 'f', -1, 64) + " " + u + "B"
		}
	}
	return strconv.FormatUint(uint64(b), 10) + " B"
}
