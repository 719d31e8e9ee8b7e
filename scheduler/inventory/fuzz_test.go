package inventory

import (
	"testing"
	"testing/fstest"
)

// Whatever these files hold, nothing panics, and no limit has more room than it is large.
func FuzzControlGroups(f *testing.F) {
	f.Add("0::/a/b\n", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "1073741824\n", "536870912\n", "inactive_file 5\n", "150000 100000\n")
	f.Add("4:memory:/../x\n", "35 31 0:32 /docker/a /sys/fs/cgroup rw - cgroup cgroup rw,memory,cpu\n", "max\n", "-1\n", "total_active_file x\n", "max 100000\n")
	f.Add("0::/\n0::\n", "1 1 1 / /\\040 - cgroup2 x rw\n", "18446744073709551615", "99999999999999999999", "", "0 0")
	f.Fuzz(func(t *testing.T, group, mounts, limit, used, stat, cpu string) {
		files := fstest.MapFS{}
		put := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
		put("proc/self/cgroup", group)
		put("proc/self/mountinfo", mounts)
		for _, dir := range []string{"sys/fs/cgroup/", "sys/fs/cgroup/a/", "sys/fs/cgroup/a/b/"} {
			put(dir+"memory.max", limit)
			put(dir+"memory.current", used)
			put(dir+"memory.limit_in_bytes", limit)
			put(dir+"memory.usage_in_bytes", used)
			put(dir+"memory.stat", stat)
			put(dir+"cpu.max", cpu)
			put(dir+"cpu.cfs_quota_us", cpu)
			put(dir+"cpu.cfs_period_us", used)
		}
		g, _ := controlGroups(files)
		for _, l := range g.limits {
			if l.Room > l.Bytes || l.Group == "" {
				t.Errorf("%+v", l)
			}
		}
		if g.cores < 0 {
			t.Errorf("%d cores", g.cores)
		}
	})
}

func FuzzParseDescribed(f *testing.F) {
	f.Add("ram: 8GiB\nthreads: 4\ngpus:\n  - {id: CUDA0, library: cuda, total: 1GiB}\n")
	f.Add("ram: &a 8GiB\nfree: *a\nthreads: 1e3\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDescribed("m.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, dev := range d.devices {
			if dev.ID == "" || dev.TotalBytes == 0 || dev.FreeBytes > dev.TotalBytes {
				t.Errorf("%+v", dev)
			}
		}
	})
}
