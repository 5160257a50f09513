package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"

	"codemode-bridge/bridge/filelock"
)

// errNobody is a place without a host, or with one that is about to end.
var errNobody = errors.New("no bridge runs here")

// between is the pause between two attempts while others start a host.
const between = 10 * time.Millisecond

// Join connects to the host of the place, to be served. Where there is none it
// calls start, which returns when a host listens; of several windows that come
// at the same time one does so, and the others wait.
func (p *Place) Join(ctx context.Context, start func(context.Context) error) (*Conn, error) {
	for {
		c, err := p.Ask(ctx, Serve, "")
		if !errors.Is(err, errNobody) {
			return c, err
		}
		if err := p.startOne(ctx, start); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a bridge to join: %w", context.Cause(ctx))
		case <-time.After(between):
		}
	}
}

// startOne starts a host unless another window does, or has done so.
func (p *Place) startOne(ctx context.Context, start func(context.Context) error) error {
	l, err := tryLock(p.locks + ".start")
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("starting a bridge for all windows: %w", err)
	}
	defer l.release()
	if u, err := p.dial(ctx); err == nil { // another has been quicker
		u.Close()
		return nil
	}
	return start(ctx)
}

// Ask connects to the host of the place for something.
func (p *Place) Ask(ctx context.Context, ask, window string) (*Conn, error) {
	u, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { u.SetDeadline(time.Unix(1, 0)) })
	c, err := p.greet(u, ask, window)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		u.Close()
		return nil, err
	}
	return c, nil
}

func (p *Place) dial(ctx context.Context) (*net.UnixConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", p.socket)
	switch {
	case err == nil:
		return c.(*net.UnixConn), nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, errNobody
	}
	return nil, fmt.Errorf("connecting to the bridge that runs: %w", err)
}
