package fit

import "sluice/runner"

// Bounds of a learned factor. Beyond them the estimate is wrong in a way that a factor does not mend.
const (
	leastFactor = 0.5
	mostFactor  = 4
	// raised is by how much a load that ran out of memory raises its factor, at least.
	raised = 1.15
	// settled is a difference that teaches nothing.
	settled = 0.01
)

func bound(factor float64) float64 {
	if !(factor >= leastFactor) { // NaN too
		return leastFactor
	}
	return min(factor, mostFactor)
}

// Allocated is what a load that reported these lines has taken, to be held against an estimate: with the overhead on each GPU, which
// the engine does not report.
func Allocated(report []runner.DeviceMemory) (all uint64) {
	for _, m := range report {
		all += m.Bytes()
		if m.Device != runner.CPU {
			all += GPUOverhead
		}
	}
	return all
}

// Correct gives the factor to remember for a model (Load.Factor) after a load with the factor old, 0 none, was estimated at so many bytes
// and allocated so many (Allocated). What was too little is made up for at once. What was too much is given back by halves: another
// context may need it.
func Correct(old float64, estimated, allocated uint64) float64 {
	if old == 0 {
		old = 1
	}
	if estimated == 0 || allocated == 0 {
		return bound(old)
	}
	ratio := float64(allocated) / float64(estimated)
	switch {
	case ratio > 1+settled:
		old *= ratio
	case ratio < 1-settled:
		old *= (1 + ratio) / 2
	}
	return bound(old)
}

// Raise gives the factor for the next try after a load with the factor old ran out of memory, of which nobody knows how much it wanted.
func Raise(old float64) float64 {
	if old == 0 {
		old = 1
	}
	return bound(max(old, 1) * raised)
}
