// Package roots finds the folders that a run works on: its workspace.
//
// They are those of the configuration. Without any, they are the folders that the
// client has open (its roots) or, if it names none, the folder that it started the
// bridge in: the person at a client over a pipe is the one who runs the bridge. A
// client over HTTP may be anybody, anywhere: its roots can only narrow what the
// configuration says, and without that there is no workspace.
//
// A client is asked once for each run, when it begins. What it says later counts for
// later runs. Where the folders lead is found once for each run, too, when it is first
// needed, which is before its first call is decided; a run without calls needs it never.
package roots

//lint:file-ignore SA1019 deprecated by the newest protocol, and what clients of older ones have

import (
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/workspace"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options are what a Finder works with. Configured, Here and Own are required.
type Options struct {
	Configured func() []string // the folders of the configuration in force; none if it names none
	Here       func() string   // the folder that the bridge was started in; empty if that is not known
	Own        func() []string // the bridge's own files, which no workspace has
	// Patience is how long a client may take to name its roots; 0 means 2 s. One that
	// takes longer has none.
	Patience time.Duration
	Log      *slog.Logger // nil means slog.Default()
}

// A Finder finds workspaces. Any number of goroutines may use it.
type Finder struct {
	o Options

	mu   sync.Mutex
	said map[string]bool // what was logged, which is logged once
}

// New makes a finder.
func New(o Options) *Finder {
	if o.Patience == 0 {
		o.Patience = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Finder{o: o, said: map[string]bool{}}
}

// Workspace returns the workspace of a run that begins now, of a client at conn (nil:
// there is none). Remote says that the client may be on another machine, or that
// nobody is there whose folders they could be. Folders that are too wide for a
// workspace are no workspace at all, which is logged.
func (f *Finder) Workspace(ctx context.Context, conn *mcp.ServerSession, remote bool) workspace.Workspace {
	configured := f.o.Configured()
	if len(configured) > 0 {
		w := f.make(configured, slog.LevelWarn)
		if !remote {
			return w
		}
		if named, folders := f.ask(ctx, conn); named {
			return workspace.Later(func() workspace.Workspace { return w.Narrow(folders) })
		}
		return w
	}
	if remote {
		return f.make(nil, slog.LevelWarn)
	}
	if named, folders := f.ask(ctx, conn); named {
		return f.make(folders, slog.LevelWarn)
	}
	if here := f.o.Here(); here != "" {
		return f.make([]string{here}, slog.LevelInfo) // some clients start everything in / or at home
	}
	return f.make(nil, slog.LevelWarn)
}

// make makes a workspace of folders. If they are none, it has no folders, and why is
// logged at that level.
func (f *Finder) make(folders []string, level slog.Level) workspace.Workspace {
	own := f.o.Own()
	return workspace.Later(func() workspace.Workspace { return f.follow(folders, own, level) })
}

func (f *Finder) follow(folders, own []string, level slog.Level) workspace.Workspace {
	w, err := workspace.New(folders, own)
	if err == nil {
		return w
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if text := err.Error(); !f.said[text] {
		f.said[text] = true
		f.o.Log.Log(context.Background(), level, "scripts have no workspace: every path counts as outside", "why", text)
	}
	w, _ = workspace.New(nil, own) // without folders there is nothing to refuse
	return w
}

// ask asks a client for its roots. It reports whether the client named any, with the
// folders of this machine among them.
func (f *Finder) ask(ctx context.Context, conn *mcp.ServerSession) (named bool, folders []string) {
	if conn == nil || conn.InitializeParams() == nil || conn.InitializeParams().Capabilities == nil || conn.InitializeParams().Capabilities.RootsV2 == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience)
	defer cancel()
	//lint:ignore SA1019 deprecated by the newest protocol; clients have them
	answer, err := conn.ListRoots(ctx, nil)
	if err != nil {
		f.o.Log.Debug("asking a client for its roots", "err", err)
		return false, nil
	}
	for _, root := range answer.Roots {
		if root == nil {
			continue
		}
		named = true
		if folder := folderOf(root.URI); folder != "" {
			folders = append(folders, folder)
		}
	}
	return named, folders
}

// folderOf returns the folder of this machine that a URI names; empty if it names
// something else.
func folderOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Host != "" && u.Host != "localhost" {
		return ""
	}
	path := u.Path
	if runtime.GOOS == "windows" { // file:///C:/work
		path = strings.TrimPrefix(path, "/")
	}
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		return ""
	}
	return filepath.Clean(path)
}
