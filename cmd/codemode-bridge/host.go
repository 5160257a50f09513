package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/instance"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// firstWindow is how long a host that was started waits for a window.
const firstWindow = 30 * time.Second

// hostCommand is the process that serves the windows of one place. `run`
// starts it; nobody types it. It says that it listens by one byte on the
// descriptor that it is given.
func hostCommand(con *console) *cobra.Command {
	var descriptor int
	c := &cobra.Command{
		Use: "host", Short: "Serve the windows that share a bridge", Hidden: true, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if descriptor <= 2 {
				return &usageError{errors.New("host is started by run, not by hand")}
			}
			ready := os.NewFile(uintptr(descriptor), "ready")
			defer ready.Close()
			tuneMemory()
			start, err := beginServing(con)
			if err != nil {
				return err
			}
			cfg, names := start.cfg, start.looked
			place, err := meetingPlace(con, cfg, names)
			if err != nil {
				return err
			}
			waiting, cancel := context.WithTimeout(c.Context(), joinTime)
			socket, err := place.Host(waiting)
			cancel()
			if err != nil {
				return err
			}
			defer socket.Close()
			h := newHost(con, socket, timeDuration(cfg.Windows.Linger))
			con.err = &h.talk
			same := shares(cfg, names)
			same.only = h.onlyOne
			con.shared = &same
			err = live(c.Context(), con, start, func(ctx context.Context, p *parts) error {
				defer p.openNotices(false)()
				return h.serve(ctx, p, ready)
			})
			socket.Close() // whoever comes now finds the place free
			h.dismiss()
			con.err = os.Stderr
			os.Stderr.Write(h.talk.unheard())
			return err
		},
	}
	c.Flags().IntVar(&descriptor, "ready", 0, "the `descriptor` to say on that it listens")
	return c
}

// A host serves windows, each of which is a session of one bridge, until the
// last has gone.
type host struct {
	socket *instance.Host
	log    string // the folder of the log
	linger time.Duration
	began  time.Time
	talk   talk

	parts    *parts
	handled  chan struct{}  // closed when no connection is handled any more; nil before serve
	sessions sync.WaitGroup // of windows
	over     chan struct{}  // closed when the last window has gone for long enough

	mu      sync.Mutex
	ending  bool
	windows []*window // that are open
	last    []*window // whose clients have gone, and that wait for the end of it all
	count   int       // of all that there ever were
}

// A window is one client of a host.
type window struct {
	name  string
	conn  *instance.Conn
	since time.Time
	gone  chan struct{} // closed when it has gone
}

func newHost(a *console, socket *instance.Host, linger time.Duration) *host {
	return &host{socket: socket, log: logDir(a), linger: linger, began: time.Now(), over: make(chan struct{})}
}

// serve serves windows until the last has gone, or ctx ends.
func (h *host) serve(ctx context.Context, p *parts, ready *os.File) error {
	h.parts = p
	if err := h.socket.Listen(); err != nil {
		return err
	}
	h.handled = make(chan struct{})
	go func() {
		defer close(h.handled)
		h.socket.Serve(func(c *instance.Conn) { h.handle(ctx, c) }, func(err error) {
			p.log.Debug("a window was refused", "err", err)
		})
	}()
	ready.Write([]byte{1}) // whoever started this may have gone
	ready.Close()
	h.endAfter(firstWindow)
	select {
	case <-h.over:
	case <-ctx.Done():
		h.mu.Lock()
		h.ending = true
		h.mu.Unlock()
	}
	h.socket.Stop()
	h.sessions.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// dismiss lets the windows go that wait until all has ended.
func (h *host) dismiss() {
	h.mu.Lock()
	last := h.last
	h.last = nil
	h.mu.Unlock()
	for _, w := range last {
		close(w.gone)
		w.conn.Close()
	}
	if h.handled != nil {
		<-h.handled
	}
}

// handle serves one connection of a window.
func (h *host) handle(ctx context.Context, c *instance.Conn) {
	switch c.Ask {
	case instance.Serve:
		if w := h.enter(c); w != nil {
			h.converse(ctx, w)
			h.leave(ctx, w)
			return // leave or dismiss closes it
		}
	case instance.Talk:
		if w := h.find(c.Window); w != nil && c.Accept(instance.Welcome{PID: os.Getpid()}) == nil {
			h.talk.tell(c, w.gone)
		}
	case instance.Status:
		if c.Accept(instance.Welcome{PID: os.Getpid()}) == nil {
			c.SetDeadline(time.Now().Add(10 * time.Second))
			_ = json.NewEncoder(c).Encode(h.status()) // who asked has gone
		}
	}
	c.Close()
}

// enter makes a connection a window; nil if the host is about to end.
func (h *host) enter(c *instance.Conn) *window {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending {
		return nil
	}
	h.count++
	w := &window{name: fmt.Sprint("w", h.count), conn: c, since: time.Now(), gone: make(chan struct{})}
	h.windows = append(h.windows, w)
	h.sessions.Add(1)
	return w
}

// onlyOne reports whether there has never been but one window.
func (h *host) onlyOne() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count <= 1
}

func (h *host) find(name string) *window {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.windows {
		if w.name == name {
			return w
		}
	}
	return nil
}

