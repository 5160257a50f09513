package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/roots"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The workspace of a run depends on whose client it has: one over a pipe is this user's,
// one over HTTP may be anywhere, and of a run that a program started it is nobody's.
func TestWhoseWorkspace(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	b := newBench(t, profiles.Spec{}, func(o *Options) {
		o.Workspace = func(_ context.Context, conn *mcp.ServerSession, remote bool) (none workspace.Workspace) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, fmt.Sprintf("client %t, remote %t", conn != nil, remote))
			return none
		}
	})
	server := serveHTTP(t, b, mcphttp.Options{})
	eval(t, b.connect(t, nil), `return 1`)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		eval(t, c, `return 1`)
		c.Close()
	}
	if _, err := b.Eval(t.Context(), "", `return 1`, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(t.Context(), "", `return 1`, nil, "ci"); err != nil {
		t.Fatal(err)
	}
	want := []string{"client true, remote false", "client true, remote true", "client true, remote true", "client false, remote false", "client false, remote true"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("a pipe, both protocols over HTTP, the command line, a program (-want +got):\n%s", diff)
	}
}

// What was around a run when it began stays around it, wherever it goes on and
// whatever the client opens meanwhile.
func TestARunKeepsItsSurroundings(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	find := roots.New(roots.Options{Configured: func() []string { return []string{ws} }, Here: func() string { return "" }, Own: func() []string { return []string{"/own/file"} }})
	f := newFleet()
	first := f.bridge(t, "one", queued(), func(o *Options) {
		o.Workspace = find.Workspace
		view := newView(t, queued())
		view.Trusted, view.Meanings = map[string]bool{"b": true}, map[string]gate.Meant{"a": {Accepted: true}}
		o.Gate.Replace(view)
	})
	id := f.startPaused(t, first, `await codemode.a__echo({n: 1}); return codemode.a__echo({n: 2})`, 1)
	began, _ := first.roster.lookup(id)
	waitUntil(t, func() bool { return began.quiet() })
	first.Close(0)
	// Had the folder become a link, what it leads to would not be in the workspace.
	if err := os.Remove(ws); err != nil {
		t.Fatal(err)
	}
	second := f.bridge(t, "two", queued(), func(o *Options) {
		o.Workspace = func(context.Context, *mcp.ServerSession, bool) workspace.Workspace {
			t.Error("a run that goes on asks for its workspace anew")
			return workspace.Workspace{}
		}
	})
	if err := second.ResumeInBackground(t.Context(), id, "the test"); err != nil {
		t.Fatal(err)
	}
	again, ok := second.roster.lookup(id)
	if !ok {
		t.Fatal("the run does not go on")
	}
	if diff := cmp.Diff(around(t, began.gate.Surroundings), around(t, again.gate.Surroundings)); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
	if got := again.gate.Workspace.Folders(); !slices.Equal(got, []string{ws}) || !again.gate.Accepted["a"] || again.gate.Accepted["b"] || !again.gate.Trusted["b"] {
		t.Errorf("works on %q, accepted %v, trusted %v", got, again.gate.Accepted, again.gate.Trusted)
	}
	for _, e := range f.open(t, 1) {
		f.answer(t, e, approval.Verdict{Stop: true, Text: "enough"})
	}
}

func around(t *testing.T, s gate.Surroundings) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
