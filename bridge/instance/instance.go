package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/access"
)

// firstClient is how long an instance that was started waits for a client.
const firstClient = 30 * time.Second

// A Bridge is what an instance serves its clients with.
type Bridge struct {
	// Serve serves one client, whose profile ctx has ([access.Bound]), until it goes away or ctx ends. It may close the
	// stream, which ends reading from it; the instance closes the connection.
	Serve func(ctx context.Context, client io.ReadWriteCloser) error
	// Status returns the upstream servers, and how many runs there are.
	Status func() (servers []ServerStatus, runs int)
	// Refused says why the configuration on disk was not taken over; empty if it was.
	// Nil: it always is.
	Refused func() string
	// More is what a state has beside the status; nil: nothing.
	More   func() any
	Logger *slog.Logger
}

// Options are the settings of an instance.
type Options struct {
	// Version and Commit are the program's; the commit is empty if that is not known.
	Version, Commit string
	// Log is the folder of the log, which clients are told of.
	Log string
	// Linger is how long it goes on after the last client has gone; zero: not at all.
	Linger time.Duration
	// Endpoint is where a process serves that only answers; empty for an instance.
	Endpoint string
}

// An Instance is a shared bridge: it serves client connections, each as a session
// of its own, until the last has gone.
type Instance struct {
	listener *Listener
	options  Options
	began    time.Time
	said     broadcast

	bridge   Bridge         // set by Serve
	handled  chan struct{}  // closed when no connection is handled any more; nil before Serve
	sessions sync.WaitGroup // of clients
	handed   atomic.Int32   // clients whose pipes are here
	over     chan struct{}  // closed when the last client has gone for long enough

	mu      sync.Mutex
	ending  bool
	clients []*client // that are open
	last    []*client // that have gone, and whose processes wait until the instance has ended
	count   int       // of all clients so far
}

// A client is one client connection of an instance.
type client struct {
	name  string
	conn  *Conn
	since time.Time
	gone  chan struct{} // closed when it has gone
}

// New returns an instance for the rendezvous that l owns. It serves nobody before
// Serve.
func New(l *Listener, o Options) *Instance {
	return &Instance{listener: l, options: o, began: time.Now(), over: make(chan struct{})}
}

// Stderr is where the process says what its clients should hear: each client
// process copies it to its own standard error. Writing never blocks.
func (i *Instance) Stderr() io.Writer { return &i.said }

// Unheard returns what was said while there was no client.
func (i *Instance) Unheard() []byte { return i.said.unheard() }

// Serve serves clients until the last has gone, or ctx ends. It writes a byte to
// ready and closes it as soon as it listens.
func (i *Instance) Serve(ctx context.Context, ready io.WriteCloser, b Bridge) error {
	i.bridge = b
	if err := i.listener.Open(); err != nil {
		return err
	}
	i.handled = make(chan struct{})
	go func() {
		defer close(i.handled)
		i.listener.Serve(func(c *Conn) { i.handle(ctx, c) }, func(err error) {
			b.Logger.Debug("a window was refused", "err", err)
		})
	}()
	ready.Write([]byte{1}) // whoever started this may have gone
	ready.Close()
	i.endAfter(firstClient)
	select {
	case <-i.over:
	case <-ctx.Done():
		i.mu.Lock()
		i.ending = true
		i.mu.Unlock()
	}
	i.listener.Stop()
	i.sessions.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Disconnect closes the connections that were kept until everything has ended, and
// waits until no connection is handled.
func (i *Instance) Disconnect() {
	i.mu.Lock()
	last := i.last
	i.last = nil
	i.mu.Unlock()
	for _, c := range last {
		close(c.gone)
		c.conn.Close()
	}
	if i.handled != nil {
		<-i.handled
	}
}

// handle serves one connection.
func (i *Instance) handle(ctx context.Context, conn *Conn) {
	switch conn.ask {
	case askServe:
		if c := i.enter(conn); c != nil {
			i.converse(ctx, c)
			i.leave(ctx, c)
			return // leave or Disconnect closes it
		}
	case askTalk:
		if c := i.find(conn.client); c != nil && conn.accept(Welcome{PID: os.Getpid()}) == nil {
			i.said.tell(conn, c.gone)
		}
	case askStatus:
		if conn.accept(Welcome{PID: os.Getpid()}) == nil {
			conn.SetDeadline(time.Now().Add(statusTime))
			_ = json.NewEncoder(conn).Encode(i.status()) // whoever asked may have gone
		}
	case askState:
		if conn.accept(Welcome{PID: os.Getpid()}) == nil {
			conn.SetDeadline(time.Now().Add(statusTime))
			_ = i.tellState(conn) // likewise
		}
	}
	conn.Close()
}

// Answer lets a process that serves no windows answer here what its status and state are,
// until end is called, which also gives the rendezvous back, as an error does. Of the bridge, Serve is not
// used: nobody can join.
func Answer(l *Listener, o Options, b Bridge) (end func(), err error) {
	if err := l.Open(); err != nil {
		l.Close()
		return nil, err
	}
	i := New(l, o)
	i.bridge, i.ending = b, true
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		l.Serve(func(c *Conn) { i.handle(context.Background(), c) }, func(err error) {
			b.Logger.Debug("a question about this bridge was refused", "err", err)
		})
	}()
	return func() {
		l.Stop()
		<-handled
		l.Close()
	}, nil
}

