package fit

import "sluice/runner"

// balanced splits the whole model over all of the GPUs in proportion to their room, as nearly as layers allow: it looks for the
// smallest part of each one's room that is enough. ok is false when all of their room is not.
func (p *placing) balanced(gpus []Room) (shares []runner.Share, ok bool) {
	layers := p.c.blocks + 1
	if _, ok := p.fill(gpus, layers, true, 1); !ok {
		return nil, false
	}
	const steps = 8 // to 1/256 of the room; a layer is more
	low, high := 0.0, 1.0
	for range steps {
		mid := (low + high) / 2
		if _, ok := p.fill(gpus, layers, true, mid); ok {
			high = mid
		} else {
			low = mid
		}
	}
	return p.fill(gpus, layers, true, high)
}

// fill gives each GPU in turn as many of the last layers as its part of the room holds. No other way to cut the layers into runs reaches
// further. The shares are valid until the next call.
func (p *placing) fill(gpus []Room, layers int, everything bool, part float64) (shares []runner.Share, ok bool) {
	shares = p.scratch[:0]
	at, output := p.c.first(layers)
	several := len(gpus) > 1
	for i := range gpus {
		if at == p.c.blocks && !output {
			break
		}
		free := float64(gpus[i].Free) * part
		to := p.reach(at, len(shares) == 0, everything, several, free)
		took := to - at
		if output && to == p.c.blocks && p.holds(at, to, true, len(shares) == 0, everything, several, free) {
			output = false
			took++
		}
		if took > 0 {
			shares = append(shares, runner.Share{Device: gpus[i].Device.ID, Layers: took})
		}
		at = to
	}
	return shares, at == p.c.blocks && !output
}

// reach is the first block behind at that a GPU does not hold together with those before it.
func (p *placing) reach(at int, lead, everything, several bool, free float64) int {
	low, high := at, p.c.blocks
	for low < high {
		mid := (low + high + 1) / 2
		if p.holds(at, mid, false, lead, everything, several, free) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

func (p *placing) holds(from, to int, output, lead, everything, several bool, free float64) bool {
	w, kv, compute := p.c.gpu(part{from, to, output}, lead, everything, several)
	return float64(whole(w)+whole(kv)+whole(compute)) <= free
}
