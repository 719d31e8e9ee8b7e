package fit

import (
	"sluice/models"
	"sluice/runner"
)

// Load is what is to be loaded.
type Load struct {
	Model          *models.Model
	NumCtx         int    // tokens of one sequence
	Parallel       int    // sequences
	NumBatch       int    // as runner.LoadRequest has it
	KVCacheType    string // as runner.LoadRequest has it
	FlashAttention string // as runner.LoadRequest has it
	Mmap           bool
	Layers         int      // on GPUs at most, the output among them; negative: as many as fit
	Devices        []string // ids that it may be loaded on; empty: any
	Factor         float64  // by which earlier loads of this model differed from their estimate; 0 is 1

	// What is loaded beside the model, in bytes; models.Model.Beside gives both.
	Projector uint64
	Adapters  uint64
}

// LoadOf is the load that a request asks for, free to go anywhere. It looks up the sizes of the files beside the model.
func LoadOf(m *models.Model, req runner.LoadRequest) Load {
	l := Load{
		Model: m, NumCtx: req.NumCtx, Parallel: req.Parallel, NumBatch: req.NumBatch,
		KVCacheType: req.KVCacheType, FlashAttention: req.FlashAttention, Mmap: req.UseMmap, Layers: -1,
	}
	l.Projector, l.Adapters = m.Beside()
	return l
}

// layout is the model's, nil when the load has no model.
func (l *Load) layout() *models.Layout {
	if l.Model == nil {
		return &models.Layout{}
	}
	return &l.Model.Facts.Layout
}

// trained is the length that the model was trained for, 0 unknown.
func (l *Load) trained() int {
	if l.Model == nil {
		return 0
	}
	return l.Model.Facts.ContextLength
}

// factor is the learned one within its bounds.
func (l *Load) factor() float64 {
	if l.Factor == 0 {
		return 1
	}
	return bound(l.Factor)
}
