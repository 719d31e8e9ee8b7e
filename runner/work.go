package runner

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

// work is what a process has done so far, as the kernel counts it.
type work struct {
	cpu    time.Duration // of all its threads
	faults uint64        // pages that it had to wait for
}

// tick is the kernel's unit of CPU time in /proc: 1/100 s on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// workOf reads /proc. Where that is not to be had, a process seems to do nothing.
func workOf(pid int) work {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return work{}
	}
	// pid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime …, see proc(5); the name
	// may hold anything
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return work{}
	}
	var w work
	var user, system int64
	if _, err := fmt.Sscan(fields[9]+" "+fields[11]+" "+fields[12], &w.faults, &user, &system); err != nil {
		return work{}
	}
	w.cpu = time.Duration(user+system) * tick
	return w
}

func (w work) since(before work) work {
	return work{cpu: w.cpu - before.cpu, faults: w.faults - before.faults}
}

// busy tells work from the little that a process does which only waits: a twentieth of one core, or a page a second read
// from the disk.
func (w work) busy(in time.Duration) bool {
	return w.cpu >= in/20 || float64(w.faults) >= max(1, in.Seconds())
}
