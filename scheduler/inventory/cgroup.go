package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// groups is what the control groups of this process say.
type groups struct {
	limits []Limit // on main memory, the tightest first
	cores  int     // that the processor quotas allow, at least 1; 0: there is none
}

// hierarchy is a tree of control groups and our place in it.
type hierarchy struct {
	mount string // below the root, without a leading slash
	group string // below the mount, beginning with a slash
}

// controlGroups reads the limits of our group and of every group above it, as far as this mount shows them: each one holds for all
// below it. A file that is missing is no limit; one that cannot be understood is none either, and is told.
func controlGroups(files fs.FS) (groups, error) {
	var g groups
	var errs []error
	v2, v1 := hierarchies(files)
	if h, ok := v2[""]; ok {
		for dir, group := range h.upwards() {
			g.limits, errs = memoryLimits(files, dir, group, version2, g.limits, errs)
			g.cores, errs = tighter(g.cores, errs, func() (int, error) { return quota2(files, path.Join(dir, "cpu.max")) })
		}
	}
	if h, ok := v1["memory"]; ok {
		for dir, group := range h.upwards() {
			g.limits, errs = memoryLimits(files, dir, group, version1, g.limits, errs)
		}
	}
	if h, ok := v1["cpu"]; ok {
		for dir := range h.upwards() {
			g.cores, errs = tighter(g.cores, errs, func() (int, error) { return quota1(files, dir) })
		}
	}
	slices.SortStableFunc(g.limits, func(a, b Limit) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return g, errors.Join(errs...)
}

// upwards gives our folder and those above it, up to the mount, each with its group's name.
func (h hierarchy) upwards() func(yield func(dir, group string) bool) {
	return func(yield func(dir, group string) bool) {
		for group := h.group; ; group = path.Dir(group) {
			if !yield(path.Join(h.mount, group), group) || group == "/" {
				return
			}
		}
	}
}

// hierarchies finds the mounts: version 2's under the empty name, version 1's by controller.
func hierarchies(files fs.FS) (v2, v1 map[string]hierarchy) {
	v2, v1 = map[string]hierarchy{}, map[string]hierarchy{}
	ours := map[string]string{} // controller, or "" for version 2 → our group
	text, err := fs.ReadFile(files, "proc/self/cgroup")
	if err != nil {
		return v2, v1
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && strings.HasPrefix(f[2], "/") {
			for controller := range strings.SplitSeq(f[1], ",") {
				ours[controller] = f[2]
			}
		}
	}
	text, err = fs.ReadFile(files, "proc/self/mountinfo")
	if err != nil {
		return v2, v1
	}
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		mount, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 5 || len(super) < 3 {
			continue
		}
		place := func(controller string) (hierarchy, bool) {
			group, ok := ours[controller]
			return hierarchy{strings.TrimPrefix(unescape(mount[4]), "/"), below(group, unescape(mount[3]))}, ok
		}
		switch super[0] {
		case "cgroup2":
			if h, ok := place(""); ok {
				v2[""] = h
			}
		case "cgroup":
			for option := range strings.SplitSeq(super[2], ",") {
				if h, ok := place(option); ok && option != "" {
					v1[option] = h
				}
			}
		}
	}
	return v2, v1
}

// below gives a group's place under a mount that shows the tree from root on. A group outside of it (a container sees the host's name of
// its group, or "/../..") is the mount's own.
func below(group, root string) string {
	if root == "/" {
		if strings.HasPrefix(group, "/..") {
			return "/"
		}
		return path.Clean("/" + group)
	}
	if rest, ok := strings.CutPrefix(group, root); ok && (rest == "" || rest[0] == '/') {
		return path.Clean("/" + rest)
	}
	return "/"
}

// unescape reads the kernel's octal escapes of blanks in mountinfo.
func unescape(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(text)
}

// memoryFiles are the names of a version's files. The numbers in stat are those of a group with all below it.
type memoryFiles struct {
	limits    []string
	usage     string
	droppable []string // of stat: pages of files, which the kernel drops when it needs room; swap is none
}

var (
	// Above memory.high a group is slowed down to a crawl, which is as good as a limit.
	version2 = memoryFiles{[]string{"memory.max", "memory.high"}, "memory.current", []string{"inactive_file", "active_file"}}
	version1 = memoryFiles{[]string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}}
)

// unlimited: version 1 writes "no limit" as the largest number of whole pages.
const unlimited = 1 << 60

func memoryLimits(files fs.FS, dir, group string, names memoryFiles, limits []Limit, errs []error) ([]Limit, []error) {
	for _, name := range names.limits {
		limit, err := number(files, path.Join(dir, name))
		if err != nil {
			errs = append(errs, err)
		}
		if limit == nil || *limit >= unlimited {
			continue
		}
		l := Limit{Group: group, File: name, Bytes: *limit, Room: *limit}
		used, err := number(files, path.Join(dir, names.usage))
		if err != nil {
			errs = append(errs, err)
		}
		if used != nil {
			taken := *used - min(*used, droppable(files, path.Join(dir, "memory.stat"), names.droppable))
			l.Room -= min(l.Room, taken)
		}
		limits = append(limits, l)
	}
	return limits, errs
}

// number reads a file of one number. nil: there is no such file, or it says "max".
func number(files fs.FS, name string) (*uint64, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, nil //nolint:nilerr // the root group has none of these files
	}
	value := strings.TrimSpace(string(text))
	if value == "max" {
		return nil, nil
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("/%s: %.40q is not a number", name, value)
	}
	return &n, nil
}

func droppable(files fs.FS, name string, keys []string) (sum uint64) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 62); err == nil && slices.Contains(keys, key) {
			sum += n
		}
	}
	return sum
}

func tighter(cores int, errs []error, read func() (int, error)) (int, []error) {
	n, err := read()
	if err != nil {
		errs = append(errs, err)
	}
	if n > 0 && (cores == 0 || n < cores) {
		cores = n
	}
	return cores, errs
}

// quota2 reads cpu.max, "200000 100000": microseconds of every so many. Whole cores: a thread more than that waits for its turn in
// every period, and all others with it.
func quota2(files fs.FS, name string) (int, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return 0, nil //nolint:nilerr // no controller, no quota
	}
	f := strings.Fields(string(text))
	if len(f) == 2 && f[0] == "max" {
		return 0, nil
	}
	if len(f) == 2 {
		quota, errQ := strconv.ParseUint(f[0], 10, 62)
		period, errP := strconv.ParseUint(f[1], 10, 62)
		if errQ == nil && errP == nil && period > 0 {
			return wholeCores(quota, period), nil
		}
	}
	return 0, fmt.Errorf("/%s: %.40q is no quota", name, strings.TrimSpace(string(text)))
}

// quota1 reads version 1's two files; -1 is no quota.
func quota1(files fs.FS, dir string) (int, error) {
	text, err := fs.ReadFile(files, path.Join(dir, "cpu.cfs_quota_us"))
	if err != nil || strings.TrimSpace(string(text)) == "-1" {
		return 0, nil //nolint:nilerr // no controller, no quota
	}
	quota, err := number(files, path.Join(dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0, err
	}
	period, err := number(files, path.Join(dir, "cpu.cfs_period_us"))
	if err != nil || period == nil || quota == nil || *period == 0 {
		return 0, err
	}
	return wholeCores(*quota, *period), nil
}

func wholeCores(quota, period uint64) int { return int(max(1, min(quota/period, 1<<16))) }
