package gateway

import (
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/openai"
	"github.com/ollama/ollama/types/model"

	"sluice/models"
)

// openaiModels lists the models that the caller may use. data is never null.
func (s *server) openaiModels(c *gin.Context) {
	usable, err := s.usable(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	list := openai.ListCompletion{Object: "list", Data: []openai.Model{}}
	for _, m := range usable {
		list.Data = append(list.Data, openaiModelOf(m, m.Name))
	}
	for _, name := range s.askable(c) {
		list.Data = append(list.Data, askOpenAI(askPrefix+name, s.started))
	}
	writeJSON(c, 200, list)
}

// openaiModel is one model. Its name may have slashes: the route takes all that is behind /v1/models/.
func (s *server) openaiModel(c *gin.Context) {
	name := strings.TrimPrefix(c.Param("model"), "/")
	if name == "" {
		s.openaiModels(c)
		return
	}
	if isAsk(name) {
		if _, err := s.askSource(c, name); err != nil {
			s.fail(c, err)
			return
		}
		writeJSON(c, 200, askOpenAI(name, s.started))
		return
	}
	m, err := s.model(c, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	writeJSON(c, 200, openaiModelOf(m, name))
}

func openaiModelOf(m *models.Model, id string) openai.Model {
	return openai.Model{Id: id, Object: "model", Created: max(0, m.ModifiedAt.Unix()), OwnedBy: model.ParseName(m.Name).Namespace}
}
