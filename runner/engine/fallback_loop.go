package engine

import (
	"context"
	"errors"
	"time"

	"github.com/ollama/ollama/ml"
	ollama "github.com/ollama/ollama/model"
	modelinput "github.com/ollama/ollama/model/input"
	"github.com/ollama/ollama/runner/ollamarunner"

	"sluice/fault"
	"sluice/runner"
)

// moduleLoop owns the fallback engine's model and its cache. It is Ollama's batch loop without its pipelining of two batches:
// each running answer has its next token in the batch, and prompts fill the rest.
type moduleLoop struct {
	*module
	cache  *ollamarunner.InputCache
	cached bool                                    // the model has a cache; without one, each batch holds a whole input
	free   int                                     // sequences without an answer
	owners map[*ollamarunner.InputCacheSlot]string // whose prompt each was last given

	queue   []*moduleAnswer // wait for a sequence
	running []*moduleAnswer // oldest first
}

// moduleAnswer is one answer in the making, or an input to embed. After it was handed to the loop it is the loop's.
type moduleAnswer struct {
	ctx    context.Context //nolint:containedctx // a request on its way through a channel
	group  *group
	index  int
	prompt []*modelinput.Input
	owner  string
	images *moduleImages
	keep   int
	limit  int
	shift  bool
	pick   *modulePick
	answer *answer
	// embedded takes the vector of the whole input; such an answer draws nothing. nil for answers.
	embedded func([]float32)

	// What follows lives as long as it has a sequence.
	slot    *ollamarunner.InputCacheSlot
	left    []*modelinput.Input // not yet computed
	pending []*modelinput.Input // in this batch
	row     int                 // of the batch's outputs; -1 none
	began   time.Time
	drawn   int
	ended   bool
}

// run works for the life of the process. A panic in the module ends the process: what its cache holds then is not known, and
// the parent starts another.
func (l *moduleLoop) run() {
	for {
		if len(l.queue)+len(l.running) == 0 {
			f, ok := <-l.work
			if !ok {
				return
			}
			f(l)
			continue
		}
		select {
		case f := <-l.work:
			f(l)
			continue
		default:
		}
		l.drop()
		l.admit()
		if l.step() {
			continue
		}
		select { // all readers are behind
		case f := <-l.work:
			f(l)
		case <-l.pump.wake:
		}
	}
}

// drop gives up answers whose caller left.
func (l *moduleLoop) drop() {
	waiting := l.queue[:0]
	for _, a := range l.queue {
		if a.ctx.Err() != nil || a.group.failed {
			l.end(a, context.Cause(a.ctx))
			continue
		}
		waiting = append(waiting, a)
	}
	l.queue = waiting
	for _, a := range l.running {
		if a.ctx.Err() != nil || a.group.failed {
			l.end(a, context.Cause(a.ctx))
		}
	}
	l.sweep()
}

// end ends an answer, with an error for the whole request or without.
func (l *moduleLoop) end(a *moduleAnswer, err error) {
	if a.ended {
		return
	}
	a.ended = true
	if err != nil {
		a.group.failed = true
		a.group.out.finish(err)
	}
	if a.pick != nil {
		a.pick.free()
	}
	if a.slot != nil {
		a.slot.InUse = false
		l.free++
	}
	a.images.free()
}

// sweep forgets what has ended.
func (l *moduleLoop) sweep() {
	still := l.running[:0]
	for _, a := range l.running {
		if !a.ended {
			still = append(still, a)
		}
	}
	clear(l.running[len(still):])
	l.running = still
}

// admit gives sequences to those who wait.
func (l *moduleLoop) admit() {
	for l.free > 0 && len(l.queue) > 0 {
		a := l.queue[0]
		l.queue = l.queue[1:]
		own := l.known(a)
		slot, left, err := l.cache.LoadCacheSlot(a.prompt, a.embedded == nil)
		if err != nil {
			l.end(a, err)
			continue
		}
		l.free--
		// The prompt is shared by the answers to one request, and the slot's inputs are appended to.
		slot.Inputs = append([]*modelinput.Input(nil), slot.Inputs...)
		a.slot, a.left, a.began = slot, left, time.Now()
		if a.index == 0 {
			a.group.usage.CachedTokens = min(len(slot.Inputs), own)
		}
		l.owners[slot] = a.owner
		l.running = append(l.running, a)
	}
}

