package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"sluice/fault"
	"sluice/models"
	"sluice/units"
)

// lowDisk is less than a small model takes.
const lowDisk = 2e9

// folder reads the models folder. What it logs meanwhile are the models that cannot be used.
func (d *doctor) folder(said *collector) {
	m := &d.report.Models
	m.Folder, m.Folders = d.cfg.ModelsDir, d.cfg.Folders
	var ok bool
	if m.DiskFree, ok = diskFree(m.Folder); ok && m.DiskFree < lowDisk {
		d.warn(fmt.Sprintf("only %s of disk are free for models in %s", units.Bytes(m.DiskFree), m.Folder), "")
	}
	for _, f := range m.Folders {
		if _, err := os.ReadDir(f); err != nil {
			d.warn("folders: "+err.Error(), "")
		}
	}
	dir := m.Folder
	switch fi, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		m.Absent = true // the doctor changes nothing; the first start makes it
		if len(m.Folders) == 0 {
			return
		}
		empty, err := os.MkdirTemp("", "sluice-doctor-")
		if err != nil {
			d.broken("models: "+err.Error(), "")
			return
		}
		defer os.RemoveAll(empty)
		dir = empty
	case err != nil:
		d.broken("models: "+err.Error(), "")
		return
	case !fi.IsDir():
		d.broken("models: "+dir+" is no folder", "")
		return
	}
	store, err := models.OpenStore(dir, m.Folders...)
	if err == nil {
		d.models, err = store.List()
	}
	if err != nil {
		d.broken("models: "+describe(err), "")
		return
	}
	slices.SortFunc(d.models, func(a, b *models.Model) int { return cmp.Compare(a.Name, b.Name) })
	m.Installed = len(d.models)
	for _, r := range said.records {
		name, err := facts(r)
		switch {
		case name != "" && err != nil:
			m.Broken = append(m.Broken, brokenModel{name, describe(err)})
			if fault.CodeOf(err) == fault.Unimplemented {
				d.warn(describe(err), "")
			} else {
				d.broken(describe(err), "sluice pull "+name+" gets it again, sluice rm "+name+" removes it")
			}
		case name != "":
			d.warn(fmt.Sprintf("model '%s': %s", name, r.Message), "")
		default:
			d.warn("models: "+r.Message, "")
		}
	}
}

// diskFree is what a user may still write where the folder is, or will be.
func diskFree(dir string) (uint64, bool) {
	for {
		var s syscall.Statfs_t
		switch err := syscall.Statfs(dir, &s); {
		case err == nil:
			return s.Bavail * uint64(s.Bsize), true
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return 0, false
		}
		dir = filepath.Dir(dir)
	}
}

// roles says which models answer requests that name none.
func (d *doctor) roles(ctx context.Context) {
	if d.machine == nil {
		return
	}
	has := func(name string) bool {
		return slices.ContainsFunc(d.models, func(m *models.Model) bool { return models.SameName(m.Name, name) })
	}
	known, most := d.catalogue.now(), memory(ctx, d.machine, uint64(d.cfg.Limits.Memory))
	for _, role := range []string{models.RoleChat, models.RoleSQL, models.RoleEmbed} {
		r := defaultReport{Role: role}
		name, missing := known.Default(role, has, most)
		if r.Model = name; name == "" && missing != nil {
			r.Missing, r.Size = missing.Name, uint64(missing.Size)
		}
		d.report.Defaults = append(d.report.Defaults, r)
	}
}
