//go:build linux || darwin

package instance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codemode-bridge/bridge/rpc"

	"golang.org/x/sys/unix"
)

// answering serves clients as a session does: it answers each request with the method,
// but not "wait".
func answering(_ context.Context, client io.ReadWriteCloser) error {
	defer client.Close()
	for in := bufio.NewReader(client); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		m := rpc.Peek(line)
		switch {
		case m.Method == "wait", !m.IsRequest():
		case m.Method == "initialize":
			fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26"}}`+"\n", m.ID)
		default:
			fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%s,"result":{"method":%q}}`+"\n", m.ID, m.Method)
		}
	}
}

// instanceOf starts an instance, which lives until the test ends. Served gets every client
// that it serves.
func instanceOf(t *testing.T, serve func(context.Context, io.ReadWriteCloser) error) (meeting *Rendezvous, i *Instance, served chan io.ReadWriteCloser) {
	t.Helper()
	meeting = at(t, folders(t))
	listener, err := meeting.Own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	i, served = New(listener, Options{Linger: time.Hour}), make(chan io.ReadWriteCloser, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.Serve(ctx, theirs, Bridge{Logger: slog.New(slog.DiscardHandler), Serve: func(ctx context.Context, client io.ReadWriteCloser) error {
			served <- client
			return serve(ctx, client)
		}})
		listener.Close()
		i.Disconnect()
	}()
	t.Cleanup(func() { cancel(); <-ended })
	if _, err := io.ReadAll(ready); err != nil {
		t.Fatal(err)
	}
	return meeting, i, served
}

// A side is a client: what it writes to and reads from, and what the window has of it.
type side struct {
	toServer   *os.File
	fromServer *os.File
	window     Client
}

// closing closes both of the window's ends, as the end of its process does.
func (s side) closing() { s.window.In.Close(); s.window.Out.Close() }

func newSide(in, toServer, fromServer, out *os.File) side {
	return side{toServer, fromServer, Client{ReadWriter: rpc.NewStdio(in, out), In: in, Out: out}}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil { // os.Pipe's do not block
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func byPipes(t *testing.T) side {
	in, toServer := pipe(t)
	fromServer, out := pipe(t)
	return newSide(in, toServer, fromServer, out)
}

// byNonblockingPipes are such as some parents make.
func byNonblockingPipes(t *testing.T) side {
	in, toServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); toServer.Close(); fromServer.Close(); out.Close() })
	return newSide(in, toServer, fromServer, out)
}

// bySockets is a client that is a program of Node.
func bySockets(t *testing.T) side {
	var files [4]*os.File
	for i := range 2 {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		for k, fd := range fds {
			f := os.NewFile(uintptr(fd), "socket")
			files[2*i+k] = f
			t.Cleanup(func() { f.Close() })
		}
	}
	return newSide(files[0], files[1], files[2], files[3])
}

// byFiles is a client whose requests are a file: its lines are copied.
func byFiles(t *testing.T) side {
	s := byPipes(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "requests"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	in, err := os.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return newSide(in, f, s.fromServer, s.window.Out)
}

func flagsOf(t *testing.T, f *os.File) (flags int) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return flags
}

// Whether its ends are handed over or its lines copied, a client reads the same, and its
// ends block as they did.
func TestHandedOverOrCopied(t *testing.T) {
	lines := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, // before initialize
		`not JSON`,
		`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		``,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("long", 100<<10) + `","method":"ping"}`,
		`{"jsonrpc":"2.0","id":3,"method":"without a line's end"}`,
	}, "\n")
	var first string
	for _, row := range []struct {
		name   string
		client func(*testing.T) side
		handed bool
	}{{"pipes", byPipes, true}, {"pipes that do not block", byNonblockingPipes, true}, {"sockets", bySockets, true}, {"a file", byFiles, false}} {
		meeting, _, served := instanceOf(t, answering)
		s := row.client(t)
		before := [2]int{flagsOf(t, s.window.In), flagsOf(t, s.window.Out)}
		conn, err := meeting.Join(t.Context(), nobody)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		write := func() { io.WriteString(s.toServer, lines); s.toServer.Close() }
		var got []byte
		var read sync.WaitGroup
		read.Go(func() { got, _ = io.ReadAll(s.fromServer) })
		if !row.handed {
			write()
		}
		go func() {
			err := meeting.Relay(t.Context(), s.window, conn, io.Discard, time.Minute)
			s.closing()
			ended <- err
		}()
		if _, ok := (<-served).(*handed); ok != row.handed {
			t.Errorf("%s: handed over: %v", row.name, ok)
		}
		if now := [2]int{flagsOf(t, s.window.In), flagsOf(t, s.window.Out)}; now != before {
			t.Errorf("%s: the flags were %x and are %x", row.name, before, now)
		}
		if row.handed {
			write()
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: the window ends with %v", row.name, err)
		}
		read.Wait()
		answered := strings.SplitAfter(string(got), "\n")
		slices.Sort(answered) // a window that copies answers bad lines before good ones
		text := strings.Join(answered, "")
		if first == "" {
			first = text
			if n := strings.Count(first, "\n"); n != 6 || !strings.Contains(first, "initialize comes first") || !strings.Contains(first, "without a line's end") {
				t.Errorf("%s: the client read %d lines:\n%.2000s", row.name, n, first)
			}
		}
		if text != first {
			t.Errorf("%s: the client read %d bytes, with pipes %d", row.name, len(got), len(first))
		}
	}
}