// known is how many of an answer's inputs its owner may be told are cached: see known in slots.go.
func (l *moduleLoop) known(a *moduleAnswer) int {
	own := 0
	for slot, owner := range l.owners {
		if owner != a.owner {
			continue
		}
		n := 0
		for n < len(slot.Inputs) && n < len(a.prompt) &&
			slot.Inputs[n].Token == a.prompt[n].Token && slot.Inputs[n].MultimodalHash == a.prompt[n].MultimodalHash {
			n++
		}
		own = max(own, n)
	}
	return own
}

// step computes one batch, and says whether there was something to compute.
func (l *moduleLoop) step() bool {
	ctx := l.model.Backend().NewContext()
	defer ctx.Close()
	batch, tokens, outputs := l.gather(ctx)
	l.sweep() // a full context ends an answer
	if len(tokens) == 0 {
		return len(l.running) == 0
	}
	batch.Inputs = ctx.Input().FromInts(tokens, len(tokens))
	batch.Outputs = ctx.Input().FromInts(outputs, len(outputs))
	ctx.SetBatchSize(len(tokens))
	result, err := ollama.Forward(ctx, l.model, batch)
	if err != nil {
		l.failed(err)
		return true
	}
	ctx.Compute(result) // ollama.Forward has put it into the graph
	l.computed(result.Floats(), len(outputs))
	return true
}

// failed ends all answers of a batch that could not be computed.
func (l *moduleLoop) failed(err error) {
	for _, a := range l.running {
		if len(a.pending) > 0 {
			a.slot.Inputs = nil
			if l.cached {
				_ = l.model.Config().Cache.Remove(a.slot.Id, 0, maxInt32)
			}
			l.end(a, fault.Wrap(err, fault.Internal, "engine", "the fallback engine could not compute a batch"))
		}
	}
	l.sweep()
}

// gather takes the inputs of the next batch: first of the answers that run, one each, then of prompts, oldest first.
func (l *moduleLoop) gather(ctx ml.Context) (batch modelinput.Batch, tokens, outputs []int32) {
	for _, reading := range []bool{false, true} {
		for _, a := range l.running {
			if a.ended || a.reading() != reading || a.group.out.full() {
				continue
			}
			if a.embedded != nil && len(tokens) > 0 {
				continue // an embedding is made of all that is in the batch
			}
			tokens, outputs = l.take(ctx, a, &batch, tokens, outputs)
			if a.embedded != nil && len(a.pending) > 0 {
				return batch, tokens, outputs
			}
		}
	}
	return batch, tokens, outputs
}

// reading says whether the prompt is not computed to its end.
func (a *moduleAnswer) reading() bool { return a.drawn == 0 }

// take puts as many of an answer's inputs into the batch as have room. Some must stay together, as those of an image do.
func (l *moduleLoop) take(ctx ml.Context, a *moduleAnswer, batch *modelinput.Batch, tokens, outputs []int32) (_, _ []int32) {
	a.pending, a.row = nil, -1
	if !l.cached {
		a.left = append(a.slot.Inputs, a.left...)
		a.slot.Inputs = nil
	}
	room := l.batch
	for i, in := range a.left {
		together := 1 + in.SameBatch
		room = max(room, together)
		if len(tokens)+together > room {
			break
		}
		if len(a.slot.Inputs)+len(a.pending)+together > l.numCtx {
			if len(a.pending) > 0 {
				break // the next batch makes room
			}
			if !l.makeRoom(a, together) {
				return tokens, outputs
			}
			return l.take(ctx, a, batch, tokens, outputs)
		}
		if in.Multimodal != nil {
			parts, err := a.images.tensors(l.model.Backend(), ctx, in.Multimodal)
			if err != nil {
				l.end(a, err)
				return tokens, outputs
			}
			batch.Multimodal = append(batch.Multimodal, modelinput.MultimodalIndex{Index: len(tokens), Multimodal: parts})
		}
		tokens = append(tokens, in.Token)
		batch.Positions = append(batch.Positions, int32(len(a.slot.Inputs)+len(a.pending)))
		batch.Sequences = append(batch.Sequences, a.slot.Id)
		if i+1 == len(a.left) || a.embedded != nil {
			a.row = len(outputs)
			outputs = append(outputs, int32(len(tokens)-1))
		}
		a.pending = append(a.pending, in)
	}
	a.left = a.left[len(a.pending):]
	return tokens, outputs
}

