package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/rpc"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/logging"
	"codemode-bridge/cmd/codemode-bridge/running"
	"codemode-bridge/cmd/codemode-bridge/upstreams"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

const (
	// joinTime is how long `run` waits for an instance, which may itself have to
	// wait for another to end.
	joinTime = 45 * time.Second
	// leaveTime is how long `run` waits for its session to end once it was told to.
	leaveTime = grace + 15*time.Second
)

// hostCommand is the process of an instance. It is started by `run`, never by hand,
// and writes one byte to the descriptor that it is given when it listens.
func hostCommand(con *console) *cobra.Command {
	var descriptor int
	c := &cobra.Command{
		Use: "host", Short: "Serve the windows that share a bridge", Hidden: true, Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if descriptor <= 2 {
				return &cli.UsageError{Err: errors.New("host is started by run, not by hand")}
			}
			ready := os.NewFile(uintptr(descriptor), "ready")
			defer ready.Close()
			tuneMemory()
			start, err := beginServing(con)
			if err != nil {
				return err
			}
			return serveShared(c.Context(), con, start, ready)
		},
	}
	c.Flags().IntVar(&descriptor, "ready", 0, "the `descriptor` to say on that it listens")
	return c
}

// serveShared serves the windows that share this instance, until the last has gone.
func serveShared(ctx context.Context, con *console, start beginning, ready *os.File) error {
	cfg, looked := start.cfg, start.looked
	meeting, err := rendezvous(con, cfg, looked)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, joinTime)
	listener, err := meeting.Own(waiting)
	cancel()
	if err != nil {
		return err
	}
	defer listener.Close()
	shared := instance.New(listener, instance.Options{Version: version, Commit: built().Revision(), Log: logging.Dir(con.Env), Linger: timeDuration(cfg.Windows.Linger)})
	con.Err = shared.Stderr()
	con.covers = func(cfg *config.Config, lookedNow []string) error {
		if shared.OnlyOne() {
			return nil
		}
		return sharing(start.cfg, looked).Covers(sharing(cfg, lookedNow))
	}
	if start, err = start.ready(ctx, con); err != nil {
		return err
	}
	err = live(ctx, con, start, func(ctx context.Context, p *parts) error {
		defer p.keepPage(con)()
		defer p.openNotices(false)()
		return shared.Serve(ctx, ready, p.shared())
	})
	listener.Close() // a window that comes now can start the next instance
	shared.Disconnect()
	con.Err = os.Stderr
	os.Stderr.Write(shared.Unheard())
	return err
}

// shared adapts the bridge for package instance.
func (p *parts) shared() instance.Bridge {
	return instance.Bridge{
		Logger: p.log, Refused: p.reloads.trouble,
		Serve: func(ctx context.Context, client io.ReadWriteCloser) error {
			t, ok := client.(mcp.Transport)
			if !ok {
				t = rpc.NewStdio(client, client)
			}
			return p.server.Serve(ctx, t)
		},
		More: func() any { return running.Of(p.config(), p.folder(), p.upstreams) },
		Status: func() (servers []instance.ServerStatus, runs int) {
			return running.Statuses(p.upstreams.Status()), p.server.Running()
		},
	}
}

// joinInstance serves the client through the instance that all windows like this one
// share, which it starts if need be. If joined is false and there is no error, this
// process has to serve the window itself; the person has been told why.
func joinInstance(ctx context.Context, con *console, client instance.Client, cfg *config.Config, looked []string, profile string) (joined bool, err error) {
	meeting, err := rendezvous(con, cfg, looked)
	var conn *instance.Conn
	if err == nil {
		meeting.Bound = profile
		joining, cancel := context.WithTimeout(ctx, joinTime)
		defer cancel()
		conn, err = meeting.Join(joining, func(ctx context.Context) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			// Not exec.CommandContext: it outlives this process.
			command := exec.Command(self, "host", "--config", cfg.File, "--env", con.environment, "--ready", "3")
			return meeting.Start(ctx, command, con.Err)
		})
	}
	var failed *instance.StartError
	switch {
	case errors.As(err, &failed):
		return true, &cli.ExitError{Code: failed.ExitCode}
	case ctx.Err() != nil:
		return true, err
	case errors.Is(err, instance.ErrUnsupported):
		return false, nil // on this system by design: nothing to tell
	case err != nil:
		fmt.Fprintf(con.Err, "codemode-bridge: this window has servers of its own: %v\n", err)
		return false, nil
	}
	fmt.Fprintf(con.Err, "codemode-bridge %s: served by process %d, which all windows of %s share; its log is in %s\n", version, conn.Welcome.PID, con.shownFile(), conn.Welcome.Log)
	return true, meeting.Relay(ctx, client, conn, con.Err, leaveTime)
}

// shownFile is the path of the configuration as the person named it.
func (con *console) shownFile() string {
	path, err := con.file()
	if err != nil {
		return con.configPath
	}
	return con.shown(path)
}

// instanceFolders returns the folders in which this user's windows meet.
func instanceFolders(con *console) (instance.Folders, error) {
	places, err := config.Paths(con.Env)
	if err != nil {
		return instance.Folders{}, err
	}
	f := instance.Folders{State: filepath.Join(places.StateDir, "windows"), Runtime: filepath.Join(os.TempDir(), fmt.Sprintf("codemode-bridge-%d", os.Geteuid()))}
	if dir, ok := con.Env("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		f.Runtime = filepath.Join(dir, "codemode-bridge")
	}
	return f, nil
}

// sharing says what windows must have in common to share an instance of a
// configuration. Looked are the environment variables that it refers to.
func sharing(cfg *config.Config, looked []string) instance.Sharing {
	s := instance.Sharing{Variables: looked, Folder: startsInWindow(cfg)}
	for _, name := range cfg.ServerNames() {
		if server := cfg.Servers[name]; !server.Disabled && server.Type == config.KindStdio {
			for _, passed := range server.PassEnv {
				if len(upstream.Inherited(nil, []string{passed + "="})) == 0 { // those are passed to every server anyway
					s.Passed = append(s.Passed, passed)
				}
			}
			// Unless the configuration names another, the window's folder is the workspace.
			s.Folder = s.Folder || server.Known != "" && len(cfg.Evaluation.Workspace) == 0
		}
	}
	return s
}

// startsInWindow reports whether a server runs in the folder of its window, or in a box
// that has it.
func startsInWindow(cfg *config.Config) bool {
	return slices.ContainsFunc(serverNames(cfg), func(name string) bool {
		s := cfg.Servers[name]
		return s.Type == config.KindStdio && s.Cwd.IsZero() || upstreams.BoxedHere(cfg, s)
	})
}

// rendezvous is where the windows meet that one process can serve. Whatever would make
// a difference to their servers is part of its identity.
func rendezvous(con *console, cfg *config.Config, looked []string) (*instance.Rendezvous, error) {
	f, err := instanceFolders(con)
	if err != nil {
		return nil, err
	}
	places, err := config.Paths(con.Env)
	if err != nil {
		return nil, err
	}
	same := sharing(cfg, looked)
	common, err := same.Identity(con.Env, upstream.Inherited(same.Passed, os.Environ()))
	if err != nil {
		return nil, err
	}
	identity := slices.Concat([]string{"build", version, runtime.Version()}, instance.Program(),
		[]string{"overlay", cfg.Overlay, "folders", places.StateDir, places.CacheDir, places.ConfigFile}, common)
	return instance.At(f, cfg.File, identity)
}
