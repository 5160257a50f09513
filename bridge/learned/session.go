package learned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/relay"
	"codemode-bridge/sandbox/confine"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Server is a server that is started.
type Server struct {
	Launcher string   // codemode-worker
	Command  string   // its path
	Args     []string // without the command
	Env      []string
	Dir      string
	Stderr   io.Writer
	Version  string // of this program, as servers are told
}

// A Session is a server that runs and is watched.
type Session struct {
	watched *confine.Watched
	relay   *relay.Relay
	mcp     *mcp.ClientSession
	notes   Notes
	ended   chan struct{} // the program has ended
	ours    []io.Closer
}

// Start starts a server without a box and connects to it. Its goroutines end with Close.
func Start(ctx context.Context, server Server) (_ *Session, err error) {
	s := &Session{ended: make(chan struct{})}
	in, out, err := s.start(server)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "codemode-bridge", Version: server.Version}, nil)
	s.mcp, err = client.Connect(ctx, &mcp.IOTransport{Reader: out, Writer: in}, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to the server: %w", err)
	}
	return s, nil
}

// start starts the program, with everything that watches it.
func (s *Session) start(server Server) (stdin io.WriteCloser, stdout io.ReadCloser, err error) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		inRead.Close()
		inWrite.Close()
		return nil, nil, err
	}
	s.watched, err = confine.Watch(server.Launcher, func() *exec.Cmd {
		cmd := exec.Command(server.Command, server.Args...)
		cmd.Env, cmd.Dir = server.Env, server.Dir
		cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, server.Stderr
		return cmd
	})
	inRead.Close()
	outWrite.Close()
	if err != nil {
		inWrite.Close()
		outRead.Close()
		return nil, nil, err
	}
	s.ours = []io.Closer{inWrite, outRead}
	var sockets []relay.Socket
	for _, socket := range s.watched.Sockets {
		sockets = append(sockets, relay.Socket{File: socket.File, Port: socket.Port})
	}
	for _, arg := range server.Args { // a folder that it is started with, it uses
		if _, err := os.Stat(arg); err == nil && filepath.IsAbs(arg) {
			s.notes.Add(confine.Use{Kind: confine.Reads, Path: filepath.Clean(arg)})
		}
	}
	s.relay, err = relay.Serve(sockets, relay.Options{Names: confine.Names, Met: s.notes.Met, Log: slog.New(slog.DiscardHandler)})
	go func() {
		defer close(s.ended)
		s.watched.Cmd.Wait() // how it ended is told by the connection
	}()
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	ports := &ports{session: s, tried: map[uint16]bool{80: true, 443: true, 53: true, 0: true}}
	s.watched.Follow(ports.seen)
	return inWrite, outRead, nil
}

// A ports has the ports of a server's network that are served when it first connects to them.
type ports struct {
	session *Session
	tried   map[uint16]bool
}

// seen notes a use. In a network of its own, hosts are noted by the relay, by their names.
func (p *ports) seen(use confine.Use) {
	s := p.session
	if use.Kind != confine.Connects || use.Path != "" {
		s.notes.Add(use)
		return
	}
	if !s.watched.Own {
		s.notes.Add(use)
		return
	}
	port := use.To.Port()
	if p.tried[port] {
		return
	}
	if use.To.Addr().IsLoopback() {
		// Perhaps it is its own, and listens in a moment: only a program of this machine is
		// reason to take the port.
		conn, err := net.DialTimeout("tcp", use.To.String(), time.Second)
		if err != nil {
			return
		}
		conn.Close()
	}
	p.tried[port] = true
	socket, err := s.watched.Listen(port)
	if err != nil {
		return // the server listens there itself
	}
	if err := s.relay.Add(relay.Socket{File: socket.File, Port: port}); err != nil {
		s.notes.Add(use)
	}
}

// Named reports whether the names of hosts are known; if not, why.
func (s *Session) Named() (bool, string) { return s.watched.Own, s.watched.Why }

// Temp is the server's folder for temporary files, which is gone with it.
func (s *Session) Temp() string { return s.watched.Temp }

