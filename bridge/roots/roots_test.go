package roots_test

//lint:file-ignore SA1019 deprecated by the newest protocol, and what clients of older ones have

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/roots"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// folders makes a folder with these below it, and returns a function for their names.
func folders(t *testing.T, names ...string) (at func(name string) string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
}

func uri(path string) string { return "file:///" + strings.TrimPrefix(filepath.ToSlash(path), "/") }

// client connects a client that has roots, unless they are nil, and returns the
// server's end.
func client(t *testing.T, uris ...string) (*mcp.ServerSession, *mcp.Client) {
	t.Helper()
	o := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	if uris != nil {
		o.Capabilities.RootsV2 = &mcp.RootCapabilities{}
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "tester"}, o)
	for _, u := range uris {
		//lint:ignore SA1019 deprecated by the newest protocol; clients have them
		c.AddRoots(&mcp.Root{URI: u})
	}
	here, there := mcp.NewInMemoryTransports()
	conn, err := mcp.NewServer(&mcp.Implementation{Name: "bridge"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.Connect(t.Context(), there, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close(); conn.Wait() })
	return conn, c
}

func TestWorkspace(t *testing.T) {
	at := folders(t, "ws/a", "ws/b", "other", "my project", "state")
	all := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, at(name))
		}
		return paths
	}
	for _, row := range []struct {
		name       string
		configured []string
		roots      []string // nil: the client has none to name
		remote     bool
		want       []string
	}{
		{"what the configuration says", all("ws"), []string{uri(at("other"))}, false, all("ws")},
		{"what the client has open", nil, []string{uri(at("ws/a")), uri(at("my project"))}, false, all("my project", "ws/a")},
		{"an encoded name", nil, []string{strings.ReplaceAll(uri(at("my project")), " ", "%20")}, false, all("my project")},
		{"the folder of the window", nil, nil, false, all("other")},
		{"the folder of the window, as the client names none", nil, []string{}, false, all("other")},
		{"roots that are no folders of this machine", nil, []string{"https://example.com/ws", "file://elsewhere/ws", uri(at("ws/b"))}, false, all("ws/b")},
		{"no root of this machine", nil, []string{"https://example.com/ws"}, false, nil},
		{"a root that is too wide", nil, []string{uri(at("ws/a")), "file:///"}, false, nil},
		{"a root above our own files", nil, []string{uri(at(""))}, false, nil},
		{"nothing over HTTP", nil, []string{uri(at("ws"))}, true, nil},
		{"what the configuration says, over HTTP", all("ws"), nil, true, all("ws")},
		{"narrowed over HTTP", all("ws"), []string{uri(at("ws/a"))}, true, all("ws/a")},
		{"never wider over HTTP", all("ws/a"), []string{uri(at("ws")), uri(at("other"))}, true, all("ws/a")},
		{"nothing in common over HTTP", all("ws"), []string{uri(at("other"))}, true, nil},
		{"a configured folder that is too wide", all(""), nil, false, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f := roots.New(roots.Options{
				Configured: func() []string { return row.configured },
				Here:       func() string { return at("other") },
				Own:        func() []string { return all("state/bridge.db") },
				Log:        slog.New(slog.NewTextHandler(&log, nil)),
			})
			conn, _ := client(t, row.roots...)
			w := f.Workspace(t.Context(), conn, row.remote)
			if diff := cmp.Diff(row.want, w.Folders()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if own := w.Locate(at("state/bridge.db"), ""); own.Secret == "" {
				t.Error("our own files are not known")
			}
			f.Workspace(t.Context(), conn, row.remote)
			wide := strings.Contains(row.name, "too wide") || strings.Contains(row.name, "our own")
			if got := strings.Count(log.String(), "scripts have no workspace"); got > 1 || (got == 1) != wide {
				t.Errorf("logged %d times:\n%s", got, log.String())
			}
		})
	}
}

// What a client opens later counts for later runs.
func TestRootsAreFrozen(t *testing.T) {
	t.Parallel()
	at := folders(t, "a", "b")
	f := roots.New(roots.Options{Configured: func() []string { return nil }, Here: func() string { return "" }, Own: func() []string { return nil }})
	conn, c := client(t, uri(at("a")))
	first := f.Workspace(t.Context(), conn, false)
	//lint:ignore SA1019 deprecated by the newest protocol; clients have them
	c.AddRoots(&mcp.Root{URI: uri(at("b"))})
	second := f.Workspace(t.Context(), conn, false)
	if diff := cmp.Diff([][]string{{at("a")}, {at("a"), at("b")}}, [][]string{first.Folders(), second.Folders()}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A client that does not answer has no roots, and the run does not wait for long.
func TestClientThatDoesNotAnswer(t *testing.T) {
	at := folders(t, "here")
	synctest.Test(t, func(t *testing.T) {
		conn, c := client(t, "file:///never")
		c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "roots/list" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return next(ctx, method, req)
			}
		})
		f := roots.New(roots.Options{Configured: func() []string { return nil }, Here: func() string { return at("here") }, Own: func() []string { return nil }})
		began := time.Now()
		w := f.Workspace(t.Context(), conn, false)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("waited %v", took)
		}
		if diff := cmp.Diff([]string{at("here")}, w.Folders()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
