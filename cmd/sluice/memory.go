package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// machineMemory is what this process may use at most, in bytes: the machine's memory, or the control group's limit when
// that is lower (containers). 0 when neither can be read.
func machineMemory() uint64 {
	total := uint64(0)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		in := bufio.NewScanner(bytes.NewReader(text))
		for in.Scan() {
			var kib uint64
			if n, _ := fmt.Sscanf(in.Text(), "MemTotal: %d kB", &kib); n == 1 {
				total = kib << 10
			}
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && (total == 0 || limit < total) {
			total = limit
		}
	}
	return total
}
