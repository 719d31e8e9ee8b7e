package gateway

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/openai"
	"github.com/ollama/ollama/types/model"

	"sluice/access"
	"sluice/database"
	"sluice/fault"
	"sluice/models"
)

// A database is a model in every Ollama client: ask/<database> answers the last question of a chat from its rows. Here is who
// sees such models and what clients are told of them.

const (
	askPrefix = "ask/"
	askFamily = "sluice-ask"

	// askContext is about how many tokens of a question are read: the agent takes 16 KiB.
	askContext = 4096
)

// isAsk tells whether a model's name is that of a database, whether or not there is one. Such names are never looked for among
// the installed models, nor among those of servers elsewhere: another Sluice there offers its databases to the key that it
// was given, which is not the caller's.
func isAsk(name string) bool {
	if len(name) >= len(askPrefix) && strings.EqualFold(name[:len(askPrefix)], askPrefix) {
		return true
	}
	n := model.ParseName(name)
	return n.IsValid() && strings.EqualFold(n.Host, model.DefaultName().Host) && strings.EqualFold(n.Namespace, strings.TrimSuffix(askPrefix, "/"))
}

// notReserved refuses to give a model a name under which nobody could use it.
func notReserved(name string) error {
	if !isAsk(name) {
		return nil
	}
	return &fault.Error{Code: fault.Invalid, Op: "gateway.askmodel", Msg: "names that begin with " + askPrefix + " stand for databases", Hint: "choose another name for the model"}
}

// mayAsk tells whether the caller may use a database as a model: they may read of it, and no list of models leaves it out.
func mayAsk(who access.Principal, name string) bool {
	return access.MayDatabase(who, name) && access.MayModel(who, askPrefix+name)
}

// askable are the databases that the caller may use as models, sorted. Nobody in particular may use none, also where
// Ollama's routes are open to them.
func (s *server) askable(c *gin.Context) []string {
	if s.cfg.Agent == nil {
		return nil
	}
	who := principal(c)
	return slices.DeleteFunc(s.readableNames(c), func(name string) bool { return !mayAsk(who, name) })
}

// askSource finds the database of a model's name. One that the caller may not use does not exist for them.
func (s *server) askSource(c *gin.Context, name string) (*database.Source, error) {
	const op = "gateway.askmodel"
	who := principal(c)
	if who.KeyID == "" {
		return nil, &fault.Error{Code: fault.Unauthenticated, Op: op, Msg: "questions about databases need an API key or a login, also where models are open",
			Hint: "send Authorization: Bearer slc_…; sluice keys create makes a key"}
	}
	if err := countHops(c); err != nil {
		return nil, err
	}
	if s.cfg.Agent != nil && strings.HasPrefix(strings.ToLower(name), askPrefix) {
		wanted := name[len(askPrefix):]
		if tag := len(wanted) - len(":latest"); tag >= 0 && strings.EqualFold(wanted[tag:], ":latest") {
			wanted = wanted[:tag]
		}
		if src := s.cfg.Sources[wanted]; src != nil && mayAsk(who, wanted) {
			return src, nil
		}
	}
	return nil, fault.New(fault.NotFound, op, "model '%s' not found", printable(name, 200))
}

// onlyAsks says of such a model that it does nothing but answer questions.
func (s *server) onlyAsks(c *gin.Context, name string) error {
	if _, err := s.askSource(c, name); err != nil {
		return err
	}
	return fault.New(fault.Invalid, "gateway.askmodel", "%q answers questions about a database in chats, and does nothing else", printable(name, 200))
}

// anyModel is the caller with the right to every model. Who may use ask/<database> may use the model that the operator has
// chosen to answer it, by that and for that alone: the rights to data stay as they are.
func anyModel(who access.Principal) access.Principal {
	without := func(in []access.Grant) []access.Grant {
		return slices.DeleteFunc(slices.Clone(in), func(g access.Grant) bool { return g.Kind == access.GrantModel })
	}
	who.Models, who.Own, who.Holders = nil, without(who.Own), slices.Clone(who.Holders)
	for i := range who.Holders {
		who.Holders[i].Grants = without(who.Holders[i].Grants)
	}
	return who
}

// askDetails are what real clients show of a model. There is no file, so there are no parameters to count.
func askDetails() details {
	return details{ModelDetails: api.ModelDetails{Format: "sluice", Family: askFamily, Families: []string{askFamily}}, ContextLength: askContext}
}

// askCapabilities: its steps come as thinking, where a client does not turn that off.
func askCapabilities() []string { return []string{"completion", "thinking"} }

// askDigest is not a file's: clients cut it, keep it, and compare it.
func askDigest(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(askPrefix+name))) }

func askListed(name string, started time.Time) listed {
	full := askPrefix + name
	return listed{Name: full, Model: full, ModifiedAt: started.UTC(), Digest: askDigest(name), Details: askDetails(), Capabilities: askCapabilities()}
}

func askShown(name string, started time.Time) showResponse {
	return showResponse{
		Modelfile: "# " + askPrefix + name + " answers questions about the database " + name + ". There is no file of it.\n", Template: "{{ .Prompt }}",
		Details: askDetails(), Capabilities: askCapabilities(), ModifiedAt: started.UTC(),
		ModelInfo: map[string]any{"general.architecture": askFamily, "general.basename": askPrefix + name, askFamily + ".context_length": askContext},
	}
}

func askOpenAI(id string, started time.Time) openai.Model {
	return openai.Model{Id: id, Object: "model", Created: started.Unix(), OwnedBy: "sluice"}
}

// withoutAsk leaves out models whose names stand for databases.
func withoutAsk(all []*models.Model) []*models.Model {
	return slices.DeleteFunc(all, func(m *models.Model) bool { return isAsk(m.Name) })
}
