package scheduler

import (
	"slices"

	"sluice/runner"
	"sluice/scheduler/fit"
)

// account is what the policy knows of memory. Each runner that is not gone has a charge on each device: as estimated while it
// loads, as it reported afterwards. What other programs have is what is missing on a device without being charged to a runner.
type account struct {
	fresh   bool   // the reading is young enough to decide on
	lagging bool   // a driver may not have shown yet what has been given back
	limit   uint64 // of all runners together; 0: none
	devices []deviceAccount
	charges map[int][]uint64 // by runner, in the order of devices
	unseen  map[int]bool     // runners that the reading may not have seen, or only in part
	main    int              // index of main memory; -1: there is none
}

type deviceAccount struct {
	device   runner.Device
	capacity uint64 // that models may have: what there is without what is kept free
	keep     uint64 // kept free
	other    uint64 // that other programs have
}

// A part of main memory is left to the system, so that it does not begin to swap, or to kill: a thirty-second, 1 GiB at most.
const (
	mainPart = 32
	mainKeep = 1 << 30
)

// keep is what stays free on a device.
func keep(d runner.Device, gpuOverhead uint64) uint64 {
	if d.ID == runner.CPU {
		return min(d.TotalBytes/mainPart, mainKeep)
	}
	return gpuOverhead
}

// newAccount makes an account of a reading. charges are those of the runners that are not gone, lag is memory of runners that
// went a moment ago, which a driver may still show as taken.
func newAccount(devices []runner.Device, gpuOverhead, limit uint64, charges map[int][]runner.DeviceMemory, unseen map[int]bool, lag []runner.DeviceMemory) *account {
	a := &account{limit: limit, charges: map[int][]uint64{}, unseen: unseen, main: -1}
	for i, d := range devices {
		if d.ID == runner.CPU {
			a.main = i
		}
		a.devices = append(a.devices, deviceAccount{device: d, keep: keep(d, gpuOverhead)})
	}
	sum, seen := make([]uint64, len(devices)), make([]uint64, len(devices))
	for id, memory := range charges {
		a.charges[id] = a.vector(memory)
		for i, n := range a.charges[id] {
			sum[i] += n
			if !unseen[id] {
				seen[i] += n
			}
		}
	}
	gone := a.vector(lag)
	for i := range a.devices {
		d := &a.devices[i]
		total := d.device.TotalBytes
		if total == 0 { // not known: what is free and what our own have
			total = d.device.FreeBytes + seen[i]
		}
		d.capacity = less(total, d.keep)
		d.other = less(less(less(total, d.device.FreeBytes), sum[i]), gone[i])
		a.lagging = a.lagging || gone[i] > 0
	}
	return a
}

// vector gives memory in the order of the devices. What lies on a GPU without memory of its own lies in main memory too; so does
// what lies on a device that nobody knows.
func (a *account) vector(memory []runner.DeviceMemory) []uint64 {
	v := make([]uint64, len(a.devices))
	for _, m := range memory {
		i := slices.IndexFunc(a.devices, func(d deviceAccount) bool { return d.device.ID == m.Device })
		if i >= 0 {
			v[i] += m.Bytes()
		}
		if a.main >= 0 && i != a.main && (i < 0 || a.devices[i].device.Integrated) {
			v[a.main] += m.Bytes()
		}
	}
	return v
}

// rooms is what each device has for a load, and all together.
type rooms struct {
	free  []uint64
	total uint64 // of all together, where there is a limit
}

// less is a - b, and 0 where b is more.
func less(a, b uint64) uint64 { return a - min(a, b) }

// whole is the machine with nothing on it, other programs neither.
func (a *account) whole() rooms {
	r := rooms{total: a.limit}
	for _, d := range a.devices {
		r.free = append(r.free, d.capacity)
	}
	return a.shared(r)
}

// without is what there is when only those runners are left for which stays is true, and no other programs.
func (a *account) without(stays func(id int) bool) rooms {
	r := a.whole()
	for id, charge := range a.charges {
		if stays(id) {
			r = r.minus(charge, a.bytes(charge))
		}
	}
	return a.shared(r)
}

// with is the same beside the other programs.
func (a *account) with(stays func(id int) bool) rooms {
	r := a.without(stays)
	for i, d := range a.devices {
		r.free[i] = less(r.free[i], d.other)
	}
	return a.shared(r)
}

// now is what there is at this moment: what is not charged, and not more than what was measured without what runners that the
// reading has not seen will take.
func (a *account) now() rooms {
	r := a.whole()
	measured := rooms{total: a.limit}
	for _, d := range a.devices {
		measured.free = append(measured.free, less(d.device.FreeBytes, d.keep))
	}
	for id, charge := range a.charges {
		r = r.minus(charge, a.bytes(charge))
		if a.unseen[id] {
			measured = measured.minus(charge, 0)
		}
	}
	return a.shared(r.atMost(measured))
}

// shared bounds GPUs without memory of their own by main memory.
func (a *account) shared(r rooms) rooms {
	for i, d := range a.devices {
		if d.device.Integrated && a.main >= 0 && i != a.main {
			r.free[i] = min(r.free[i], r.free[a.main])
		}
	}
	return r
}

// bytes is a charge on all devices, each byte once.
func (a *account) bytes(charge []uint64) (n uint64) {
	for i, b := range charge {
		if !a.devices[i].device.Integrated || a.main < 0 { // else it is in main memory's part
			n += b
		}
	}
	return n
}

func (r rooms) minus(charge []uint64, bytes uint64) rooms {
	out := rooms{free: slices.Clone(r.free), total: less(r.total, bytes)}
	for i, n := range charge {
		out.free[i] = less(out.free[i], n)
	}
	return out
}

func (r rooms) atMost(o rooms) rooms {
	out := rooms{free: slices.Clone(r.free), total: min(r.total, o.total)}
	for i := range out.free {
		out.free[i] = min(out.free[i], o.free[i])
	}
	return out
}

// place asks where a load goes in these rooms. only, where there is one, says which GPUs may be used.
func (a *account) place(load fit.Load, r rooms, only func(i int) bool) (fit.Plan, bool) {
	total := r.total
	if a.limit > 0 {
		total = max(1, total) // 0 would be no limit
	}
	var list []fit.Room
	for i, d := range a.devices {
		if i == a.main || only == nil || only(i) {
			list = append(list, fit.Room{Device: d.device, Free: r.free[i]})
		}
	}
	return fit.Place(load, list, total)
}
