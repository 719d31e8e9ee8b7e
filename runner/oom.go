package runner

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"sluice/fault"
)

// oomKills is how many processes the kernel has killed since the machine's start because memory ran out, of the machine or of
// a control group. 0 where it does not say.
func oomKills() uint64 {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return countedKills(string(text))
}

func countedKills(vmstat string) uint64 {
	for line := range strings.Lines(vmstat) {
		if number, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
			return n
		}
	}
	return 0
}

// killedForMemory turns the error of a load whose child the kernel killed for want of memory into the fault that says so. A
// child that was killed otherwise, or not at all, keeps its error. before is what oomKills said when the load began.
func killedForMemory(err error, before, now uint64) error {
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Signal != "killed" || exit.Silent > 0 || now <= before {
		return err
	}
	return &fault.Error{
		Code: fault.TooLarge, Kind: KindMemory, Op: "runner.Load", Err: exit,
		Msg:  "there is not enough memory for this model: the system ended its runner in the load because main memory ran out",
		Hint: "ask for a smaller num_ctx or fewer in parallel, or unload another model",
	}
}