// converse serves the window's client until it goes away or ctx ends.
func (h *host) converse(ctx context.Context, w *window) {
	log := h.parts.log.With("window", w.name)
	if err := w.conn.Accept(instance.Welcome{PID: os.Getpid(), Window: w.name, Log: h.log}); err != nil {
		log.Debug("a window has gone at once", "err", err)
		return
	}
	log.Info("a window has joined", "process", w.conn.PID)
	// One that does not read any more must not keep the others from ending.
	defer context.AfterFunc(ctx, func() { w.conn.SetWriteDeadline(time.Now().Add(lastRead)) })()
	err := h.parts.server.Serve(ctx, &mcp.IOTransport{Reader: readSide{w.conn}, Writer: writeSide{w.conn, ctx, readTime}, MaxLineLength: -1})
	log.Info("a window has gone", "err", err)
}

// leave ends a window. The last one stays connected until all has ended, so
// that its process ends no sooner: see dismiss.
func (h *host) leave(ctx context.Context, w *window) {
	defer h.sessions.Done()
	h.mu.Lock()
	h.windows = slices.DeleteFunc(h.windows, func(other *window) bool { return other == w })
	stays := h.ending || ctx.Err() != nil || len(h.windows) == 0 && h.linger == 0
	if stays {
		h.last = append(h.last, w)
	}
	empty := len(h.windows) == 0
	if empty && h.linger == 0 {
		h.endLocked()
	}
	h.mu.Unlock()
	if stays {
		return
	}
	close(w.gone)
	w.conn.Close()
	if empty {
		h.endAfter(h.linger)
	}
}

// endAfter ends the host after a time in which no window was there.
func (h *host) endAfter(linger time.Duration) {
	h.mu.Lock()
	count := h.count
	h.mu.Unlock()
	time.AfterFunc(linger, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.windows) == 0 && h.count == count {
			h.endLocked()
		}
	})
}

func (h *host) endLocked() {
	if !h.ending {
		h.ending = true
		close(h.over)
	}
}

// A hostStatus is what a host says of itself.
type hostStatus struct {
	PID     int            `json:"pid"`
	Version string         `json:"version"`
	Since   time.Time      `json:"since"`
	Windows []windowStatus `json:"windows"`
	Servers []serverStatus `json:"servers"`
	Runs    int            `json:"runs"`
}

type windowStatus struct {
	PID   int       `json:"pid"` // of its process, as that says
	Since time.Time `json:"since"`
}

type serverStatus struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Tools int    `json:"tools"`
	PID   int    `json:"pid,omitempty"`
	// Sessions is how many have a process or connection of their own.
	Sessions int    `json:"sessions,omitempty"`
	Why      string `json:"why,omitempty"`
}

func (h *host) status() hostStatus {
	s := hostStatus{PID: os.Getpid(), Version: version, Since: h.began, Windows: []windowStatus{}, Servers: []serverStatus{}, Runs: h.parts.server.Running()}
	h.mu.Lock()
	for _, w := range h.windows {
		s.Windows = append(s.Windows, windowStatus{PID: w.conn.PID, Since: w.since})
	}
	h.mu.Unlock()
	for _, u := range h.parts.upstreams.Status() {
		s.Servers = append(s.Servers, serverStatus{Name: u.Name, State: string(u.State), Tools: u.Tools, PID: u.PID, Sessions: u.Sessions, Why: u.Err})
	}
	return s
}

// readSide and writeSide are a connection as the SDK wants it: it closes them
// when the session is over, but the connection ends when the window does.
type readSide struct{ *instance.Conn }

func (r readSide) Close() error { return r.SetReadDeadline(time.Unix(1, 0)) }

// A writeSide closes the connection of a window that does not take a message in
// time: what tells all windows of something writes to one after the other.
type writeSide struct {
	conn *instance.Conn
	ctx  context.Context // of the host
	wait time.Duration
}

// How long a window may take to read a message, and once the host ends.
const (
	readTime = 30 * time.Second
	lastRead = 5 * time.Second
)

func (w writeSide) Write(message []byte) (int, error) {
	w.conn.SetWriteDeadline(time.Now().Add(w.wait))
	if w.ctx.Err() != nil { // also if it ended just now
		w.conn.SetWriteDeadline(time.Now().Add(min(w.wait, lastRead)))
	}
	n, err := w.conn.Write(message)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.conn.Close()
	}
	return n, err
}

func (writeSide) Close() error { return nil }

// A talk is what a host says on its standard error: every window hears it.
type talk struct {
	mu    sync.Mutex
	heard bool
	early []byte // what was said before anybody heard it
	ears  []chan []byte
}

// Bounds on what is kept for windows: bytes from before the first, and lines
// that one has not taken yet.
const (
	earlyTalk = 64 << 10
	openTalk  = 256
)

// Write never blocks: who does not listen misses lines.
func (t *talk) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.heard && len(t.early)+len(line) <= earlyTalk {
		t.early = append(t.early, line...)
	}
	for _, ear := range t.ears {
		select {
		case ear <- slices.Clone(line):
		default:
		}
	}
	return len(line), nil
}

// unheard is what was said while no window was there.
func (t *talk) unheard() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard {
		return nil
	}
	return t.early
}

// tell tells c all that is said until gone is closed; the first also hears
// what was said before.
func (t *talk) tell(c *instance.Conn, gone <-chan struct{}) {
	ear := make(chan []byte, openTalk)
	t.mu.Lock()
	if !t.heard {
		ear <- t.early
		t.heard, t.early = true, nil
	}
	t.ears = append(t.ears, ear)
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.ears = slices.DeleteFunc(t.ears, func(other chan []byte) bool { return other == ear })
		t.mu.Unlock()
	}()
	say := func(line []byte) bool {
		c.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_, err := c.Write(line)
		return err == nil
	}
	for {
		select {
		case line := <-ear:
			if !say(line) {
				return
			}
		case <-gone:
			for {
				select {
				case line := <-ear:
					if !say(line) {
						return
					}
				default:
					return
				}
			}
		}
	}
}
