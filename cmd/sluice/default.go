package main

import (
	"context"
	"fmt"
	"slices"

	"sluice"
	"sluice/agent"
	"sluice/config"
	"sluice/fault"
	"sluice/models"
)

// defaultModel chooses the model of an ask that names none: the configured one, else the first of the catalogue's sql
// role that is installed and fits. It is decided at each ask, because models come and go.
type defaultModel struct {
	asker     *agent.Agent
	cfg       *config.Config
	installed *models.Store
	catalogue models.Catalogue
}

// only gives the one installed model that can write, when there is just one: then there is nothing to choose.
func (d *defaultModel) only() string {
	all, err := d.installed.List()
	if err != nil {
		return ""
	}
	all = slices.DeleteFunc(all, func(m *models.Model) bool { return !slices.Contains(m.Capabilities(), "completion") })
	if len(all) != 1 {
		return ""
	}
	return all[0].Name
}

// loadCatalogue reads the operator's catalogue, else the built-in one.
func loadCatalogue(path string) (models.Catalogue, error) {
	if path != "" {
		return models.LoadCatalogue(path)
	}
	return models.ParseCatalogue("models.yaml", sluice.Catalogue)
}

func (d *defaultModel) Ask(ctx context.Context, src agent.Source, q agent.Ask) (agent.Answer, error) {
	if q.Model == "" && d.cfg.Agent.Model == "" {
		has := func(name string) bool {
			_, err := d.installed.Get(name)
			approved := d.cfg.Agent.ApprovedModels
			return err == nil && (len(approved) == 0 || slices.ContainsFunc(approved, func(a string) bool { return models.SameName(a, name) }))
		}
		name, missing := d.catalogue.Default(models.RoleSQL, has, machineMemory())
		if name == "" {
			e := fault.New(fault.Conflict, "ask", "no model that answers questions is installed")
			if missing != nil {
				e.Hint = fmt.Sprintf("install %s (%s): sluice create %s --from FILE.gguf; or name an installed model", missing.Name, missing.Size, missing.Name)
			}
			if name = d.only(); name == "" {
				return agent.Answer{}, e
			}
		}
		q.Model = name
	}
	return d.asker.Ask(ctx, src, q)
}
