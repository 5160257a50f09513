package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"

	"codemode-bridge/bridge/filelock"
)

// ErrNoInstance says that a rendezvous has no instance, or one that is about to end.
var ErrNoInstance = errors.New("no bridge runs here")

// between is the pause between two attempts while others start an instance.
const between = 10 * time.Millisecond

// Join connects to the instance, to be served. Where there is none it calls start,
// which returns when an instance listens; of several client processes that come
// at the same time one does so, and the others wait.
func (r *Rendezvous) Join(ctx context.Context, start func(context.Context) error) (*Conn, error) {
	for {
		c, err := r.ask(ctx, askServe, "")
		if !errors.Is(err, ErrNoInstance) {
			return c, err
		}
		if err := r.startOne(ctx, start); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a bridge to join: %w", context.Cause(ctx))
		case <-time.After(between):
		}
	}
}

// startOne starts an instance unless another process does, or has done so.
func (r *Rendezvous) startOne(ctx context.Context, start func(context.Context) error) error {
	l, err := tryLock(r.locks + ".start")
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	defer l.release()
	if u, err := r.dial(ctx); err == nil { // another was quicker
		u.Close()
		return nil
	}
	return start(ctx)
}

// ask connects to the instance for something; client names another connection.
func (r *Rendezvous) ask(ctx context.Context, ask, client string) (*Conn, error) {
	u, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { u.SetDeadline(time.Unix(1, 0)) })
	c, err := r.greet(u, ask, client)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		u.Close()
		return nil, err
	}
	return c, nil
}

func (r *Rendezvous) dial(ctx context.Context) (*net.UnixConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
	switch {
	case err == nil:
		return c.(*net.UnixConn), nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNoInstance
	}
	return nil, fmt.Errorf("connecting to the bridge that runs: %w", err)
}

// A Status is what an instance says of itself; its keys are promised by
// docs/reference/cli.md.
type Status struct {
	PID     int            `json:"pid"`
	Version string         `json:"version"`
	Commit  string         `json:"commit,omitempty"`
	Since   time.Time      `json:"since"`
	Clients []ClientStatus `json:"windows"`
	Servers []ServerStatus `json:"servers"`
	Runs    int            `json:"runs"`
	// Refused says why the configuration on disk was not taken over; empty if it was.
	Refused string `json:"refused,omitempty"`
	// Endpoint is where a process serves that only answers here: see Answer.
	Endpoint string `json:"endpoint,omitempty"`
}

// A State is a status with what the bridge adds to it, for programs of its version.
type State struct {
	Status
	More json.RawMessage `json:"more,omitempty"`
}

// A ClientStatus is one client connection of an instance.
type ClientStatus struct {
	PID   int       `json:"pid"` // of its process, by its own account
	Since time.Time `json:"since"`
}

// A ServerStatus is one upstream server of an instance.
type ServerStatus struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Tools int    `json:"tools"`
	PID   int    `json:"pid,omitempty"`
	// Sessions is how many have a process or connection of their own.
	Sessions int    `json:"sessions,omitempty"`
	Why      string `json:"why,omitempty"`
	Protocol string `json:"protocol,omitempty"` // the protocol version that was agreed on
	Version  string `json:"version,omitempty"`  // the server's own
	// Box is what keeps its program, as servers list --json has it.
	Box json.RawMessage `json:"box,omitempty"`
}

// statusTime is how long an instance may take to say its status.
const statusTime = 10 * time.Second

// Status asks the instance for its status.
func (r *Rendezvous) Status(ctx context.Context) (s Status, err error) {
	err = r.inquire(ctx, askStatus, &s)
	return s, err
}

// State asks the instance for its state.
func (r *Rendezvous) State(ctx context.Context) (s State, err error) {
	err = r.inquire(ctx, askState, &s)
	return s, err
}

// inquire reads one JSON value. It ends with ctx, and after statusTime at the latest.
func (r *Rendezvous) inquire(ctx context.Context, what string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	conn, err := r.ask(ctx, what, "")
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if err := json.NewDecoder(conn).Decode(into); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("reading what the bridge that runs says: %w", err)
	}
	return nil
}