// window hands a client over, as Relay does at first.
func window(t *testing.T, meeting *Rendezvous, s side) (*Conn, *os.File) {
	t.Helper()
	conn, err := meeting.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ok, note, err := offer(conn, s.window)
	if !ok || err != nil {
		t.Fatal("not handed over:", err)
	}
	t.Cleanup(func() { note.Close() })
	return conn, note
}

func lineOf(t *testing.T, f *os.File) string {
	t.Helper()
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := f.Read(b); err != nil {
			t.Fatal(err)
		}
		if line = append(line, b[0]); b[0] == '\n' {
			return string(line)
		}
	}
}

// The client of a window that was killed finds its pipe closed, also while a message is
// written that it does not read; the others' go on.
func TestKilledWindow(t *testing.T) {
	for _, client := range []func(*testing.T) side{byPipes, byNonblockingPipes, bySockets} {
		wrote := make(chan error, 1)
		var once sync.Once
		meeting, i, _ := instanceOf(t, func(ctx context.Context, client io.ReadWriteCloser) error {
			once.Do(func() { // for the first
				client.Write([]byte("begins\n"))
				_, err := client.Write(make([]byte, 8<<20))
				wrote <- err
			})
			return answering(ctx, client)
		})
		killed := client(t)
		conn, note := window(t, meeting, killed)
		lineOf(t, killed.fromServer)
		other := client(t)
		window(t, meeting, other)
		conn.Close()
		note.Close()
		killed.closing()
		if err := <-wrote; err == nil {
			t.Error("what nobody read was written")
		}
		if _, err := io.Copy(io.Discard, killed.fromServer); err != nil {
			t.Error(err)
		}
		fmt.Fprintln(other.toServer, `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		if got := lineOf(t, other.fromServer); !strings.Contains(got, `"id":7`) {
			t.Errorf("another client reads %s", got)
		}
		for i.handed.Load() != 1 {
			time.Sleep(time.Millisecond) // its session ends a moment after its pipe
		}
	}
}

// A window answers what an instance that is gone has left open, each request once.
func TestLostInstance(t *testing.T) {
	meeting := at(t, folders(t))
	listener, err := meeting.Own(t.Context())
	if err == nil {
		err = listener.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	i := New(listener, Options{})
	i.bridge.Logger = slog.New(slog.DiscardHandler)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		listener.Serve(func(c *Conn) {
			defer c.Close()
			if c.ask != askServe || c.accept(Welcome{PID: 4711, Client: "w1"}) != nil {
				return
			}
			h, err := i.take(t.Context(), c)
			if h == nil {
				t.Error("not handed over:", err)
				return
			}
			defer h.finish()
			lines := bufio.NewReader(h)
			for range 6 {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					t.Error(err)
				}
				switch m := rpc.Peek(line); m.Method {
				case "initialize":
					fmt.Fprintf(h, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26"}}`+"\n", m.ID)
				case "ping":
					fmt.Fprintf(h, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
				}
			}
			h.note.writing(true) // it is killed in the middle of a message
		}, func(err error) { t.Error(err) })
	}()
	conn, err := meeting.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	s := byPipes(t)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"three","method":"wait"}`,
		`[{"jsonrpc":"2.0","id":4,"method":"wait"},{"jsonrpc":"2.0","id":5,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":6,"method":"wait"}`,
	} {
		fmt.Fprintln(s.toServer, line)
	}
	err = meeting.Relay(t.Context(), s.window, conn, io.Discard, time.Minute)
	if !errors.Is(err, errGone) || !strings.Contains(err.Error(), "process 4711") {
		t.Errorf("the window ends with %v", err)
	}
	s.closing()
	listener.Close()
	<-ended
	got, err := io.ReadAll(s.fromServer)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(got), "\n"), "\n")
	if len(lines) != 6 || !strings.Contains(lines[0], `"id":1`) || !strings.Contains(lines[1], `"id":2`) || lines[2] != "" {
		t.Fatalf("the client read\n%s", got)
	}
	const gone = `"error":{"code":-32000,"message":"the bridge that served this window has ended; what its calls did is in the audit log"}`
	var batch []struct{ ID int }
	if err := json.Unmarshal([]byte(lines[4]), &batch); err != nil || len(batch) != 2 || batch[0].ID != 4 || batch[1].ID != 5 {
		t.Errorf("the batch is answered with %s", lines[4])
	}
	for n, id := range map[int]string{3: `"id":"three"`, 4: `"id":4`, 5: `"id":6`} {
		if !strings.Contains(lines[n], gone) || !strings.Contains(lines[n], id) {
			t.Errorf("%s is answered with %s", id, lines[n])
		}
	}
}

