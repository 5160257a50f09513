package learned_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/learned"
	"codemode-bridge/sandbox/confine"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "box" {
		os.Exit(confine.Main())
	}
	if len(os.Args) == 2 && os.Args[1] == "server" {
		os.Exit(serve())
	}
	os.Exit(m.Run())
}

// A use is what the tool of the server is asked to do.
type use struct {
	Write   string `json:"write"`
	Read    string `json:"read"`
	Connect string `json:"connect"`
}

// serve is a server that does what its tool is asked to.
func serve() (code int) {
	s := mcp.NewServer(&mcp.Implementation{Name: "any", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "use"}, func(_ context.Context, _ *mcp.CallToolRequest, in use) (*mcp.CallToolResult, any, error) {
		if err := os.WriteFile(in.Write, []byte("x"), 0o600); err != nil {
			return nil, nil, err
		}
		if _, err := os.ReadFile(in.Read); err != nil {
			return nil, nil, err
		}
		conn, err := net.Dial("tcp", in.Connect)
		if err != nil {
			return nil, nil, err
		}
		_, err = io.ReadAll(conn) // until the relay has seen it
		return nil, nil, errors.Join(err, conn.Close())
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// A server that is watched works, and its box is proposed from what its calls did.
func TestLearn(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(base, name) }
	for _, folder := range []string{"app", "notes", "home"} {
		if err := os.Mkdir(in(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(in("notes/a.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := learned.Start(t.Context(), learned.Server{
		Launcher: self, Command: self, Args: []string{"server"}, Dir: in("home"), Stderr: os.Stderr, Version: "1",
		Env: []string{"HOME=" + in("home"), "PATH=/usr/bin:/bin"},
	})
	if err != nil && strings.Contains(err.Error(), "watching system calls: ") {
		t.Skip("no system call can be watched here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	own, why := s.Named()
	tools, err := s.Tools(t.Context())
	if diff := cmp.Diff([]string{"use"}, tools); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	make := func(connect string) error {
		args, err := json.Marshal(use{Write: in("app/new"), Read: in("notes/a.md"), Connect: connect})
		if err != nil {
			t.Fatal(err)
		}
		return s.Make(t.Context(), learned.Call{Tool: "use", Args: args})
	}
	var want []string
	if own {
		want = []string{"nobody.invalid:8443"}
		if err := make("nobody.invalid:8443"); err != nil {
			t.Error(err)
		}
	} else {
		t.Logf("the names of hosts are not known: %s", why)
		if err := make("127.0.0.1:1"); err == nil {
			t.Error("a connection to nobody")
		}
	}
	if err := s.Make(t.Context(), learned.Call{Tool: "other", Args: json.RawMessage(`{}`)}); err == nil {
		t.Error("a tool that is not there was called")
	}
	p := learned.Propose(s.Close(), learned.Around{
		Home: in("home"), Workspace: []string{in("app")}, Had: []string{self}, System: confine.Had, Own: own,
	})
	p.Used, p.Not = nil, nil
	if diff := cmp.Diff(learned.Proposal{Write: []string{"workspace"}, Read: []string{in("notes/a.md")}, Net: want}, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	select {
	case <-s.Ended():
	default:
		t.Error("the server still runs")
	}
}

// A program that is no server is told of, and does not go on.
func TestLearnNoServer(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := learned.Start(t.Context(), learned.Server{Launcher: self, Command: "/bin/true", Dir: "/"})
	if err == nil {
		s.Close()
		t.Error("/bin/true is a server")
	}
}
