//go:build linux || darwin

package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"codemode-bridge/bridge/rpc"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// offer hands the client's two ends to the instance, if they are such as can be handed
// over and the instance takes them. Nothing has been read from them.
func offer(conn *Conn, client Client) (handed bool, note *os.File, err error) {
	say, rights := []byte{sayCopy}, []byte(nil)
	if client.In != nil && client.Out != nil {
		in, _, inErr := usable(client.In, unix.O_RDONLY)
		out, _, outErr := usable(client.Out, unix.O_WRONLY)
		if inErr == nil && outErr == nil {
			if err := hold(in, out, func(in, out int) {
				say[0], rights = sayHand, unix.UnixRights(in, out)
				conn.SetDeadline(time.Now().Add(lineTime))
				_, _, err = conn.WriteMsgUnix(say, rights, nil)
			}); err != nil {
				return false, nil, err
			}
		}
	}
	if rights == nil {
		_, err = conn.Write(say)
	}
	if err != nil {
		return false, nil, fmt.Errorf("handing the client over: %w", err)
	}
	answer, files, err := receive(conn, 1)
	if err != nil {
		return false, nil, fmt.Errorf("handing the client over: %w", err)
	}
	if len(files) > 0 {
		note = files[0]
	}
	return answer == sayHand, note, conn.SetDeadline(time.Time{})
}

// take takes over the client's two ends, if its process hands them over and there is
// room; otherwise it returns nil, and the process copies.
func (i *Instance) take(ctx context.Context, conn *Conn) (*handed, error) {
	conn.SetDeadline(time.Now().Add(lineTime))
	said, files, err := receive(conn, 2)
	if err != nil {
		return nil, err
	}
	var h *handed
	var note *os.File
	if said == sayHand && len(files) == 2 && i.room() {
		if h, note, err = i.newHanded(ctx, conn, files[0], files[1]); err != nil {
			i.bridge.Logger.Debug("a window's pipes were not taken", "err", err)
			i.handed.Add(-1)
		}
	}
	if h == nil {
		for _, f := range files {
			f.Close()
		}
		if _, err := conn.Write([]byte{sayCopy}); err != nil {
			return nil, err
		}
		return nil, conn.SetDeadline(time.Time{})
	}
	if err := send(conn, sayHand, note); err != nil {
		h.pipes.close()
		note.Close()
		i.handed.Add(-1)
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	h.watched.Go(h.watch)
	return h, nil
}

// room makes room for one more client whose pipes are here, if there is any.
func (i *Instance) room() bool {
	if i.handed.Add(1) <= maxHanded {
		return true
	}
	i.handed.Add(-1)
	return false
}

func (i *Instance) newHanded(ctx context.Context, conn *Conn, in, out *os.File) (*handed, *os.File, error) {
	p, err := newPipes(ctx, conn, in, out)
	if err != nil {
		return nil, nil, err
	}
	file, err := i.listener.at.noteFile()
	if err == nil {
		h := &handed{conn: conn, pipes: p, wait: lastAnswers, left: make(chan struct{})}
		if h.note, err = newNote(file); err == nil {
			h.Stdio = rpc.NewStdio(p, toClient{h})
			h.Watch(h.note)
			return h, file, nil
		}
		file.Close()
	}
	return nil, nil, errors.Join(err, p.overRead.Close(), p.overWrite.Close())
}

// A handed client is one whose two ends the instance has. Its process only waits.
type handed struct {
	*rpc.Stdio // a message at a time; what can't be read is answered here
	conn       *Conn
	pipes      *pipes
	note       *note
	wait       time.Duration // for answers, once the client sends nothing more
	watched    sync.WaitGroup
	leaving    sync.Once
	left       chan struct{} // closed when the client or its process has gone
}

// watch waits for the client's process to be told to end, or to have gone: however it
// went, its client must find the pipe closed.
func (h *handed) watch() {
	var b [1]byte
	for {
		if _, err := h.conn.Read(b[:]); err != nil {
			h.leave(false)
			h.pipes.close()
			return
		}
		if b[0] == sayEnd {
			h.leave(false)
		}
	}
}

// leave ends reading, because the client or its process has gone. The process is told of
// the former.
func (h *handed) leave(tell bool) {
	h.leaving.Do(func() {
		close(h.left)
		if tell {
			h.conn.SetWriteDeadline(time.Now().Add(lastRead))
			_, _ = h.conn.Write([]byte{sayEnd}) // it may have gone, too
		}
		h.pipes.end()
	})
}

// Read reads the messages that the SDK can read.
func (h *handed) Read(b []byte) (int, error) {
	n, err := h.Stdio.Read(b)
	if err != nil {
		h.answered()
	}
	return n, err
}

// answered waits for the answers to a client that sends nothing more.
func (h *handed) answered() {
	if h.pipes.ended() {
		return
	}
	last := time.NewTimer(h.wait)
	defer last.Stop()
	select {
	case <-h.note.allAnswered():
	case <-h.left:
	case <-last.C:
	}
	h.leave(true)
}

// Connect makes the client the SDK's connection: see [rpc.Stdio.Connect].
func (h *handed) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := h.Stdio.Connect(ctx)
	return handedConn{conn, h}, err
}

// A handedConn is a handed client as the SDK sees it.
type handedConn struct {
	mcp.Connection
	h *handed
}

func (c handedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil && ctx.Err() == nil {
		c.h.answered()
	}
	return m, err
}

// Close ends reading.
func (h *handed) Close() error {
	h.pipes.end()
	return nil
}

// finish gives both ends back.
func (h *handed) finish() {
	h.conn.SetReadDeadline(time.Unix(1, 0))
	h.watched.Wait()
	h.note.file.Close()
}

// toClient writes to the client of h.
type toClient struct{ h *handed }

func (c toClient) Write(message []byte) (int, error) {
	whole := len(message) <= pipeRoom // it goes at once, or not at all
	if !whole {
		c.h.note.writing(true)
	}
	n, err := c.h.pipes.Write(message)
	switch {
	case err == nil && whole:
	case err == nil:
		c.h.note.writing(false)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.h.conn.Close() // as a stream does
	default:
		c.h.leave(true)
	}
	return n, err
}

func (c toClient) Close() error { return c.h.Close() }

// send sends a byte with a file.
func send(conn *Conn, say byte, f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { _, _, err = conn.WriteMsgUnix([]byte{say}, unix.UnixRights(int(fd)), nil) })
	return errors.Join(failed, err)
}

// maxRights is the room for descriptors that come with a byte. It is more than a system
// sends at once: those that find no room may stay open unseen.
const maxRights = 4096

// receive receives a byte, and the files that came with it if there are no more than
// most. Surplus ones are closed, with the others.
func receive(conn *Conn, most int) (say byte, files []*os.File, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	var b [1]byte
	rights := make([]byte, maxRights)
	var n, room int
	failed := raw.Read(func(fd uintptr) bool {
		syscall.ForkLock.RLock() // or a child that is started just now could inherit them
		defer syscall.ForkLock.RUnlock()
		for {
			if n, room, _, _, err = unix.Recvmsg(int(fd), b[:], rights, closeOnExec); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if err == nil {
			files = filesIn(rights[:room])
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	if err = errors.Join(failed, err); err == nil && n == 0 {
		err = errors.New("it has gone")
	}
	if err != nil || len(files) > most {
		for _, f := range files {
			f.Close()
		}
		files = nil
	}
	return b[0], files, err
}

// filesIn returns all files of a control message, which no child inherits.
func filesIn(rights []byte) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue // it says something else
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "of a window"))
		}
	}
	return files
}