// A client that does not read is let go, and so is its window.
func TestHandedClientThatDoesNotRead(t *testing.T) {
	for _, client := range []func(*testing.T) side{byPipes, bySockets} {
		wrote := make(chan error, 1)
		meeting, _, _ := instanceOf(t, func(_ context.Context, client io.ReadWriteCloser) error {
			client.(*handed).pipes.wait = time.Millisecond
			_, err := client.Write(make([]byte, 8<<20))
			wrote <- err
			return err
		})
		s := client(t)
		conn, _ := window(t, meeting, s)
		if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a message that nobody reads: %v", err)
		}
		if b, err := io.ReadAll(conn); err != nil || len(b) > 0 {
			t.Errorf("its window is told %q, %v", b, err)
		}
		s.closing()
		if _, err := io.Copy(io.Discard, s.fromServer); err != nil {
			t.Error(err)
		}
	}
}

// An instance that ends waits less for a client that does not read.
func TestHandedClientThatDoesNotReadAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	wrote := make(chan error, 1)
	meeting, _, _ := instanceOf(t, func(_ context.Context, client io.ReadWriteCloser) error {
		p := client.(*handed).pipes
		p.ctx, p.wait, p.last = ctx, time.Hour, time.Millisecond
		client.Write([]byte("begins\n"))
		_, err := client.Write(make([]byte, 8<<20))
		wrote <- err
		return err
	})
	s := byPipes(t)
	window(t, meeting, s)
	lineOf(t, s.fromServer)
	cancel()
	if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a message that nobody reads: %v", err)
	}
}

