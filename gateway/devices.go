package gateway

import (
	"slices"

	"github.com/gin-gonic/gin"

	"sluice/scheduler"
)

// device is an entry of GET /v1/devices. Sizes are in bytes.
type device struct {
	ID       string   `json:"id"` // as models.yaml and /api/ps name it
	Name     string   `json:"name"`
	Library  string   `json:"library"` // cpu, cuda, …
	Total    uint64   `json:"total_bytes"`
	Free     uint64   `json:"free_bytes"`     // at the last reading, whoever uses the rest
	Limit    uint64   `json:"limit_bytes"`    // that models may have of it
	Used     uint64   `json:"used_bytes"`     // that loaded models have, as allocated
	Reserved uint64   `json:"reserved_bytes"` // that models which are loading will have, as estimated
	Models   []string `json:"models"`
}

// devices lists what models are loaded on. The sums are the machine's, so that they agree with what is free; whose bytes they are is
// told of models that the caller may use.
func (s *server) devices(c *gin.Context, _ int) ([]device, error) {
	stats, err := s.cfg.Scheduler.Stats(c.Request.Context())
	if err != nil {
		return nil, err
	}
	who := principal(c)
	return devicesFor(stats.Devices, func(name string) bool { return mayUse(who, name) }), nil
}

func devicesFor(all []scheduler.DeviceUse, may func(model string) bool) []device {
	var out []device
	for _, d := range all {
		models := []string{} // never null: clients iterate over it
		for _, name := range d.Models {
			if may(name) {
				models = append(models, name)
			}
		}
		slices.Sort(models)
		out = append(out, device{
			ID: d.ID, Name: d.Name, Library: d.Library, Total: d.TotalBytes, Free: d.FreeBytes, Limit: d.Limit, Used: d.Used,
			Reserved: d.Reserved, Models: models,
		})
	}
	return out
}
