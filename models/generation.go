package models

import (
	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// Generation is what /api/generate asks for. Only Prompt is needed.
type Generation struct {
	Prompt   string
	System   string // instead of the model's own
	Template string // instead of the model's own
	Suffix   string // the text behind the place to fill: needs a model with "insert"
	Images   [][]byte
	Think    *api.ThinkValue // nil: the model's own habit
}

// GeneratePrompt renders a Generation. Invalid when the template is malformed or may not come from a request, and when there
// is a suffix but no place for it in the template.
func (m *Model) GeneratePrompt(g Generation) (Rendered, error) {
	const op = "models.GeneratePrompt"
	user := api.Message{Role: "user", Content: g.Prompt}
	for _, image := range g.Images {
		user.Images = append(user.Images, image)
	}
	var messages []api.Message
	if g.System != "" {
		messages = append(messages, api.Message{Role: "system", Content: g.System})
	}
	messages = append(messages, user)
	if g.Template == "" && g.Suffix == "" {
		return m.Prompt(Conversation{Messages: messages, Think: g.Think})
	}

	p, err := m.program()
	if g.Template != "" {
		p, err = requestTemplate(g.Template)
	}
	if err != nil {
		return Rendered{}, err
	}
	images, err := m.images(messages)
	if err != nil {
		return Rendered{}, err
	}
	v := values{think: m.Thinks(g.Think)}
	if g.Suffix != "" {
		if !p.takes("suffix") {
			return Rendered{}, fault.New(fault.Invalid, op, "%q does not support insert", m.Name)
		}
		mark(messages)
		v.insert, v.prompt, v.suffix = true, messages[len(messages)-1].Content, g.Suffix
	} else {
		v.messages = m.conversation(messages)
		mark(v.messages)
	}
	if g.Template != "" && mayGrow(g.Template, v) > maxPrompt {
		return Rendered{}, fault.New(fault.Invalid, op, "the template and the prompt together could be longer than %d MiB", maxPrompt>>20)
	}
	text, err := p.render(v)
	return Rendered{Text: text, Images: images}, err
}
