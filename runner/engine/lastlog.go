package engine

/*
// Declared by hand from llama.h and mtmd.h (see llama.go).
typedef void (*sluice_log_callback)(int level, const char * text, void * data);
extern void llama_log_set(sluice_log_callback, void *); // ggml's log too
extern void mtmd_log_set(sluice_log_callback, void *);
extern void sluiceLog(int level, char * text, void * data);
static void sluice_log_to_go(void) {
	llama_log_set((sluice_log_callback) sluiceLog, 0);
	mtmd_log_set((sluice_log_callback) sluiceLog, 0);
}
*/
import "C"

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"sluice/fault"
	"sluice/runner"
)

// The package's own log function is set in its init, which comes before this one.
func init() { C.sluice_log_to_go() }

// Levels of ggml's log.
const (
	logInfo = 2
	logWarn = 3
	logMore = 5 // more of a line, such as a dot of progress
)

//export sluiceLog
func sluiceLog(level C.int, text *C.char, _ unsafe.Pointer) {
	s := C.GoString(text)
	nativeLog.add(int(level), s)
	// slog's levels are 4 apart, with Info at 0; so the package does it.
	if slog.Default().Enabled(context.Background(), slog.Level((int(level)-logInfo)*4)) {
		fmt.Fprint(os.Stderr, s)
	}
}

// nativeLog keeps what the C side said last, as far as it tells why a load failed or what it took.
var nativeLog lastLog

// lastLog is the tail of a log. Any thread may add to it.
type lastLog struct {
	mu    sync.Mutex
	lines []string
	count int // of all lines that were kept at some time
}

// maxLogged lines are kept: a load has a few for each device.
const maxLogged = 512

func (l *lastLog) add(level int, text string) {
	if (level < logWarn || level == logMore) && !strings.Contains(text, " buffer size =") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(text) {
		if len(l.lines) == maxLogged {
			l.lines = append(l.lines[:0], l.lines[1:]...)
		}
		l.lines = append(l.lines, strings.TrimRight(line, "\n"))
		l.count++
	}
}

// mark is for since.
func (l *lastLog) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// since gives what was kept since a mark.
func (l *lastLog) since(mark int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(l.count-mark, len(l.lines))
	return append([]string(nil), l.lines[len(l.lines)-n:]...)
}

// noMemory is the fault of a load that failed for want of memory.
func noMemory(cause error, why string) error {
	return &fault.Error{
		Code: fault.TooLarge, Kind: runner.KindMemory, Op: "engine.Load", Err: cause,
		Msg:  "there is not enough memory for this model: " + why,
		Hint: "ask for a smaller num_ctx or fewer in parallel, or unload another model",
	}
}

// memoryFault is the fault of a load that failed with cause, if what was logged since a mark tells that memory ran out; else nil.
func memoryFault(cause error, mark int) error {
	if why, ok := outOfMemory(nativeLog.since(mark)); ok {
		return noMemory(cause, why)
	}
	return nil
}

// outOfMemory says whether lines of the log tell that memory ran out, and what could not be had.
func outOfMemory(lines []string) (why string, ok bool) {
	for _, line := range lines {
		if m := failedOutput.FindStringSubmatch(line); m != nil {
			return m[1] + " MiB could not be had for the outputs", true
		}
	}
	for _, line := range lines {
		// ggml-alloc.c: it knows the buffer and the bytes. llama.cpp says once more, with less, that it failed.
		if m := failedBuffer.FindStringSubmatch(line); m != nil {
			if bytes, err := strconv.ParseFloat(m[2], 64); err == nil {
				return fmt.Sprintf("%s could not be had of %s", size(bytes), whereabouts(m[1])), true
			}
		}
	}
	for _, line := range lines {
		low := strings.ToLower(line)
		for _, sign := range []string{
			"out of memory", "bad_alloc", "cannot allocate memory", "unable to allocate", "failed to allocate", "insufficient memory",
			"not enough memory", "outofdevicememory", "outofhostmemory",
		} {
			if strings.Contains(low, sign) {
				return "llama.cpp says " + strconv.Quote(sign), true // not the line: it may name files
			}
		}
	}
	return "", false
}

var (
	failedBuffer = regexp.MustCompile(`failed to allocate (\S+) buffer of size (\d+)`)
	failedOutput = regexp.MustCompile(`failed to allocate output buffer of size ([0-9.]+) MiB`)
)

// whereabouts is where a type of buffers is.
func whereabouts(buffer string) string {
	if strings.HasPrefix(buffer, "CPU") || strings.HasSuffix(buffer, "_Host") {
		return "main memory"
	}
	return buffer
}

// size writes bytes for people.
func size(bytes float64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", bytes/(1<<30))
	}
	return fmt.Sprintf("%.0f MiB", bytes/(1<<20))
}
