package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"
)

// A Host has the socket of a place.
type Host struct {
	place    *Place
	lock     *lock
	closing  sync.Once
	listener *net.UnixListener
	serving  sync.WaitGroup
}

// Host makes this process the host of the place. It waits until the one before
// has ended, or ctx has. Nobody is heard before Serve.
func (p *Place) Host(ctx context.Context) (*Host, error) {
	l, err := waitLock(ctx, p.locks+".host")
	if err != nil {
		return nil, fmt.Errorf("waiting for the bridge that ran here to end: %w", err)
	}
	// Whoever made a socket that is there has ended: it had the lock.
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.release()
		return nil, fmt.Errorf("removing a socket that was left behind: %w", err)
	}
	// What it said is over; what is said from now on is ours.
	if err := os.Truncate(p.Said(), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.release()
		return nil, fmt.Errorf("emptying what the bridge before said: %w", err)
	}
	return &Host{place: p, lock: l}, nil
}

// Listen makes the socket: from now on windows find the host.
func (h *Host) Listen() error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.place.socket, Net: "unix"})
	if err == nil {
		if err = os.Chmod(h.place.socket, 0o600); err != nil { // its folder is closed to others anyway
			l.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("listening for windows: %w", err)
	}
	h.listener = l
	return nil
}

// Serve hands each connection of a window to handle, in a goroutine of its
// own, until Stop. Those that are refused are told to refused. It returns when
// all have returned. Handle closes the connection.
func (h *Host) Serve(handle func(*Conn), refused func(error)) {
	defer h.serving.Wait()
	for {
		u, err := h.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors, perhaps: it may pass
			refused(err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		h.serving.Go(func() {
			c, err := h.place.receive(u)
			if err != nil {
				u.Close()
				refused(err)
				return
			}
			handle(c)
		})
	}
}

// Stop removes the socket, so that no window finds the host any more.
func (h *Host) Stop() {
	if h.listener != nil {
		h.listener.Close()
	}
}

// Close ends what Host began: another process may be the host then.
// Connections stay as they are.
func (h *Host) Close() {
	h.closing.Do(func() {
		h.Stop()
		if starting, err := tryLock(h.place.locks + ".start"); err == nil { // else the next host has the file already
			if info, err := os.Stat(h.place.Said()); err == nil && info.Size() == 0 {
				os.Remove(h.place.Said())
			}
			starting.release()
		}
		h.lock.release()
	})
}
