package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

const (
	// devicesLimit bounds Devices. A driver that wakes up may take some seconds for each GPU.
	devicesLimit = time.Minute
	// maxDevices bounds what a child may write about them, in bytes.
	maxDevices = 1 << 20
)

// Devices asks a child of cfg, which ends at once, what models can be loaded on: GPUs in ggml's order, and last the CPU. It takes
// a minute at most. An error names the command, and says how it ended and what it wrote last.
func Devices(ctx context.Context, cfg Config) ([]Device, error) {
	if cfg.Binary == "" {
		return nil, errors.New("runner: Config.Binary is not set")
	}
	what := "runner: " + cfg.Binary + " devices --json"
	ctx, cancel := context.WithTimeoutCause(ctx, devicesLimit, fmt.Errorf("no answer within %s", devicesLimit))
	defer cancel()
	cmd := exec.CommandContext(ctx, cfg.Binary, append(append([]string(nil), cfg.Args...), "devices", "--json")...)
	cmd.Env = append(environment(), cfg.Env...)
	log, out := &lastLines{each: cfg.Log}, &limited{max: maxDevices}
	cmd.Stdout, cmd.Stderr = out, log
	cmd.WaitDelay = drainGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // see Start
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	err := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: %w", what, exitError(err, log.last()))
	case out.cut:
		return nil, fmt.Errorf("%s: it wrote over %d bytes", what, maxDevices)
	}
	var list []Device
	if err := json.Unmarshal(out.kept.Bytes(), &list); err != nil {
		return nil, fmt.Errorf("%s: what it wrote is no list of devices: %w", what, err)
	}
	if err := checkDevices(list); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return list, nil
}

// checkDevices holds a list to what Devices promises.
func checkDevices(list []Device) error {
	seen := map[string]bool{}
	for _, d := range list {
		switch {
		case d.ID == "":
			return errors.New("it lists a device without an id")
		case seen[d.ID]:
			return fmt.Errorf("it lists the device %q twice", d.ID)
		case d.TotalBytes > 0 && d.FreeBytes > d.TotalBytes:
			return fmt.Errorf("of the device %q more is free (%d bytes) than it has (%d)", d.ID, d.FreeBytes, d.TotalBytes)
		}
		seen[d.ID] = true
	}
	if len(list) == 0 || list[len(list)-1].ID != CPU {
		return fmt.Errorf("it does not list %q last", CPU)
	}
	return nil
}

// limited keeps the first bytes of what is written to it. The buffer is not embedded: its ReadFrom would take all.
type limited struct {
	kept bytes.Buffer
	max  int
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := min(len(p), l.max-l.kept.Len())
	l.cut = l.cut || room < len(p)
	_, err := l.kept.Write(p[:room])
	return len(p), err
}