// A client that sends nothing more, and gets no answer, is not waited for.
func TestHandedClientWithoutAnAnswer(t *testing.T) {
	meeting, _, _ := instanceOf(t, func(ctx context.Context, client io.ReadWriteCloser) error {
		client.(*handed).wait = time.Millisecond
		return answering(ctx, client)
	})
	s := byPipes(t)
	conn, err := meeting.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(s.toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(s.toServer, `{"jsonrpc":"2.0","id":2,"method":"wait"}`)
	s.toServer.Close()
	if err := meeting.Relay(t.Context(), s.window, conn, io.Discard, time.Minute); err != nil {
		t.Errorf("its window ends with %v", err)
	}
	s.closing()
	if got, err := io.ReadAll(s.fromServer); err != nil || strings.Count(string(got), "\n") != 1 {
		t.Errorf("it read %s, %v", got, err)
	}
}

// A window is told when its client no longer reads, so that it ends well.
func TestHandedClientThatIsGone(t *testing.T) {
	meeting, _, _ := instanceOf(t, answering)
	s := byPipes(t)
	conn, err := meeting.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	s.fromServer.Close()
	fmt.Fprintln(s.toServer, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if err := meeting.Relay(t.Context(), s.window, conn, io.Discard, time.Minute); err != nil {
		t.Errorf("its window ends with %v", err)
	}
}

// A window that is told to end ends its session, and says why it ended.
func TestHandedWindowIsToldToEnd(t *testing.T) {
	meeting, _, served := instanceOf(t, answering)
	s := byPipes(t)
	conn, err := meeting.Join(t.Context(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	told := errors.New("told to end")
	ended := make(chan error)
	go func() { ended <- meeting.Relay(ctx, s.window, conn, io.Discard, time.Minute) }()
	fmt.Fprintln(s.toServer, `{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	<-served
	cancel(told)
	if err := <-ended; !errors.Is(err, told) {
		t.Errorf("it ends with %v", err)
	}
}

// Of descriptors that nobody asked for, none stays open.
func TestDescriptorsThatAreNotTaken(t *testing.T) {
	meeting, i, served := instanceOf(t, answering)
	for _, row := range []struct {
		name string
		most bool
		send func(in, out *os.File, conn *net.UnixConn) []int
	}{
		{"three", false, func(in, out *os.File, _ *net.UnixConn) []int { return []int{fd(t, in), fd(t, out), fd(t, out)} }},
		{"one", false, func(_, out *os.File, _ *net.UnixConn) []int { return []int{fd(t, out)} }},
		{"a hundred", false, func(_, out *os.File, _ *net.UnixConn) (all []int) {
			for range 100 {
				all = append(all, fd(t, out))
			}
			return all
		}},
		{"the wrong way", false, func(in, out *os.File, _ *net.UnixConn) []int { return []int{fd(t, out), fd(t, in)} }},
		{"the connection itself", false, func(_, out *os.File, conn *net.UnixConn) []int { return []int{fd(t, conn), fd(t, out)} }},
		{"more windows than there is room for", true, func(in, out *os.File, _ *net.UnixConn) []int { return []int{fd(t, in), fd(t, out)} }},
	} {
		conn, err := meeting.Join(t.Context(), nobody)
		if err != nil {
			t.Fatal(err)
		}
		if row.most {
			i.handed.Store(maxHanded)
		}
		in, toServer := pipe(t)
		fromServer, out := pipe(t)
		if _, _, err := conn.WriteMsgUnix([]byte{sayHand}, unix.UnixRights(row.send(in, out, conn.UnixConn)...), nil); err != nil {
			t.Fatal(err)
		}
		if say, files, err := receive(conn, 2); say != sayCopy || len(files) != 0 || err != nil {
			t.Errorf("%s: the instance says %c, %v", row.name, say, err)
		}
		out.Close()
		if b, err := io.ReadAll(fromServer); err != nil || len(b) > 0 {
			t.Errorf("%s: %q, %v", row.name, b, err)
		}
		if _, ok := (<-served).(*handed); ok {
			t.Errorf("%s: it is served by what it handed over", row.name)
		}
		toServer.Close()
		fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`) // its lines are copied
		if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, `"id":1`) {
			t.Errorf("%s: %s, %v", row.name, line, err)
		}
		conn.Close()
		if n := i.handed.Swap(0); n != 0 && n != maxHanded {
			t.Errorf("%s: %d clients are counted", row.name, n)
		}
	}
}

// fd returns a descriptor as it is; Fd would have it block.
func fd(t *testing.T, f syscall.Conn) (fd int) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(d uintptr) { fd = int(d) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// What is no pipe is not handed over.
func TestUsable(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	named, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	packets := os.NewFile(uintptr(fds[0]), "packets")
	defer packets.Close()
	unix.Close(fds[1])
	r, w := pipe(t)
	for name, f := range map[string]*os.File{"/dev/null": null, "a file": file, "a socket with a name": named, "packets": packets, "the wrong end": w} {
		if _, _, err := usable(f, unix.O_RDONLY); err == nil {
			t.Errorf("%s is handed over", name)
		}
	}
	if _, socket, err := usable(r, unix.O_RDONLY); socket || err != nil {
		t.Errorf("a pipe: %v, %v", socket, err)
	}
	if _, _, err := usable(r, unix.O_WRONLY); err == nil {
		t.Error("the wrong end of a pipe is handed over")
	}
}
