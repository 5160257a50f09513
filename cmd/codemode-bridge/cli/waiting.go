package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"

	"golang.org/x/term"
)

const (
	patience = time.Second            // after this a person is told whom a command waits for
	redrawn  = 250 * time.Millisecond // on a terminal, this often
	// After this a server that has not answered hangs, as far as a person can tell.
	tooLong = 5 * time.Second
)

// A Waiting says on standard error whom a command waits for: on a terminal in a line that
// follows who has answered, and goes away; elsewhere once, after a second. Who is still
// waited for after five seconds is told a second time, with what to do.
type Waiting struct {
	con      *Console
	terminal bool
	count    int
	leaveOut func(name string) string // nil: nothing can be done
	ends     chan struct{}
	ended    sync.WaitGroup

	mu      sync.Mutex
	pending []string // sorted
}

// Wait begins to tell of those that names are of. Close ends it.
func (con *Console) Wait(names []string) *Waiting { return con.WaitOr(names, nil) }

// WaitOr is Wait where each of them can be left out next time, by a command.
func (con *Console) WaitOr(names []string, leaveOut func(name string) string) *Waiting {
	file, ok := con.Err.(*os.File)
	return con.wait(names, ok && term.IsTerminal(int(file.Fd())), leaveOut)
}

func (con *Console) wait(names []string, terminal bool, leaveOut func(name string) string) *Waiting {
	w := &Waiting{con: con, terminal: terminal, count: len(names), leaveOut: leaveOut, ends: make(chan struct{}), pending: slices.Sorted(slices.Values(names))}
	w.ended.Go(w.tell)
	return w
}

// Answered notes that one of them need not be waited for any more.
func (w *Waiting) Answered(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = slices.DeleteFunc(w.pending, func(p string) bool { return p == name })
}

// Close returns when nothing more is written.
func (w *Waiting) Close() {
	close(w.ends)
	w.ended.Wait()
}

func (w *Waiting) tell() {
	began := time.Now()
	next := time.NewTimer(patience)
	defer next.Stop()
	for {
		select {
		case <-w.ends:
			if w.terminal && time.Since(began) >= patience {
				fmt.Fprint(w.con.Err, "\r\x1b[K")
			}
			return
		case <-next.C:
		}
		text := w.text()
		switch {
		case w.terminal && text == "":
			fmt.Fprint(w.con.Err, "\r\x1b[K")
			next.Reset(redrawn)
		case w.terminal:
			line := fmt.Sprintf("%s (%d s)", text, int(time.Since(began).Seconds()))
			if do := w.do(); do != "" && time.Since(began) >= tooLong {
				line += "; " + do
			}
			width := w.con.Width()
			if width == 0 {
				width = 80
			}
			fmt.Fprint(w.con.Err, "\r\x1b[K"+canon.Fit(line, width-1))
			next.Reset(redrawn)
		case text != "" && time.Since(began) < tooLong:
			fmt.Fprintln(w.con.Err, text)
			next.Reset(tooLong - time.Since(began))
		case text != "":
			if do := w.do(); do != "" {
				fmt.Fprintf(w.con.Err, "%s (%d s); %s\n", text, int(time.Since(began).Seconds()), do)
			}
		}
	}
}

// do says how to do without the first that is waited for.
func (w *Waiting) do() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaveOut == nil || len(w.pending) == 0 {
		return ""
	}
	return canon.Escape(w.leaveOut(w.pending[0])) + " leaves it out"
}

// text is empty if nobody is waited for any more.
func (w *Waiting) text() string {
	const most = 10
	w.mu.Lock()
	defer w.mu.Unlock()
	names := w.pending
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Sprintf("%d of %s answered; waiting for %s%s", w.count-len(w.pending), Count(w.count, "server"), canon.Escape(strings.Join(names, ", ")), more)
}
