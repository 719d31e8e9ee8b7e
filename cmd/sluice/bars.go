package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ollama/ollama/api"
	"golang.org/x/sys/unix"
)

// bars shows progress lines: on a terminal a bar for each layer, redrawn in place with its speed and the time left; else a
// line for each step, and for a layer one each 10 %, so that a log stays readable.
type bars struct {
	out   io.Writer
	width func() int // columns; nil: not a terminal
	now   func() time.Time

	lines []*bar
	drawn int // lines of the last picture
	at    time.Time
}

// bar is a step, or a layer where total is more than 0.
type bar struct {
	key, status       string
	first, done       int64 // bytes: at the beginning (what an earlier pull has fetched), now
	total             int64
	samples           []sample
	told              int64 // of a plain line, percent
	hasBegun, hasSize bool
}

type sample struct {
	at   time.Time
	done int64
}

const (
	redraw      = 100 * time.Millisecond // at most so often
	speedWindow = 5 * time.Second        // over which the speed is taken
	plainStep   = 10                     // percent between two lines of a log
)

func newBars(out *os.File) *bars {
	b := &bars{out: out, now: time.Now}
	if isTerminal(out) {
		b.width = func() int { return columns(out) }
	}
	return b
}

// columns is the width of a terminal, 80 where it does not say.
func columns(f *os.File) int {
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col)
	}
	return 80
}

// tell takes in a line of progress.
func (b *bars) tell(p api.ProgressResponse) {
	key := p.Digest
	if key == "" {
		key = p.Status
	}
	var line *bar
	for _, l := range b.lines {
		if l.key == key {
			line = l
		}
	}
	fresh := line == nil
	if fresh {
		line = &bar{key: key}
		b.lines = append(b.lines, line)
	}
	line.status = strings.ReplaceAll(printable(p.Status), "\n", " ")
	if p.Total > 0 {
		line.take(p.Completed, p.Total, b.now())
	}
	switch {
	case b.width == nil:
		b.plain(line, fresh)
	case fresh || b.now().Sub(b.at) >= redraw:
		b.draw()
	}
}

// end draws the last picture.
func (b *bars) end() {
	if b.width != nil && len(b.lines) > 0 {
		b.draw()
	}
}

func (l *bar) take(done, total int64, now time.Time) {
	l.total, l.done = total, min(max(done, l.done), total)
	if !l.hasBegun {
		l.hasBegun, l.first = true, l.done
	}
	if len(l.samples) == 1 && l.samples[0].done == 0 {
		l.samples = nil // what an earlier pull has fetched may come to light only now: that is no speed
	}
	l.samples = append(l.samples, sample{now, l.done})
	for len(l.samples) > 2 && now.Sub(l.samples[1].at) >= speedWindow {
		l.samples = l.samples[1:]
	}
}

// speed in bytes a second over the last seconds; 0: not known yet.
func (l *bar) speed() float64 {
	if len(l.samples) < 2 {
		return 0
	}
	first, last := l.samples[0], l.samples[len(l.samples)-1]
	span := last.at.Sub(first.at).Seconds()
	if span <= 0 {
		return 0
	}
	return float64(last.done-first.done) / span
}

func (l *bar) percent() int64 { return l.done * 100 / l.total }

func (b *bars) plain(l *bar, fresh bool) {
	switch {
	case l.total == 0:
		if fresh {
			fmt.Fprintln(b.out, l.status)
		}
	case !l.hasSize && l.done == l.total && l.first == l.total:
		l.hasSize, l.told = true, 100
		fmt.Fprintf(b.out, "%s: 100 %%, %s (there already)\n", l.status, bytesText(l.total))
	case !l.hasSize:
		l.hasSize, l.told = true, l.percent()
		from := ""
		if l.first > 0 {
			from = fmt.Sprintf(", goes on from %s", bytesText(l.first))
		}
		fmt.Fprintf(b.out, "%s: %s%s\n", l.status, bytesText(l.total), from)
	case l.percent() > l.told && (l.percent()-l.told >= plainStep || l.done == l.total):
		l.told = l.percent()
		fmt.Fprintf(b.out, "%s: %d %% of %s%s\n", l.status, l.told, bytesText(l.total), l.pace())
	}
}

// pace is the speed and, while something is left, for how long.
func (l *bar) pace() string {
	speed := l.speed()
	if speed <= 0 {
		return ""
	}
	text := fmt.Sprintf(", %s/s", bytesText(int64(speed)))
	if left := l.total - l.done; left > 0 {
		text += fmt.Sprintf(", %s left", spanText(time.Duration(float64(left)/speed*float64(time.Second))))
	}
	return text
}

// spanText writes a time left in two units at most.
func spanText(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d >= 100*time.Hour:
		return "99h+"
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}

// draw goes back up over the last picture and writes it anew. What is left of an older, longer line is cleared.
func (b *bars) draw() {
	b.at = b.now()
	var text strings.Builder
	if b.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", b.drawn)
	}
	width := b.width()
	for _, l := range b.lines {
		text.WriteString("\r" + l.text(width) + "\x1b[K\n")
	}
	b.drawn = len(b.lines)
	_, _ = io.WriteString(b.out, text.String()) // a terminal that is gone is no reason to stop
}

func (l *bar) text(width int) string {
	if l.total == 0 {
		return cut(l.status, width-1)
	}
	amount := bytesText(l.total)
	if l.done < l.total {
		amount = bytesText(l.done) + "/" + amount
	}
	before, after := fmt.Sprintf("%s %3d%%", l.status, l.percent()), amount
	if l.done < l.total {
		after += l.pace()
	}
	// The picture must not break a line, or going back up would miss its beginning.
	room := min(width-utf8.RuneCountInString(before)-utf8.RuneCountInString(after)-6, 60)
	if room < 4 {
		return cut(before+" "+after, width-1)
	}
	full := int(int64(room) * l.done / l.total)
	return before + " ▕" + strings.Repeat("█", full) + strings.Repeat(" ", room-full) + "▏ " + after
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:max(0, most)])
	}
	return text
}
