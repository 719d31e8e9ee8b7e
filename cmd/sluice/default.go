package main

import (
	"context"
	"fmt"
	"slices"

	"sluice/agent"
	"sluice/config"
	"sluice/fault"
	"sluice/models"
	"sluice/units"
)

// defaultModel chooses the model of an ask that names none: the configured one, else the first of the catalogue's sql
// role that is installed and fits. It is decided at each ask, because models come and go.
type defaultModel struct {
	asker     *agent.Agent
	cfg       *config.Config
	installed *models.Store
	catalogue *catalogue
	memory    func(context.Context) uint64 // what a model can have here, in bytes
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

func (d *defaultModel) Ask(ctx context.Context, src agent.Source, q agent.Ask) (agent.Answer, error) {
	if q.Model == "" && d.cfg.Agent.Model == "" {
		has := func(name string) bool {
			_, err := d.installed.Get(name)
			approved := d.cfg.Agent.ApprovedModels
			return err == nil && (len(approved) == 0 || slices.ContainsFunc(approved, func(a string) bool { return models.SameName(a, name) }))
		}
		memory := d.memory(ctx)
		name, missing := d.catalogue.now().Default(models.RoleSQL, has, memory)
		if name == "" {
			e := fault.New(fault.Conflict, "ask", "no model that answers questions is installed")
			if missing != nil {
				e.Hint = fmt.Sprintf("the first that fits is %s (%s): sluice pull %s; or name an installed model", missing.Name, missing.Size, missing.Name)
			} else {
				e.Hint = fmt.Sprintf("none of the catalogue's fits into %s; name an installed model", units.Bytes(memory).Memory())
			}
			if name = d.only(); name == "" {
				return agent.Answer{}, e
			}
		}
		q.Model = name
	}
	return d.asker.Ask(ctx, src, q)
}