// Tools lists the names of the server's tools.
func (s *Session) Tools(ctx context.Context) ([]string, error) {
	var names []string
	for tool, err := range s.mcp.Tools(ctx, nil) {
		if err != nil {
			return names, fmt.Errorf("listing its tools: %w", err)
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

// A Call is one call of a tool.
type Call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// ParseCall reads a call: {"tool": "read_file", "args": {"path": "/srv/a"}}.
func ParseCall(text []byte) (Call, error) {
	var c Call
	if err := json.Unmarshal(text, &c); err != nil || c.Tool == "" {
		return Call{}, fmt.Errorf(`a call is a line {"tool": NAME, "args": {…}}, not %.80s`, text)
	}
	return c, c.check()
}

func (c *Call) check() error {
	if len(c.Args) == 0 {
		c.Args = json.RawMessage("{}")
	}
	var args map[string]any
	if json.Unmarshal(c.Args, &args) != nil || args == nil {
		return fmt.Errorf("the arguments of %s are no JSON object", c.Tool)
	}
	return nil
}

// Pairs makes calls of tools and their arguments, which may be fewer.
func Pairs(tools, args []string) ([]Call, error) {
	if len(args) > len(tools) {
		return nil, errors.New("there are more --args than calls")
	}
	var calls []Call
	for i, tool := range tools {
		c := Call{Tool: tool}
		if i < len(args) {
			c.Args = json.RawMessage(args[i])
		}
		if err := c.check(); err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// Make makes a call. The error has the beginning of what the tool said of its own.
func (s *Session) Make(ctx context.Context, c Call) error {
	result, err := s.mcp.CallTool(ctx, &mcp.CallToolParams{Name: c.Tool, Arguments: c.Args})
	if err != nil {
		return fmt.Errorf("calling %s: %w", c.Tool, err)
	}
	if !result.IsError {
		return nil
	}
	said := "it did not say why"
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok && text.Text != "" {
			said = strconv.Quote(fmt.Sprintf("%.200s", text.Text))
			break
		}
	}
	return fmt.Errorf("%s failed: %s", c.Tool, said)
}

// Ended is closed when the server has ended.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// leaving is how long a server may take to end by itself.
const leaving = 3 * time.Second

// Close ends the server and returns what was seen. It may be called again.
func (s *Session) Close() []Seen {
	if s.mcp != nil {
		var closing sync.WaitGroup
		closing.Go(func() { s.mcp.Close() }) // closes its input, upon which servers end
		timer := time.NewTimer(leaving)
		select {
		case <-s.ended:
		case <-timer.C:
		}
		timer.Stop()
		for _, c := range s.ours {
			c.Close()
		}
		closing.Wait()
	}
	for _, c := range s.ours {
		c.Close()
	}
	s.watched.Close()
	<-s.ended
	if s.relay != nil {
		s.relay.Close()
	}
	return s.notes.All()
}

// Kept are the folders, below a home, in which package managers keep what they start. A
// box has a place of its own for them.
func Kept(home string, env []string) []string {
	var all []string
	for _, folder := range []string{
		".npm", ".cache/node", ".cache/node-gyp", ".cache/pnpm", ".local/share/pnpm", ".bun", ".cache/uv", ".local/share/uv", ".cache/pip", ".cache/deno", ".local/share/pipx", ".local/pipx",
	} {
		all = append(all, filepath.Join(home, folder))
	}
	// Node keeps compiled code there, for whoever is next.
	all = append(all, "/tmp/node-compile-cache", "/var/tmp/node-compile-cache")
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if name == "TMPDIR" && filepath.IsAbs(value) {
			all = append(all, filepath.Join(value, "node-compile-cache"))
		}
		if slices.Contains([]string{"npm_config_cache", "NPM_CONFIG_CACHE", "UV_CACHE_DIR", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR"}, name) && filepath.IsAbs(value) {
			all = append(all, filepath.Clean(value))
		}
	}
	return all
}

// Look finds a command in the PATH of an environment.
func Look(command string, env []string) (string, error) {
	if filepath.Base(command) != command {
		return exec.LookPath(command)
	}
	for i := len(env) - 1; i >= 0; i-- {
		folders, ok := strings.CutPrefix(env[i], "PATH=")
		if !ok {
			continue
		}
		for _, folder := range filepath.SplitList(folders) {
			if !filepath.IsAbs(folder) {
				continue // never run a program from whatever folder this is
			}
			if path, err := exec.LookPath(filepath.Join(folder, command)); err == nil {
				return path, nil
			}
		}
		return "", &exec.Error{Name: command, Err: exec.ErrNotFound}
	}
	return exec.LookPath(command)
}
