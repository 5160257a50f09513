//go:build linux || darwin

package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipes are the two ends that a client's process has handed to the instance.
//
// Whether an end blocks is a property that everybody who has it open shares: the client's
// process, the shell that started it, a program to which it gave the same end. So it
// stays as it is; each read and write waits with poll first, and asks for no more than
// can be done at once.
type pipes struct {
	ctx  context.Context // of the instance
	conn syscall.RawConn // to the client's process; at its other end being closed, writing ends
	in   end
	out  end
	wait time.Duration // for a client to read a message
	last time.Duration // likewise, once the instance ends

	// A pipe whose second end is closed when nothing more is to be read.
	overRead, overWrite *os.File
	over                syscall.RawConn // overRead
	ending, closed      atomic.Bool
}

// An end is one of them.
type end struct {
	file   *os.File
	raw    syscall.RawConn
	socket bool
}

// errLeft says that a client's process has gone, and its client with it.
var errLeft = errors.New("the window has gone")

// pollAgain bounds one wait for a client that does not read.
const pollAgain = 250 * time.Millisecond

func newPipes(ctx context.Context, conn *Conn, in, out *os.File) (*pipes, error) {
	p := &pipes{ctx: ctx, wait: readTime, last: lastRead, in: end{file: in}, out: end{file: out}}
	var err error
	if p.conn, err = conn.SyscallConn(); err != nil {
		return nil, err
	}
	if p.in.raw, p.in.socket, err = usable(in, unix.O_RDONLY); err != nil {
		return nil, err
	}
	if p.out.raw, p.out.socket, err = usable(out, unix.O_WRONLY); err != nil {
		return nil, err
	}
	if p.overRead, p.overWrite, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("making a pipe to end a window with: %w", err)
	}
	if p.over, err = p.overRead.SyscallConn(); err != nil {
		return nil, errors.Join(err, p.overRead.Close(), p.overWrite.Close())
	}
	return p, nil
}

// usable reports why an end can't be handed over. Pipes can, and sockets that socketpair
// made, as Node's programs have them. A socket with a name may be the very connection on
// which it came, which would then never end; a terminal belongs to its session; the rest
// gains nothing.
func usable(f *os.File, way int) (raw syscall.RawConn, socket bool, err error) {
	if raw, err = f.SyscallConn(); err != nil {
		return nil, false, err
	}
	failed := raw.Control(func(fd uintptr) { socket, err = kindOf(int(fd), way) })
	if err = errors.Join(failed, err); err != nil {
		return nil, false, err
	}
	return raw, socket, nil
}

var errNoPipe = errors.New("it is neither a pipe nor a socket without a name")

func kindOf(fd, way int) (socket bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
	case unix.S_IFSOCK:
		if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
			return false, errNoPipe
		}
		for _, name := range []func(int) (unix.Sockaddr, error){unix.Getsockname, unix.Getpeername} {
			address, err := name(fd)
			// One without a name is "@" on Linux.
			if local, ok := address.(*unix.SockaddrUnix); err != nil || !ok || strings.TrimPrefix(local.Name, "@") != "" {
				return false, errNoPipe
			}
		}
		return true, nil
	default:
		return false, errNoPipe
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if mode := flags & unix.O_ACCMODE; err != nil || mode != way && mode != unix.O_RDWR {
		return false, errors.New("it is the wrong end of a pipe")
	}
	return false, nil
}

// hold calls f with two descriptors, which stay open meanwhile.
func hold(a, b syscall.RawConn, f func(a, b int)) error {
	var inner error
	outer := a.Control(func(a uintptr) { inner = b.Control(func(b uintptr) { f(int(a), int(b)) }) })
	return errors.Join(outer, inner)
}

// again reports whether a system call is to be made again.
func again(err error) bool { return errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) }

// Read waits for bytes of the client. It returns io.EOF also after end and close.
func (p *pipes) Read(b []byte) (n int, err error) {
	for {
		failed := hold(p.in.raw, p.over, func(in, over int) { n, err = p.read(in, over, b) })
		switch {
		case failed != nil, err == nil && n == 0: // or it has been closed
			return 0, io.EOF
		case again(err):
		case err != nil:
			return 0, fmt.Errorf("reading from the client: %w", err)
		default:
			return n, nil
		}
	}
}

func (p *pipes) read(in, over int, b []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(in), Events: unix.POLLIN}, {Fd: int32(over), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, -1); err != nil {
		return 0, err
	}
	if fds[1].Revents != 0 {
		return 0, nil
	}
	if p.in.socket {
		n, _, err := unix.Recvfrom(in, b, unix.MSG_DONTWAIT)
		return max(n, 0), err
	}
	n, err := unix.Read(in, b)
	return max(n, 0), err
}

// Write writes a message. A client that does not read it in time gets no more.
func (p *pipes) Write(b []byte) (written int, err error) {
	until, ending := time.Now().Add(p.wait), false
	for written < len(b) {
		if !ending && p.ctx.Err() != nil {
			ending = true
			if last := time.Now().Add(p.last); last.Before(until) {
				until = last
			}
		}
		left := time.Until(until)
		if left <= 0 {
			return written, os.ErrDeadlineExceeded
		}
		var n int
		failed := hold(p.out.raw, p.conn, func(out, conn int) { n, err = p.write(out, conn, min(left, pollAgain), b[written:]) })
		switch {
		case failed != nil || p.closed.Load():
			return written, errLeft
		case err != nil && !again(err):
			return written, fmt.Errorf("writing to the client: %w", err)
		}
		written += n
	}
	return written, nil
}

func (p *pipes) write(out, conn int, wait time.Duration, b []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(out), Events: unix.POLLOUT}, {Fd: int32(conn), Events: unix.POLLHUP}}
	if _, err := unix.Poll(fds, int(wait.Milliseconds())+1); err != nil {
		return 0, err
	}
	switch {
	case fds[1].Revents&unix.POLLHUP != 0:
		return 0, errLeft
	case fds[0].Revents == 0:
		return 0, nil
	}
	if p.out.socket {
		n, err := unix.SendmsgN(out, b, nil, nil, unix.MSG_DONTWAIT)
		return max(n, 0), err
	}
	room := pipeRoom
	if len(b) > room {
		room = roomIn(out)
	}
	n, err := unix.Write(out, b[:min(len(b), room)]) // there is room for as much, or nobody reads
	return max(n, 0), err
}

// end ends reading.
func (p *pipes) end() {
	p.ending.Store(true)
	p.overWrite.Close()
}

// ended reports whether reading was ended from this side.
func (p *pipes) ended() bool { return p.ending.Load() }

// close closes both ends at once.
func (p *pipes) close() {
	p.end()
	p.closed.Store(true)
	p.out.file.Close()
	p.in.file.Close()
	p.overRead.Close()
}
