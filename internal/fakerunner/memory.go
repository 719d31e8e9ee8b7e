package main

import (
	"fmt"
	"slices"

	"sluice/fault"
	"sluice/runner"
)

// machine is what the script says that there is.
func (s script) machine() []runner.Device {
	if s.devices != nil {
		return s.devices
	}
	return []runner.Device{{ID: runner.CPU, Library: "cpu", TotalBytes: 16 << 30, FreeBytes: 16 << 30, Threads: 1}}
}

// placed refuses shares as the engine does.
func (s script) placed(shares []runner.Share) error {
	layers := 0
	for i, share := range shares {
		same := func(o runner.Share) bool { return o.Device == share.Device }
		there := slices.ContainsFunc(s.machine(), func(d runner.Device) bool { return d.ID == share.Device })
		if share.Device == runner.CPU || !there || share.Layers <= 0 || slices.ContainsFunc(shares[:i], same) {
			return fault.New(fault.Invalid, "fakerunner", "the placement of %d layers on %q cannot be", share.Layers, share.Device)
		}
		if layers += share.Layers; s.layers > 0 && layers > s.layers+1 {
			return fault.New(fault.Invalid, "fakerunner", "the placement has %d layers; the model has %d, the output among them", layers, s.layers+1)
		}
	}
	return nil
}

// memory is what the script says that the model takes, main memory first.
func (s script) memory(placement []runner.Share, tokens int) []runner.DeviceMemory {
	weights, kv := s.weights, s.kv+s.kvToken*uint64(tokens)
	cpu := runner.DeviceMemory{Device: runner.CPU, Weights: weights, KV: kv, Compute: s.compute}
	var list []runner.DeviceMemory
	add := func(id string, weights, kv uint64) {
		list = append(list, runner.DeviceMemory{Device: id, Weights: weights, KV: kv, Compute: s.compute})
		cpu.Weights -= weights
		cpu.KV -= kv
	}
	switch {
	case s.gpu > 0:
		id := "CUDA0"
		if len(placement) > 0 {
			id = placement[0].Device
		}
		add(id, min(s.gpu, weights), 0)
	case s.layers > 0:
		for _, share := range placement {
			part := func(n uint64) uint64 { return n * uint64(share.Layers) / uint64(s.layers+1) }
			add(share.Device, part(weights), part(kv))
		}
	}
	return append([]runner.DeviceMemory{cpu}, list...)
}

// fits fails as a real load does whose memory runs out.
func (s script) fits(memory []runner.DeviceMemory) error {
	for _, m := range memory {
		if s.oomAbove > 0 && m.Bytes() > s.oomAbove {
			return noMemory(fmt.Sprintf("%d bytes could not be had of %s", m.Bytes(), m.Device))
		}
	}
	return nil
}

func noMemory(why string) error {
	return &fault.Error{
		Code: fault.TooLarge, Kind: runner.KindMemory, Op: "fakerunner", Msg: "there is not enough memory for this model: " + why,
	}
}
