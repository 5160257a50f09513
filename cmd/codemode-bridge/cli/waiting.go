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
)

// A Waiting says on standard error whom a command waits for: on a terminal in a line that
// follows who has answered, and goes away; elsewhere once, after a second.
type Waiting struct {
	con      *Console
	terminal bool
	count    int
	ends     chan struct{}
	ended    sync.WaitGroup

	mu      sync.Mutex
	pending []string // sorted
}

// Wait begins to tell of those that names are of. Close ends it.
func (con *Console) Wait(names []string) *Waiting {
	file, ok := con.Err.(*os.File)
	return con.wait(names, ok && term.IsTerminal(int(file.Fd())))
}

func (con *Console) wait(names []string, terminal bool) *Waiting {
	w := &Waiting{con: con, terminal: terminal, count: len(names), ends: make(chan struct{}), pending: slices.Sorted(slices.Values(names))}
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
			width := w.con.Width()
			if width == 0 {
				width = 80
			}
			fmt.Fprint(w.con.Err, "\r\x1b[K"+canon.Fit(line, width-1))
			next.Reset(redrawn)
		case text != "":
			fmt.Fprintln(w.con.Err, text)
		}
	}
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
