package scheduler

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"sluice/models"
	"sluice/runner"
)

// kind is a model of the world.
type kind struct {
	name     string
	model    *models.Model // as requests have it
	plan     plan          // plan.model is how its file really is
	settings Settings
	usual    int     // num_ctx of the other name of the same file
	away     bool    // not installed
	fails    bool    // each load
	flaky    bool    // some loads
	takes    float64 // of what is estimated, in an exact world
	least    float64 // part of what is estimated that a load has taken, or 1: the scheduler may have learned it
}

const (
	mostLoading = 6 * time.Second
	mostHeld    = 15 * time.Second
	stuck       = time.Hour
	patienceOf  = 20 * time.Second // Config.LoadTimeout
)

// copy is the model as a request has it: under its name, or under the other one of the same file.
func (k *kind) copy(alias bool) *models.Model {
	m := *k.model
	if alias && !k.away {
		m.Name += "-alias"
	}
	return &m
}

// kindsFor makes models for a machine: from tiny to larger than all of it.
func kindsFor(r *rand.Rand, m *machine) (kinds []*kind) {
	var all uint64
	gpus := []string{}
	for _, d := range m.devices {
		all += d.TotalBytes
		if d.ID != runner.CPU {
			gpus = append(gpus, d.ID)
		}
	}
	mib := func(from, to int) uint64 { return uint64(from+r.IntN(to-from)) << 20 }
	layouts := map[string]func() models.Layout{
		"tiny":  func() models.Layout { return layout(8+r.IntN(8), mib(60, 500), mib(4, 12)<<0/1024) },
		"small": func() models.Layout { return layout(16+r.IntN(8), mib(700, 2500), uint64(16+r.IntN(48))<<10) },
		"mid":   func() models.Layout { return layout(32, mib(3500, 9000), uint64(64+r.IntN(96))<<10) },
		"large": func() models.Layout { return layout(80, mib(34000, 45000), 320<<10) },
		"moe": func() models.Layout {
			l := layout(48, mib(14000, 20000), 96<<10)
			l.Experts, l.ExpertFeedForward = 8, 768
			return l
		},
		"encoder": func() models.Layout {
			l := layout(12, mib(80, 400), 12<<10)
			l.Encoder, l.Packs, l.BothWays = true, true, true
			return l
		},
		"huge":  func() models.Layout { return layout(100, all*3, 1<<20) },
		"plain": func() models.Layout { return models.Layout{} }, // of which nothing is known but its size
	}
	for _, name := range []string{"tiny", "small", "mid", "large", "tiny", "small", "mid", "moe", "encoder", "plain", "huge", "fails", "away"} {
		k := &kind{name: fmt.Sprintf("m%d-%s", len(kinds), name), away: name == "away", fails: name == "fails"}
		k.model = testModel(k.name, []int{2048, 32768, 131072}[r.IntN(3)])
		if make := layouts[name]; make != nil {
			k.model.Facts.Layout = make()
		} else {
			k.model.Facts.Layout = layouts["small"]()
		}
		k.model.Facts.Pooling = name == "encoder"
		really := *k.model
		if name == "plain" {
			k.model.Size = int64(mib(200, 2000))
			really.Facts.Layout = models.Layout{InputBytes: uint64(k.model.Size)}
		}
		k.plan = plan{model: &really, took: time.Duration(r.Int64N(int64(mostLoading / 2))), stop: time.Duration(r.IntN(400)) * time.Millisecond}
		k.flaky, k.takes, k.least = r.IntN(3) == 0, 0.9+0.1*r.Float64(), 1
		k.settings = Settings{Replicas: []int{0, 1, 1, 2, 3}[r.IntN(5)], Parallel: []int{0, 0, 1, 2}[r.IntN(4)], NumCtx: []int{0, 0, 2048, 8192}[r.IntN(4)]}
		k.usual = []int{0, 512, 16384}[r.IntN(3)]
		if r.IntN(3) == 0 {
			keep := []time.Duration{0, -1, 20 * time.Second}[r.IntN(3)]
			k.settings.KeepAlive = &keep
		}
		k.settings.Pin = len(kinds) == 4 || len(kinds) == 5 && r.IntN(2) == 0
		if len(gpus) > 0 && r.IntN(5) == 0 {
			k.settings.Devices = append(k.settings.Devices, gpus[r.IntN(len(gpus))])
			if r.IntN(2) == 0 {
				k.settings.Devices = append(k.settings.Devices, runner.CPU)
			}
			if len(kinds)%2 == 0 {
				k.settings.Devices = append(k.settings.Devices, "gpu99") // which is not there
			}
		}
		if k.away {
			k.model.Path = ""
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// vary is how the n-th load of a model goes. It follows from the seed, in whatever order loads happen.
func (o *oracle) vary(seed uint64, name string, n int) plan {
	k := o.byName[name]
	h := fnv.New64a()
	fmt.Fprint(h, name, n)
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	p := k.plan
	p.takes = k.takes
	if !o.exact { // the same model takes now more, now less, so that what was learned is wrong too
		p.takes = 0.9 + 0.2*r.Float64()
	}
	p.took += time.Duration(r.Int64N(int64(mostLoading / 2)))
	p.tick = p.took/7 + 1
	switch {
	case k.fails:
		p.fail = "refused: the file is damaged"
	case !k.flaky:
	case r.IntN(12) == 0:
		p.fail = "it broke"
	case r.IntN(12) == 0:
		p.dies = []string{"killed", "segmentation fault"}[r.IntN(2)]
	case r.IntN(12) == 0:
		p.took, p.tick = stuck, 0
	}
	return p
}
