package notify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A desk is a desktop that keeps what it is told to run.
type desk struct {
	mu      sync.Mutex
	ran     []command
	missing error
	fails   error
	started chan struct{} // if not nil, run waits for it
}

func (d *desk) options(o Options) Options {
	o.Desktop, o.system = true, "linux"
	o.look = func(string) error { return d.missing }
	o.run = func(ctx context.Context, c command) error {
		d.mu.Lock()
		d.ran = append(d.ran, c)
		d.mu.Unlock()
		if d.started != nil {
			select {
			case <-d.started:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return d.fails
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

// shown counts what the desktop showed.
func (d *desk) shown() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ran)
}

// texts are what the desktop showed.
func (d *desk) texts() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, c := range d.ran {
		all = append(all, c.args[len(c.args)-1])
	}
	return strings.Join(all, "; ")
}

func TestOneQuestionOneNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		var bell bytes.Buffer
		n := New(d.options(Options{At: "http://127.0.0.1:7421/", Bell: &bell}))
		n.Asked("mail__send")
		synctest.Wait()
		if got := d.texts(); got != "a call of mail__send waits for an answer: http://127.0.0.1:7421/" || bell.String() != "\a" {
			t.Errorf("shown %q, rung %q", got, bell.String())
		}
		n.Close()
	})
}

func TestABurstIsOneNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		n := New(d.options(Options{}))
		for range 100 {
			n.Asked("fs__delete")
			synctest.Wait()
		}
		if d.shown() != 1 {
			t.Errorf("shown at once: %q", d.texts())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := d.texts(); got != "a call of fs__delete waits for an answer; 99 calls wait for an answer, the last of fs__delete" {
			t.Errorf("shown %q", got)
		}
		time.Sleep(time.Hour)
		if d.shown() != 2 {
			t.Errorf("shown without a question: %q", d.texts())
		}
		n.Close()
	})
}

func TestFailureIsLoggedOnce(t *testing.T) {
	for _, d := range []*desk{{missing: errors.New("not installed")}, {fails: errors.New("no bus")}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			n := New(d.options(Options{Every: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			for range 3 {
				n.Asked("a__b")
				time.Sleep(2 * time.Second)
			}
			n.Close()
			if got := strings.Count(log.String(), "level=WARN"); got != 1 {
				t.Errorf("logged %d times:\n%s", got, log.String())
			}
		})
	}
}

// A desktop that hangs holds up neither questions nor the end.
func TestCloseEndsWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{started: make(chan struct{})}
		n := New(d.options(Options{}))
		n.Asked("a__b")
		synctest.Wait()
		n.Asked("a__c")
		n.Close()
		if d.shown() != 1 {
			t.Errorf("ran %d", d.shown())
		}
	})
}

func TestNobodyToTell(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		n := New(Options{})
		n.Asked("a__b")
		synctest.Wait()
		n.Close()
	})
}

// Whatever a tool is called, what reaches a program is one plain argument.
func TestNamesAreInert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"$(reboot)", "'; rm -rf /", `" & quit`, "<b>", "--help", "a\nb\x1b[2J"})).Draw(t, "name")
		text := message(name, rapid.IntRange(1, 3).Draw(t, "waiting"))
		special := func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune("\"'`$<>&;|\\()", c) }
		if strings.ContainsFunc(text, special) || len(text) > 120 {
			t.Errorf("shown %q", text)
		}
		for _, system := range []string{"linux", "darwin", "windows"} {
			c, ok := commandOf(system, title, text)
			fixed, _ := commandOf(system, title, "x")
			where := append(slices.Clone(c.args), c.env...)
			different := 0
			for i, part := range append(slices.Clone(fixed.args), fixed.env...) {
				if where[i] != part {
					different++
				}
			}
			if !ok || different != 1 {
				t.Errorf("%s: the text stands in %d places: %q", system, different, where)
			}
		}
	})
}
