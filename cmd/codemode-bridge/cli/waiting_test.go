package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A sink may be written to and read by different goroutines.
type sink struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestWaitingInAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		w := (&Console{Err: &out}).Wait([]string{"c", "a", "b"})
		time.Sleep(patience / 2)
		w.Answered("a")
		time.Sleep(patience/2 - time.Nanosecond)
		if out.String() != "" {
			t.Errorf("before a second has passed it says %q", out.String())
		}
		time.Sleep(time.Hour)
		w.Close()
		if got, want := out.String(), "1 of 3 servers answered; waiting for b, c\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestNobodyIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		w := (&Console{Err: &out}).Wait([]string{"a"})
		w.Answered("a")
		time.Sleep(time.Hour)
		w.Close()
		if out.String() != "" {
			t.Errorf("it says %q", out.String())
		}
	})
}

func TestWaitingOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		w := (&Console{Err: &out, Env: func(string) (string, bool) { return "", false }}).wait([]string{"a", "b"}, true, nil)
		time.Sleep(patience + redrawn/2)
		w.Answered("a")
		time.Sleep(redrawn)
		w.Answered("b") // from here on nobody is named, nor counted
		time.Sleep(redrawn)
		w.Close()
		const again = "\r\x1b[K"
		want := again + "0 of 2 servers answered; waiting for a, b (1 s)" + again + "1 of 2 servers answered; waiting for b (1 s)" + again + again
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Who hangs is told with the command that leaves it out: once in a pipe, in the line on a
// terminal.
func TestWhoHangsCanBeLeftOut(t *testing.T) {
	disable := func(name string) string { return "codemode-bridge servers disable " + name }
	none := func(string) (string, bool) { return "", false }
	synctest.Test(t, func(t *testing.T) {
		var pipe, terminal sink
		w := (&Console{Err: &pipe}).WaitOr([]string{"a", "slow"}, disable)
		on := (&Console{Err: &terminal, Env: none}).wait([]string{"slow"}, true, disable)
		time.Sleep(2 * time.Second)
		w.Answered("a")
		time.Sleep(3*time.Second - time.Nanosecond)
		if strings.Contains(pipe.String()+terminal.String(), "disable") {
			t.Errorf("before five seconds have passed they say\n%s\n%s", pipe.String(), terminal.String())
		}
		time.Sleep(time.Hour)
		w.Close()
		on.Close()
		want := "0 of 2 servers answered; waiting for a, slow\n1 of 2 servers answered; waiting for slow (5 s); codemode-bridge servers disable slow leaves it out\n"
		if got := pipe.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if want := "waiting for slow (12 s); codemode-bridge servers"; !strings.Contains(terminal.String(), want) {
			t.Errorf("on a terminal it never says %q", want)
		}
	})
}

func TestManyAreWaitedFor(t *testing.T) {
	w := &Waiting{count: 30}
	for i := range 12 {
		w.pending = append(w.pending, "s"+strings.Repeat("x", i))
	}
	if got := w.text(); !strings.HasPrefix(got, "18 of 30 servers answered; waiting for s, ") || !strings.HasSuffix(got, " and 2 more") {
		t.Errorf("got %q", got)
	}
}
