package main

import (
	"fmt"
	"io"
	"strings"

	"sluice/runner"
	"sluice/scheduler/inventory"
	"sluice/units"
)

// report is what the doctor found. Sizes are in bytes.
type report struct {
	Version   string         `json:"version"`
	OK        bool           `json:"ok"`                  // nothing is broken; there may be warnings
	Simulated string         `json:"simulated,omitempty"` // the file that describes the machine
	Problems  []problem      `json:"problems"`
	Settings  settingsReport `json:"settings"`
	Listen    *listenReport  `json:"listen,omitempty"`
	Runner    *runnerReport  `json:"runner,omitempty"`

	Databases []databaseReport `json:"databases,omitempty"` // on PostgreSQL
	Memory    memoryReport     `json:"memory"`
	Devices   []runner.Device  `json:"devices"`
	NoGPU     string           `json:"no_gpu,omitempty"` // why there is none
	Models    modelsReport     `json:"models"`
	Defaults  []defaultReport  `json:"defaults"`
	Places    []placeReport    `json:"places"`
}

type problem struct {
	Level string `json:"level"` // error, warning
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

type settingsReport struct {
	File      string `json:"file,omitempty"`
	Defaults  bool   `json:"defaults,omitempty"` // the file is not obeyed in what follows, because of its mistakes
	Home      string `json:"home,omitempty"`
	Catalogue string `json:"catalogue,omitempty"` // "": the built-in one
}

type listenReport struct {
	Address string `json:"address"`
	Free    bool   `json:"free"`
	By      string `json:"by,omitempty"` // who has it
}

type runnerReport struct {
	Path  string `json:"path,omitempty"`
	Works bool   `json:"works"`
}

type memoryReport struct {
	Models      uint64            `json:"limit_models"` // limits.memory; 0: none
	GPUOverhead uint64            `json:"gpu_overhead"`
	Groups      []inventory.Limit `json:"control_groups,omitempty"`
}

type modelsReport struct {
	Folder    string        `json:"folder"`
	Absent    bool          `json:"absent,omitempty"`  // the folder is not there yet
	Folders   []string      `json:"folders,omitempty"` // of GGUF files, as they are
	Installed int           `json:"installed"`
	Broken    []brokenModel `json:"broken"`
	DiskFree  uint64        `json:"disk_free"`
}

type brokenModel struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// databaseReport is a source on a server elsewhere.
type databaseReport struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Schemas   []string `json:"schemas"`
	Reachable bool     `json:"reachable"`
	Error     string   `json:"error,omitempty"`   // why not
	Version   string   `json:"version,omitempty"` // of the server
	Role      string   `json:"role,omitempty"`    // that it is read as
	Tables    int      `json:"tables"`            // and views, that it may read
}

// defaultReport is the model of a role for requests that name none.
type defaultReport struct {
	Role    string `json:"role"`
	Model   string `json:"model,omitempty"`   // that is installed and fits
	Missing string `json:"missing,omitempty"` // the first that fits, when none is installed
	Size    uint64 `json:"size,omitempty"`    // of its download
}

// placeReport says where a model goes on the machine as it is now, with nothing loaded yet.
type placeReport struct {
	Model    string                `json:"model"`
	NumCtx   int                   `json:"num_ctx,omitempty"`
	Parallel int                   `json:"parallel,omitempty"`
	Layers   int                   `json:"layers,omitempty"` // of the model, the output among them
	Shares   []runner.Share        `json:"shares,omitempty"` // of layers on GPUs
	Memory   []runner.DeviceMemory `json:"memory,omitempty"` // estimated
	Warning  string                `json:"warning,omitempty"`
	Error    string                `json:"error,omitempty"` // why it cannot be loaded
	Hint     string                `json:"hint,omitempty"`
}

func (r *report) add(level, text, hint string) {
	r.Problems = append(r.Problems, problem{Level: level, Text: text, Hint: hint})
}

func mem(n uint64) string { return units.Bytes(n).Memory() }

