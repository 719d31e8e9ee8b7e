package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
)

const mb = 1_000_000

// clock is a time that a test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func (c *clock) pass(d time.Duration) { c.t = c.t.Add(d) }

func layer(status, digest string, done int64) api.ProgressResponse {
	return api.ProgressResponse{Status: status, Digest: digest, Total: 400 * mb, Completed: done}
}

func TestPlainProgressIsALineForEachStepAndEachTenthPart(t *testing.T) {
	var out strings.Builder
	c := &clock{t: time.Unix(1e9, 0)}
	b := &bars{out: &out, now: c.now}
	b.tell(api.ProgressResponse{Status: "pulling manifest"})
	b.tell(layer("pulling aaaa", "sha256:aaaa", 100*mb)) // an earlier pull had that much
	for n := int64(101); n <= 400; n++ {
		c.pass(20 * time.Millisecond)
		b.tell(layer("pulling aaaa", "sha256:aaaa", n*mb))
	}
	b.tell(layer("pulling bbbb", "sha256:bbbb", 400*mb))
	b.tell(layer("pulling bbbb", "sha256:bbbb", 400*mb))
	b.tell(api.ProgressResponse{Status: "verifying\x1b]0;x sha256\ndigest"})
	b.tell(api.ProgressResponse{Status: "success"})
	b.end()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 13 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for i, want := range map[int]string{
		0: "pulling manifest", 1: "pulling aaaa: 400 MB, goes on from 100 MB", 2: "pulling aaaa: 35 % of 400 MB, 50 MB/s, 5s left",
		8: "pulling aaaa: 95 % of 400 MB, 50 MB/s, 0s left", 9: "pulling aaaa: 100 % of 400 MB, 50 MB/s",
		10: "pulling bbbb: 100 %, 400 MB (there already)", 11: "verifying ]0;x sha256 digest", 12: "success",
	} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9]*[A-K]")

func TestBarsAreRedrawnInPlaceAndNeverBreakALine(t *testing.T) {
	for _, width := range []int{10, 30, 60, 80, 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var out strings.Builder
			c := &clock{t: time.Unix(1e9, 0)}
			b := &bars{out: &out, now: c.now, width: func() int { return width }}
			b.tell(api.ProgressResponse{Status: "pulling manifest"})
			for n := int64(0); n <= 200; n++ {
				b.tell(layer("pulling aaaa", "sha256:aaaa", n*mb))
				b.tell(layer("pulling bbbb", "sha256:bbbb", 2*n*mb))
				c.pass(10 * time.Millisecond)
			}
			b.end()
			pictures := strings.Split(out.String(), "\x1b[3A")
			if len(pictures) < 10 || len(pictures) > 30 { // 2 s, 10 a second
				t.Errorf("%d pictures", len(pictures))
			}
			last := strings.Split(strings.TrimSpace(strings.ReplaceAll(escape.ReplaceAllString(pictures[len(pictures)-1], ""), "\r", "")), "\n")
			if len(last) != 3 {
				t.Fatalf("the last picture has %d lines: %q", len(last), last)
			}
			for _, line := range last {
				if n := len([]rune(line)); n >= width {
					t.Errorf("a line of %d columns on a terminal of %d: %q", n, width, line)
				}
			}
			if width < 80 {
				return
			}
			if want := regexp.MustCompile(`^pulling aaaa  50% ▕█+ +▏ 200 MB/400 MB, 100 MB/s, 2s left$`); !want.MatchString(last[1]) {
				t.Errorf("a layer on its way: %q", last[1])
			}
			if want := regexp.MustCompile(`^pulling bbbb 100% ▕█+▏ 400 MB$`); !want.MatchString(last[2]) {
				t.Errorf("a layer that is there: %q", last[2])
			}
		})
	}
}

func TestTheSpeedIsThatOfTheLastSeconds(t *testing.T) {
	c := &clock{t: time.Unix(1e9, 0)}
	l := &bar{}
	for n := int64(0); n <= 100; n++ { // 10 s at 1 MB/s
		l.take(n*mb/10, 1000*mb, c.now())
		c.pass(100 * time.Millisecond)
	}
	for n := int64(1); n <= 60; n++ { // 6 s at 10 MB/s
		l.take(10*mb+n*mb, 1000*mb, c.now())
		c.pass(100 * time.Millisecond)
	}
	if got := l.speed(); got < 9.9*mb || got > 10.1*mb {
		t.Errorf("%.1f MB/s, want 10", got/mb)
	}
	l.take(5*mb, 1000*mb, c.now()) // a line that came late
	if l.done != 70*mb {
		t.Errorf("it went back to %d", l.done)
	}
	l = &bar{}
	for n := int64(0); n <= 10; n++ { // nothing, then all that an earlier pull had, then 1 MB/s
		l.take(min(n, 1)*500*mb+n*mb/10, 1000*mb, c.now())
		c.pass(100 * time.Millisecond)
	}
	if got := l.speed(); got < .9*mb || got > 1.1*mb {
		t.Errorf("%.1f MB/s of a pull that goes on, want 1", got/mb)
	}
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m1s", 3 * time.Hour: "3h0m", 200 * time.Hour: "99h+"} {
		if got := spanText(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
