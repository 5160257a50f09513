// Package pgtest starts a PostgreSQL server of a test's own: in a scratch folder, on the
// loopback interface, as a user without rights, from the programs of the system's package
// or of the folder POSTGRES_BIN.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	owner    = "bridge"
	password = "s3cret-of-the-database" // which no log and no error may show
)

// Password is that of the server's user.
const Password = password

// A Server is a running PostgreSQL.
type Server struct {
	Port int
	dir  string
	bin  string
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	said bytes.Buffer  // by cmd; read after done

	schemas atomic.Int64
}

// programs returns the folder of PostgreSQL's programs.
func programs() (string, error) {
	if bin := os.Getenv("POSTGRES_BIN"); bin != "" {
		return bin, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian keeps them out of PATH
	slices.Sort(found)
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1]), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("no PostgreSQL server is installed (package postgresql; POSTGRES_BIN names another folder of its programs): %w", err)
	}
	return filepath.Dir(path), nil
}

// Start makes a server and waits until it answers. Each option is one of its settings,
// such as "max_connections=20".
func Start(options ...string) (s *Server, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, fmt.Errorf("making the folder of the server: %w", err)
	}
	s = &Server{dir: dir, bin: bin}
	defer func(s *Server) {
		if err != nil {
			s.Stop()
		}
	}(s)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "password"), []byte(password), 0o600), own(dir), own(filepath.Join(dir, "password"))); err != nil {
		return nil, err
	}
	made := s.command("initdb", "-D", s.Data(), "-U", owner, "--pwfile", filepath.Join(dir, "password"), "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := made.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("making a database: %w\n%s", err, out)
	}
	return s, s.begin(options...)
}

// begin starts the server for the first time, at a port of its own.
func (s *Server) begin(options ...string) error {
	for range 5 { // something else may get the port before the server does
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.Port = l.Addr().(*net.TCPAddr).Port
		l.Close()
		if err = s.Restart(options...); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return errors.New("starting the server: five ports were taken by others")
}

// Standby starts a server that streams from this one, and can only be read until it is
// promoted.
func (s *Server) Standby(options ...string) (b *Server, err error) {
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, fmt.Errorf("making the folder of the stand-by: %w", err)
	}
	b = &Server{dir: dir, bin: s.bin}
	defer func(b *Server) {
		if err != nil {
			b.Stop()
		}
	}(b)
	if err := own(dir); err != nil {
		return nil, err
	}
	from := b.command("pg_basebackup", "-D", b.Data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-U", owner, "-R", "-X", "stream", "-c", "fast", "--no-sync")
	from.Env = append(from.Env, "PGPASSWORD="+password)
	if out, err := from.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copying the server: %w\n%s", err, out)
	}
	return b, b.begin(options...)
}

// Data is the folder of the server's files.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// Own gives a file in it to the server's user.
func (s *Server) Own(name string) error { return own(filepath.Join(s.Data(), name)) }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.Env = s.dir, []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	unprivileged(cmd)
	return cmd
}

// Restart starts the server, which Kill or Halt has ended.
func (s *Server) Restart(options ...string) error {
	args := []string{"-D", s.Data(), "-k", s.dir, "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-c", "fsync=off", "-c", "shared_buffers=16MB"}
	for _, o := range options {
		args = append(args, "-c", o)
	}
	s.cmd, s.done = s.command("postgres", args...), make(chan struct{})
	s.said.Reset()
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	for until := time.Now().Add(30 * time.Second); ; {
		// Its last line says so once the server takes connections.
		if text, err := os.ReadFile(filepath.Join(s.Data(), "postmaster.pid")); err == nil && bytes.HasSuffix(bytes.TrimSpace(text), []byte("\nready")) {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("the server ended: %s", s.said.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) {
			return errors.New("the server does not answer after 30 seconds")
		}
	}
}

// Kill ends the server as a power cut would.
func (s *Server) Kill() {
	// Its children would go on, and keep a new one from starting: they are in its group.
	_ = kill(s.cmd.Process.Pid)
	<-s.done
	_ = os.Remove(filepath.Join(s.Data(), "postmaster.pid"))
}

// Halt ends the server in order.
func (s *Server) Halt() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(os.Interrupt)
		<-s.done
	}
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	s.Halt()
	_ = os.RemoveAll(s.dir)
}

// Schema returns the address of a schema of its own, in which nothing is.
func (s *Server) Schema() string {
	return s.URL("postgres", fmt.Sprintf("s%d_%d", os.Getpid(), s.schemas.Add(1)))
}

// URL returns the address of a schema in a database.
func (s *Server) URL(database, schema string) string { return s.At(s.Port, database, schema) }

// At is URL at another port, where a proxy listens.
func (s *Server) At(port int, database, schema string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(owner, password), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/" + database,
		RawQuery: url.Values{"sslmode": {"disable"}, "search_path": {schema}}.Encode()}
	return u.String()
}

// A Proxy leads connections to a server until they are cut or held up.
type Proxy struct {
	Port int
	l    net.Listener
	to   string
	end  context.CancelFunc
	ctx  context.Context

	stalled atomic.Pointer[chan struct{}] // closed when what is held up may go on; nil if nothing is
	conns   chan map[net.Conn]bool
	// OnRequest, if set, sees what a client sends; nothing is led on if it returns false.
	OnRequest atomic.Pointer[func([]byte) bool]
	// OnAnswer is the same for what the server sends.
	OnAnswer atomic.Pointer[func([]byte) bool]
}

// NewProxy starts a proxy to the server.
func (s *Server) NewProxy() (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Port: l.Addr().(*net.TCPAddr).Port, l: l, to: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)), conns: make(chan map[net.Conn]bool, 1)}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.conns <- make(map[net.Conn]bool)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.lead(c)
		}
	}()
	return p, nil
}

func (p *Proxy) lead(c net.Conn) {
	defer c.Close()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	all := <-p.conns
	all[c], all[server] = true, true
	p.conns <- all
	defer func() {
		all := <-p.conns
		delete(all, c)
		delete(all, server)
		p.conns <- all
	}()
	over := make(chan struct{}, 2)
	go func() { p.copy(server, c, true); over <- struct{}{} }()
	go func() { p.copy(c, server, false); over <- struct{}{} }()
	<-over
}

func (p *Proxy) copy(to, from net.Conn, request bool) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			see := p.OnAnswer.Load()
			if request {
				see = p.OnRequest.Load()
			}
			if see != nil && !(*see)(b[:n]) {
				return
			}
			if wait := p.stalled.Load(); wait != nil {
				select {
				case <-*wait:
				case <-p.ctx.Done():
					return
				}
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Cut ends all connections.
func (p *Proxy) Cut() {
	all := <-p.conns
	for c := range all {
		c.Close()
	}
	p.conns <- all
}

// Stall holds up all that is sent, in both directions, until the function that it
// returns is called.
func (p *Proxy) Stall() (goOn func()) {
	wait := make(chan struct{})
	p.stalled.Store(&wait)
	return func() {
		p.stalled.Store(nil)
		close(wait)
	}
}

// Close ends the proxy.
func (p *Proxy) Close() {
	p.end()
	p.l.Close()
	p.Cut()
}
