package gateway

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler/remote"
)

// known are the models of servers elsewhere that were asked for while they were offered. A server that is not there now offers nothing;
// who asks for its model shall hear that, not that there is no such model.
type known struct {
	mu     sync.Mutex
	models map[string]knownModel // by the model's name in small letters
}

type knownModel struct {
	model *models.Model
	at    time.Time
}

// A server that is not back after this time is taken for one without the model.
const (
	rememberFor = time.Hour
	maxKnown    = 1024
)

// see notes a model that is offered now.
func (k *known) see(m *models.Model, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.models == nil || len(k.models) >= maxKnown {
		k.models = map[string]knownModel{}
	}
	k.models[strings.ToLower(m.Name)] = knownModel{m, now}
}

// recall gives a model that was offered not long ago, or nil.
func (k *known) recall(name string, now time.Time) *models.Model {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, have := range k.models {
		if models.SameName(have.model.Name, name) && now.Sub(have.at) < rememberFor {
			return have.model
		}
	}
	return nil
}

// offered finds a model of a server elsewhere, also of one that is not there at the moment; nil when none has it.
func (s *server) offered(name string) *models.Model {
	all := s.cfg.Scheduler.Offered()
	i := slices.IndexFunc(all, func(m *models.Model) bool { return models.SameName(m.Name, name) })
	if i < 0 {
		return s.away.recall(name, s.now())
	}
	s.away.see(all[i], s.now())
	return all[i]
}

// offeredTo are the models of servers elsewhere that a caller is told of. Another Sluice is told only of what is installed here: two that
// name each other would else hold each other to a model that neither has any more.
func (s *server) offeredTo(c *gin.Context) []*models.Model {
	if c.GetHeader(remote.HopHeader) != "" {
		return nil
	}
	return s.cfg.Scheduler.Offered()
}

// countHops refuses a request that has gone from one Sluice to the next too often, and notes for those that are made for it how often it
// has: servers that name each other as servers elsewhere would hand one on for ever, each of them holding a lease.
func countHops(c *gin.Context) error {
	text := c.GetHeader(remote.HopHeader)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fault.New(fault.Invalid, "gateway.hops", "%s must be a number", remote.HopHeader)
	}
	if n > remote.MaxHops {
		return &fault.Error{Code: fault.Conflict, Op: "gateway.hops", Msg: "the request went through " + strconv.Itoa(n) + " Sluice servers, which is too many",
			Hint: "their remotes name each other in a circle: give each remote the list of models that it shall be asked for"}
	}
	c.Request = c.Request.WithContext(remote.WithHops(c.Request.Context(), n))
	return nil
}

// unfitted is a dialog's prompt for a lease elsewhere, whose server renders by itself and fits it into a context that is not known here:
// nothing is left out. Where the model is installed here too, it is rendered all the same: a runner here may have to answer in the end.
func unfitted(m *models.Model, conv models.Conversation) (fitted, error) {
	if m.Elsewhere() {
		return fitted{}, nil
	}
	prompt, err := m.Prompt(conv)
	return fitted{prompt: prompt}, err
}

// readable refuses to show a prompt that only the server elsewhere knows.
func readable(m *models.Model) error {
	if m.Elsewhere() && m.Template == "" {
		return fault.New(fault.Unimplemented, "gateway.elsewhere", "the prompts of %q are rendered on another server, which does not tell how", m.Name)
	}
	return nil
}

// chatElsewhere is a dialog for a server that renders by itself.
func chatElsewhere(messages []api.Message, tools []api.Tool, ask asked, force *forcedCall, tool string) *runner.Chat {
	chat := &runner.Chat{Messages: messages, Tools: tools, Think: ask.think, Format: ask.schema, Options: ask.options}
	if force != nil {
		chat.Format, chat.Force = "", &runner.ForcedCall{Tool: tool, Schema: force.schema}
	}
	return chat
}

// messagesOf is a text to go on from, as a dialog of one question.
func (t *textRequest) messagesOf() []api.Message {
	user := api.Message{Role: "user", Content: t.prompt}
	for _, image := range t.images {
		user.Images = append(user.Images, image)
	}
	if t.system == "" {
		return []api.Message{user}
	}
	return []api.Message{{Role: "system", Content: t.system}, user}
}

// asText tells whether a server elsewhere gets the prompt as it was made here, not a question to put into its own template.
func (t *textRequest) asText(rep runner.LoadReport) bool {
	return t.raw || t.suffix != "" || t.template != "" || t.plain && rep.Backend == remote.OpenAI
}

// elsewhere makes what a server elsewhere goes on from: prompt, and a chat without messages where that is a text.
func (t *textRequest) elsewhere(m *models.Model, ask asked, rep runner.LoadReport) (models.Rendered, *runner.Chat, error) {
	if len(t.context) > 0 {
		return models.Rendered{}, nil, &fault.Error{Code: fault.Unimplemented, Op: "gateway.elsewhere", Hint: "send the conversation's messages to /api/chat",
			Msg: "this model runs on another server, where a conversation cannot be gone on with by its context"}
	}
	var prompt models.Rendered
	var err error
	switch {
	case t.raw || t.asText(rep) && t.suffix == "" && t.template == "":
		prompt = models.Rendered{Text: t.prompt, Images: t.images}
	case t.asText(rep) || !m.Elsewhere():
		prompt, err = m.GeneratePrompt(models.Generation{Prompt: t.prompt, System: t.system, Template: t.template, Suffix: t.suffix, Images: t.images, Think: ask.think})
	}
	if t.asText(rep) {
		return prompt, &runner.Chat{Options: ask.options}, err
	}
	return prompt, chatElsewhere(t.messagesOf(), nil, ask, nil, ""), err
}