// makeRoom shifts a full context for some inputs, or ends the answer. It says whether the answer goes on.
func (l *moduleLoop) makeRoom(a *moduleAnswer, together int) bool {
	if !a.shift {
		l.finish(a, cutLength)
		return false
	}
	err := l.cache.ShiftCacheSlot(a.slot, int32(a.keep))
	var again *ollamarunner.ErrReprocessInputs
	switch {
	case errors.As(err, &again):
		a.left = append(again.Inputs, a.left...)
	case err != nil:
		l.end(a, err)
		return false
	case len(a.slot.Inputs)+together > l.numCtx: // what must stay together has more than a context holds
		l.finish(a, cutLength)
		return false
	}
	return true
}

// computed takes the outputs of a batch: a row of logits for each answer whose inputs are all in, or an embedding.
func (l *moduleLoop) computed(values []float32, rows int) {
	for _, a := range l.running {
		if a.ended || len(a.pending) == 0 {
			continue
		}
		a.slot.Inputs = append(a.slot.Inputs, a.pending...)
		a.pending = nil
		if len(a.left) > 0 || a.row < 0 {
			continue
		}
		if a.embedded != nil {
			a.embedded(values)
			l.end(a, nil)
			continue
		}
		width := len(values) / rows
		l.draw(a, values[a.row*width:(a.row+1)*width])
	}
	l.sweep()
}

// draw takes the next token of an answer.
func (l *moduleLoop) draw(a *moduleAnswer, logits []float32) {
	if a.group.read.IsZero() {
		a.group.read = time.Now()
		a.group.usage.PromptDuration = a.group.read.Sub(a.began)
	}
	if a.limit == 0 {
		l.finish(a, cutLength)
		return
	}
	id, err := a.pick.next(logits)
	if err != nil {
		l.end(a, err)
		return
	}
	a.drawn++
	a.group.usage.EvalTokens++ // the end token counts, as it does in Ollama
	if l.isEnd(id) {
		l.finish(a, stopped)
		return
	}
	piece, err := l.tokens.Decode([]int32{id})
	if err != nil {
		l.end(a, err)
		return
	}
	a.pick.tell(logits, id, piece)
	text, stop := a.answer.add(piece)
	switch {
	case stop:
		a.pick.cut(a.answer.sent)
		l.finishWith(a, text, stopped)
		return
	case text != "":
		a.group.out.put(runner.Chunk{Index: a.index, Text: text, Logprobs: a.pick.told()})
	}
	if a.drawn == a.limit {
		l.finish(a, cutLength)
		return
	}
	a.left = []*modelinput.Input{{Token: id}}
}

func (l *moduleLoop) finish(a *moduleAnswer, reason string) { l.finishWith(a, a.answer.rest(), reason) }

func (l *moduleLoop) finishWith(a *moduleAnswer, text, reason string) {
	a.group.left--
	last := runner.Chunk{Index: a.index, Text: text, Logprobs: a.pick.told(), DoneReason: reason, Stop: a.answer.stop, Done: a.group.left == 0}
	if last.Done {
		if !a.group.read.IsZero() {
			a.group.usage.EvalDuration = time.Since(a.group.read)
		}
		last.Usage = &a.group.usage
	}
	a.group.out.put(last)
	if last.Done {
		a.group.out.finish(nil)
	}
	l.end(a, nil)
}