func (i *Instance) tellState(conn io.Writer) error {
	s := State{Status: i.status()}
	if i.bridge.More != nil {
		more, err := json.Marshal(i.bridge.More())
		if err != nil {
			return fmt.Errorf("writing what there is beside the status: %w", err)
		}
		s.More = more
	}
	return json.NewEncoder(conn).Encode(s)
}

// enter makes a connection a client; nil if the instance is about to end.
func (i *Instance) enter(conn *Conn) *client {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ending {
		return nil
	}
	i.count++
	c := &client{name: fmt.Sprint("w", i.count), conn: conn, since: time.Now(), gone: make(chan struct{})}
	i.clients = append(i.clients, c)
	i.sessions.Add(1)
	return c
}

// OnlyOne reports whether there has never been more than one client.
func (i *Instance) OnlyOne() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.count <= 1
}

func (i *Instance) find(name string) *client {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.clients {
		if c.name == name {
			return c
		}
	}
	return nil
}

// converse serves a client until it goes away or ctx ends.
func (i *Instance) converse(ctx context.Context, c *client) {
	log := i.bridge.Logger.With("window", c.name)
	if err := c.conn.accept(Welcome{PID: os.Getpid(), Client: c.name, Log: i.options.Log}); err != nil {
		log.Debug("a window has gone at once", "err", err)
		return
	}
	log.Info("a window has joined", "process", c.conn.pid)
	h, err := i.take(ctx, c.conn)
	switch {
	case err != nil:
		log.Info("a window has gone", "err", err)
		return
	case h != nil:
		defer i.handed.Add(-1)
		defer h.finish()
		log.Info("a window has gone", "err", i.bridge.Serve(access.Bind(ctx, c.conn.bound), h))
		return
	}
	// One that no longer reads must not keep the others from ending.
	defer context.AfterFunc(ctx, func() { c.conn.SetWriteDeadline(time.Now().Add(lastRead)) })()
	log.Info("a window has gone", "err", i.bridge.Serve(access.Bind(ctx, c.conn.bound), stream{c.conn, ctx, readTime}))
}

// leave ends a client. The last one stays connected until everything has ended, so
// that its process ends no sooner: see Disconnect.
func (i *Instance) leave(ctx context.Context, c *client) {
	defer i.sessions.Done()
	i.mu.Lock()
	i.clients = slices.DeleteFunc(i.clients, func(other *client) bool { return other == c })
	stays := i.ending || ctx.Err() != nil || len(i.clients) == 0 && i.options.Linger == 0
	if stays {
		i.last = append(i.last, c)
	}
	empty := len(i.clients) == 0
	if empty && i.options.Linger == 0 {
		i.endLocked()
	}
	i.mu.Unlock()
	if stays {
		return
	}
	close(c.gone)
	c.conn.Close()
	if empty {
		i.endAfter(i.options.Linger)
	}
}

// endAfter ends the instance once it has been without a client for a time.
func (i *Instance) endAfter(linger time.Duration) {
	i.mu.Lock()
	count := i.count
	i.mu.Unlock()
	time.AfterFunc(linger, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if len(i.clients) == 0 && i.count == count {
			i.endLocked()
		}
	})
}

func (i *Instance) endLocked() {
	if !i.ending {
		i.ending = true
		close(i.over)
	}
}

func (i *Instance) status() Status {
	s := Status{PID: os.Getpid(), Version: i.options.Version, Commit: i.options.Commit, Since: i.began, Clients: []ClientStatus{}, Servers: []ServerStatus{}, Endpoint: i.options.Endpoint}
	i.mu.Lock()
	for _, c := range i.clients {
		s.Clients = append(s.Clients, ClientStatus{PID: c.conn.pid, Since: c.since})
	}
	i.mu.Unlock()
	servers, runs := i.bridge.Status()
	s.Servers, s.Runs = append(s.Servers, servers...), runs
	if i.bridge.Refused != nil {
		s.Refused = i.bridge.Refused()
	}
	return s
}

// A stream is a client connection as a Bridge sees it. Closing it ends only the
// reading: the connection ends when the client does. It closes the connection of a
// client that does not read a message in time, because what is sent to all clients is
// written to one after the other.
type stream struct {
	*Conn
	ctx  context.Context // of the instance
	wait time.Duration
}

// How long a client may take to read a message, and once the instance ends.
const (
	readTime = 30 * time.Second
	lastRead = 5 * time.Second
)

func (s stream) Write(message []byte) (int, error) {
	s.SetWriteDeadline(time.Now().Add(s.wait))
	if s.ctx.Err() != nil { // also if it ended just now
		s.SetWriteDeadline(time.Now().Add(min(s.wait, lastRead)))
	}
	n, err := s.Conn.Write(message)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.Conn.Close()
	}
	return n, err
}

// Close ends reading.
func (s stream) Close() error { return s.SetReadDeadline(time.Unix(1, 0)) }
