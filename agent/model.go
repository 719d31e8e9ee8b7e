package agent

import (
	"slices"
	"strings"

	"sluice/access"
	"sluice/fault"
)

// choose decides which model is asked: the one that the ask names, else the configured one. An unknown name is the
// Completer's to report. The approved list is the operator's; an empty one approves every installed model.
func (a *Agent) choose(who access.Principal, named string) (string, error) {
	model := named
	if model == "" {
		model = a.cfg.Model
	}
	if model == "" {
		return "", &fault.Error{
			Code: fault.Conflict, Op: "agent.Ask", Msg: "no model is configured for questions about databases",
			Hint: "name a model in the request, or set agent.model in the configuration",
		}
	}
	same := func(other string) bool { return fullName(other) == fullName(model) }
	if len(a.cfg.Approved) > 0 && !slices.ContainsFunc(a.cfg.Approved, same) {
		return "", &fault.Error{
			Code: fault.Denied, Op: "agent.Ask", Msg: "model '" + model + "' is not approved for questions about databases",
			Hint: "approved are: " + strings.Join(a.cfg.Approved, ", "),
		}
	}
	if !access.MayModel(who, model) {
		return "", fault.New(fault.Denied, "agent.Ask", "this key may not use model '%s'", model)
	}
	return model, nil
}

// fullName folds the ways to write one model: without case, and "latest" for a missing tag.
func fullName(name string) string {
	name = strings.ToLower(name)
	if last := name[strings.LastIndex(name, "/")+1:]; !strings.Contains(last, ":") {
		name += ":latest"
	}
	return name
}
