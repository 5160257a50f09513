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

// A Listener has the socket of a rendezvous, and with it the right to be its
// instance.
type Listener struct {
	at       *Rendezvous
	lock     *lock
	closing  sync.Once
	listener *net.UnixListener
	serving  sync.WaitGroup
}

// Own makes this process the instance of the rendezvous. It waits until the one
// before has ended, or ctx has. Nobody is heard before Serve.
func (r *Rendezvous) Own(ctx context.Context) (*Listener, error) {
	held, err := waitLock(ctx, r.locks+".host")
	if err != nil {
		return nil, fmt.Errorf("waiting for the bridge that ran here to end: %w", err)
	}
	// The process that left a socket here has ended: it held the lock.
	if err := os.Remove(r.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		held.release()
		return nil, fmt.Errorf("removing a socket that was left behind: %w", err)
	}
	// What it said is outdated; what is said from now on is ours.
	if err := os.Truncate(r.LastWords(), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		held.release()
		return nil, fmt.Errorf("emptying what the bridge before said: %w", err)
	}
	return &Listener{at: r, lock: held}, nil
}

// Open makes the socket: from now on client processes find the instance.
func (l *Listener) Open() error {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.at.socket, Net: "unix"})
	if err == nil {
		if err = os.Chmod(l.at.socket, 0o600); err != nil { // its folder is closed to others anyway
			listener.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("listening for windows: %w", err)
	}
	l.listener = listener
	return nil
}

// Serve hands each client connection to handle, in a goroutine of its own,
// until Stop. Those that are refused are reported to refused. It returns when all
// have returned. Handle closes the connection.
func (l *Listener) Serve(handle func(*Conn), refused func(error)) {
	defer l.serving.Wait()
	for {
		u, err := l.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors, perhaps: it may pass
			refused(err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		l.serving.Go(func() {
			c, err := l.at.receive(u)
			if err != nil {
				u.Close()
				refused(err)
				return
			}
			handle(c)
		})
	}
}

// Stop removes the socket, so that no client process finds the instance any more.
func (l *Listener) Stop() {
	if l.listener != nil {
		l.listener.Close()
	}
}

// Close ends what Own began: another process may be the instance then. Connections
// stay as they are.
func (l *Listener) Close() {
	l.closing.Do(func() {
		l.Stop()
		if starting, err := tryLock(l.at.locks + ".start"); err == nil { // else the next instance has the file already
			if info, err := os.Stat(l.at.LastWords()); err == nil && info.Size() == 0 {
				os.Remove(l.at.LastWords())
			}
			starting.release()
		}
		l.lock.release()
	})
}
