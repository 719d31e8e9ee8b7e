package fit

import (
	"slices"

	"sluice/runner"
)

// Room is what a device has left for a load.
type Room struct {
	Device runner.Device
	Free   uint64 // bytes
}

// Plan is where a load goes.
type Plan struct {
	Shares []runner.Share        // on GPUs; empty: main memory only
	Memory []runner.DeviceMemory // estimated, as Estimate has it
}

// Layers is how many layers are on GPUs, the output among them.
func (p Plan) Layers() (n int) {
	for _, s := range p.Shares {
		n += s.Layers
	}
	return n
}

// Bytes is the sum over all devices.
func (p Plan) Bytes() (n uint64) {
	for _, m := range p.Memory {
		n += m.Bytes()
	}
	return n
}

// Place chooses the one GPU with the least room that holds the load whole; else the fewest GPUs that do together, each with layers in
// proportion to its room; else as many layers as fit on GPUs, with the rest in main memory; else main memory alone. Integrated GPUs are for
// what the others cannot hold whole; what is on them takes of main memory too. More room never gives a worse plan.
//
// Load.Devices names the GPUs that may be used, and runner.CPU when blocks may stay in main memory; the input is there in any case. total
// bounds what the load may take on all devices together; 0: nothing does. ok is false when there is not enough room: then the plan
// is the one that lacks the least, so that a message can tell its numbers.
func Place(load Load, rooms []Room, total uint64) (plan Plan, ok bool) {
	p := placing{load: &load, total: total}
	p.sort(rooms)
	most := load.Layers
	if len(p.discrete)+len(p.integrated) > 0 && most != 0 {
		p.c.init(&load, true)
		if all := p.c.blocks + 1; most < 0 || most > all {
			most = all
		}
		if most > p.c.blocks {
			if p.whole(p.discrete) || p.whole(p.integrated) {
				return p.best, true
			}
		}
		if p.mayStay {
			plan, ok := p.partly(p.discrete, most)
			if other, fits := p.partly(p.integrated, most); fits && other.Layers() > plan.Layers() {
				plan, ok = other, true
			}
			if ok {
				return plan, true
			}
		}
	}
	if p.mayStay || !p.known {
		p.c.init(&load, false)
		if p.takes(nil) && p.mayStay {
			return p.best, true
		}
	}
	return p.best, false
}

// placing is the state of one Place.
type placing struct {
	load       *Load
	total      uint64
	c          costs
	discrete   []Room // most room first
	integrated []Room
	memory     uint64 // free in main memory
	mayStay    bool   // blocks, and the output, in main memory

	best    Plan // the last one that was taken, or the one that lacks the least
	lacks   uint64
	known   bool
	gpus    [16]Room
	scratch [16]runner.Share
}

// sort takes the devices that the load may use. By rank of their room, and not by their ids, more room on any of them gives more at
// every rank: so no plan that was possible gets impossible.
func (p *placing) sort(rooms []Room) {
	allowed := p.load.Devices
	p.mayStay = len(allowed) == 0 || slices.Contains(allowed, runner.CPU)
	list := p.gpus[:0]
	for _, r := range rooms {
		switch {
		case r.Device.ID == runner.CPU:
			p.memory = r.Free
		case len(allowed) == 0 || slices.Contains(allowed, r.Device.ID):
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Room) int {
		switch {
		case a.Device.Integrated != b.Device.Integrated:
			if b.Device.Integrated {
				return -1
			}
			return 1
		case a.Free > b.Free:
			return -1
		case a.Free < b.Free:
			return 1
		case a.Device.ID < b.Device.ID:
			return -1
		}
		return 1
	})
	n := 0
	for n < len(list) && !list[n].Device.Integrated {
		n++
	}
	p.discrete, p.integrated = list[:n], list[n:]
}

// whole places the whole model on GPUs.
func (p *placing) whole(gpus []Room) bool {
	if len(gpus) == 0 {
		return false
	}
	// The GPU with the least room that holds it. Equal ones are sorted by id: the first of these.
	layers := p.c.blocks + 1
	w, kv, compute := p.c.gpu(part{0, p.c.blocks, true}, true, true, false)
	need := whole(w) + whole(kv) + whole(compute)
	at := 0
	for i := range gpus {
		if gpus[i].Free >= need && gpus[i].Free < gpus[at].Free {
			at = i
		}
	}
	if p.takes(append(p.scratch[:0], runner.Share{Device: gpus[at].Device.ID, Layers: layers})) {
		return true
	}
	for n := 2; n <= len(gpus); n++ {
		if shares, ok := p.balanced(gpus[:n]); ok {
			// Still more GPUs take more in all, and as much in main memory.
			return p.takes(shares)
		}
	}
	return false
}

// partly places as many of the last layers as fit on GPUs, most at most.
func (p *placing) partly(gpus []Room, most int) (plan Plan, ok bool) {
	if len(gpus) == 0 {
		return Plan{}, false
	}
	fits := func(layers int) ([]runner.Share, bool) {
		return p.fill(gpus, layers, false, 1)
	}
	// Fewer layers fit where more do: look for the largest number.
	low, high := 0, min(most, p.c.blocks)
	for low < high {
		if mid := (low + high + 1) / 2; mid == 0 {
			break
		} else if _, ok := fits(mid); ok {
			low = mid
		} else {
			high = mid - 1
		}
	}
	// Fewer layers need fewer GPUs, and so less in all; but they leave more to main memory, of which integrated GPUs take too.
	for layers := low; layers > 0; layers-- {
		if shares, ok := fits(layers); ok && p.takes(shares) {
			return p.best, true
		}
		if p.total == 0 && !gpus[0].Device.Integrated {
			break
		}
	}
	return Plan{}, false
}

// takes says whether the shares fit, on each device and in all, and keeps the plan when they do or when none before came closer.
func (p *placing) takes(shares []runner.Share) bool {
	memory := p.c.memory(shares)
	var all, lacks uint64
	main := memory[len(memory)-1].Bytes()
	for _, m := range memory[:len(memory)-1] {
		all += m.Bytes()
		r := p.room(m.Device)
		lacks += over(m.Bytes(), r.Free)
		if r.Device.Integrated {
			main += m.Bytes()
		}
	}
	all += memory[len(memory)-1].Bytes()
	lacks += over(main, p.memory)
	if p.total > 0 {
		lacks = max(lacks, over(all, p.total))
	}
	if lacks == 0 || !p.known || lacks < p.lacks {
		p.best, p.lacks, p.known = Plan{Shares: slices.Clone(shares), Memory: memory}, lacks, true
	}
	return lacks == 0
}

func (p *placing) room(id string) Room {
	for _, r := range p.discrete {
		if r.Device.ID == id {
			return r
		}
	}
	for _, r := range p.integrated {
		if r.Device.ID == id {
			return r
		}
	}
	return Room{}
}

func over(bytes, room uint64) uint64 {
	if bytes <= room {
		return 0
	}
	return bytes - room
}
