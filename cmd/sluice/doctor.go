package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
	"sluice/scheduler/inventory"
)

// errUnwell ends the doctor with a failure; what is broken was printed.
var errUnwell = errors.New("something is broken: see above")

func doctorCmd() *cobra.Command {
	var settings settingsFlags
	var simulate string
	var role roleFlags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look at this machine and these settings, and say what is wrong and where each model would go", Args: cobra.NoArgs,
		Long: "Look at this machine and these settings, and say what is wrong and where each model would go. It needs no server, and changes nothing.\n" +
			"Exit code 1 when something is broken; a warning is no failure.\n" +
			"--simulate FILE places the models on a machine that FILE describes instead, and needs no engine.\n" +
			"--print-role-sql prints a script for psql that makes a PostgreSQL role which only reads, and looks at nothing.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			load, err := settings.loader()
			if err == nil {
				err = role.check(cmd)
			}
			if err != nil {
				return err
			}
			if role.print {
				return role.script(cmd.OutOrStdout(), func() (*config.Config, error) { return load(settings.file) })
			}
			d := &doctor{report: report{
				Version: version, Settings: settingsReport{File: settings.file}, Problems: []problem{}, Devices: []runner.Device{}, Models: modelsReport{Broken: []brokenModel{}},
				Defaults: []defaultReport{}, Places: []placeReport{},
			}}
			if simulate != "" {
				machine, err := inventory.Describe(simulate)
				if err != nil {
					return usageError{errors.New(describe(err))}
				}
				d.machine, d.report.Simulated = machine, simulate
			}
			d.examine(cmd.Context(), load)
			if wantJSON(cmd) {
				err = printJSON(cmd, d.report)
			} else {
				err = d.report.print(cmd.OutOrStdout())
			}
			if err == nil && !d.report.OK {
				err = errUnwell
			}
			return err
		},
	}
	settings.add(cmd)
	role.add(cmd)
	cmd.Flags().StringVar(&simulate, "simulate", "", "file that describes a machine, to place the models on it instead of this one")
	return cmd
}

// doctor examines one thing after the other. What is broken in one part keeps no other part from being looked at.
type doctor struct {
	report    report
	cfg       *config.Config
	catalogue catalogue
	machine   scheduler.Inventory // nil: the engine is not there
	models    []*models.Model
}

func (d *doctor) examine(ctx context.Context, load func(file string) (*config.Config, error)) {
	said := &collector{}
	before := slog.Default()
	slog.SetDefault(slog.New(said)) // what the models folder's reader logs is part of the findings
	defer slog.SetDefault(before)

	if d.settings(load) {
		if d.machine == nil {
			d.address(ctx)
			d.here(ctx)
			d.databases(ctx)
		} else {
			d.devices(ctx)
		}
		d.folder(said)
		d.roles(ctx)
		d.places(ctx)
	}
	d.report.OK = true
	for _, p := range d.report.Problems {
		d.report.OK = d.report.OK && p.Level != levelError
	}
}

// settings reads the settings and the catalogue. When the settings are wrong it goes on with those of no file; false when they are too.
func (d *doctor) settings(load func(file string) (*config.Config, error)) bool {
	s := &d.report.Settings
	cfg, err := load(s.File)
	if err != nil {
		for _, e := range single(err) {
			d.broken("settings: "+e.Error(), "the settings are in docs/SETTINGS.md; sluice serve does not start with a mistake in them")
		}
		if cfg, err = load(""); err != nil || s.File == "" {
			return false
		}
		s.Defaults = true
	}
	d.cfg, s.Home, s.Catalogue = cfg, cfg.Home, cfg.Models
	d.report.Memory = memoryReport{Models: uint64(cfg.Limits.Memory), GPUOverhead: uint64(cfg.Engine.GPUOverhead)}
	known, err := loadCatalogue(cfg.Models)
	if err != nil {
		d.broken("catalogue: "+describe(err), "")
		known, _ = loadCatalogue("")
	}
	d.catalogue.set(known)
	return true
}

// single takes apart what was told all at once.
func single(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // only the outermost is a list
		return many.Unwrap()
	}
	return []error{err}
}

const (
	levelError   = "error"
	levelWarning = "warning"
)

func (d *doctor) broken(text, hint string) { d.report.add(levelError, text, hint) }

func (d *doctor) warn(text, hint string) { d.report.add(levelWarning, text, hint) }

// collector keeps what is logged.
type collector struct{ records []slog.Record }

func (*collector) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (c *collector) Handle(_ context.Context, r slog.Record) error {
	c.records = append(c.records, r.Clone())
	return nil
}

func (c *collector) WithAttrs([]slog.Attr) slog.Handler { return c }

func (c *collector) WithGroup(string) slog.Handler { return c }

// facts gives a record's values.
func facts(r slog.Record) (model string, err error) {
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case error:
			err = v
		case string:
			if a.Key == "model" {
				model = v
			}
		}
		return true
	})
	return model, err
}

// count writes "1 model", "3 models".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