// print writes it for people: what there is, where the models go, and last what is wrong.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "Sluice %s\n\n", r.Version)
	if err := printTable(w, []string{"WHAT", "FOUND"}, r.facts()); err != nil {
		return err
	}
	if len(r.Devices) > 0 {
		var rows [][]string
		for _, d := range r.Devices {
			name := printable(d.Name)
			if d.Threads > 0 {
				name = strings.TrimSpace(name + " (" + count(d.Threads, "thread") + ")")
			}
			rows = append(rows, []string{d.ID, name, d.Library, mem(d.TotalBytes), mem(d.FreeBytes)})
		}
		fmt.Fprintln(w)
		if err := printTable(w, []string{"DEVICE", "NAME", "LIBRARY", "TOTAL", "FREE"}, rows); err != nil {
			return err
		}
	}
	if len(r.Places) > 0 {
		var rows [][]string
		for _, p := range r.Places {
			rows = append(rows, p.row())
		}
		fmt.Fprintln(w)
		if err := printTable(w, []string{"MODEL", "NUM_CTX", "PARALLEL", "MEMORY", "WHERE IT WOULD GO NOW, ALONE"}, rows); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	if len(r.Problems) == 0 {
		fmt.Fprintln(w, "Nothing is wrong.")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s: %s\n", p.Level, printable(p.Text))
		if p.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", printable(p.Hint))
		}
	}
	return nil
}

// facts are the lines of the first table.
func (r *report) facts() (rows [][]string) {
	line := func(what, format string, args ...any) {
		rows = append(rows, []string{what, printable(fmt.Sprintf(format, args...))})
	}
	switch s := r.Settings; {
	case s.Defaults:
		line("settings", "%s cannot be used as it is; what follows is with the defaults instead", s.File)
	case s.File == "":
		line("settings", "no file given (--config): defaults and variables")
	default:
		line("settings", "%s", s.File)
	}
	if r.Settings.Home != "" {
		line("home", "%s", r.Settings.Home)
	}
	if r.Simulated != "" {
		line("machine", "as described in %s", r.Simulated)
	}
	if l := r.Listen; l != nil && l.Free {
		line("address", "%s is free", l.Address)
	} else if l != nil {
		line("address", "%s is taken by %s", l.Address, l.By)
	}
	if r.Runner != nil && r.Runner.Works {
		line("runner", "%s works", r.Runner.Path)
	} else if r.Runner != nil {
		line("runner", "does not work")
	}
	for _, d := range r.Databases {
		if d.Reachable {
			line("database "+d.Name, "PostgreSQL %s, as %s: %s in %s", d.Version, d.Role, count(d.Tables, "table"), strings.Join(d.Schemas, ", "))
		} else {
			line("database "+d.Name, "PostgreSQL, which cannot be used")
		}
	}
	if r.Models.Folder != "" {
		there := ""
		if r.Models.Absent {
			there = ", which the first start makes"
		}
		line("models", "%s installed in %s%s; %s of disk free", count(r.Models.Installed, "model"), r.Models.Folder, there, units.Bytes(r.Models.DiskFree))
		for _, f := range r.Models.Folders {
			line("", "and the GGUF files in %s", f)
		}
	}
	for _, d := range r.Defaults {
		switch {
		case d.Model != "":
			line("default "+d.Role, "%s", d.Model)
		case d.Missing != "":
			line("default "+d.Role, "none installed; to get one: sluice pull %s (%s)", d.Missing, units.Bytes(d.Size))
		}
	}
	for _, g := range r.Memory.Groups {
		line("memory limit", "%s, %s of it left: control group %s (%s)", mem(g.Bytes), mem(g.Room), g.Group, g.File)
	}
	if n := r.Memory.Models; n > 0 {
		line("memory limit", "%s for all models together: limits.memory", mem(n))
	}
	if n := r.Memory.GPUOverhead; n > 0 {
		line("memory limit", "%s stay free on each GPU: engine.gpu_overhead", mem(n))
	}
	if r.NoGPU != "" {
		line("GPU", "none: %s", r.NoGPU)
	}
	return rows
}

func (p placeReport) row() []string {
	if p.Error != "" {
		return []string{p.Model, "-", "-", "-", "nowhere: " + printable(p.Error)}
	}
	var all uint64
	for _, m := range p.Memory {
		all += m.Bytes()
	}
	return []string{p.Model, fmt.Sprint(p.NumCtx), fmt.Sprint(p.Parallel), mem(all), p.where()}
}

// where says in words which layers are on which device, and how much memory that is.
func (p placeReport) where() string {
	on := map[string]uint64{}
	for _, m := range p.Memory {
		on[m.Device] += m.Bytes()
	}
	if len(p.Shares) == 0 {
		return "main memory"
	}
	var parts []string
	layers := 0
	for _, s := range p.Shares {
		parts = append(parts, fmt.Sprintf("%s: %s, %s", s.Device, count(s.Layers, "layer"), mem(on[s.Device])))
		layers += s.Layers
	}
	rest := fmt.Sprintf("main memory: %s", mem(on[runner.CPU]))
	if n := p.Layers - layers; n > 0 {
		rest = fmt.Sprintf("main memory: %s, %s", count(n, "layer"), mem(on[runner.CPU]))
	}
	return strings.Join(append(parts, rest), "; ")
}
