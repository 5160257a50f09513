package gate

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
)

// boxGate is a gate whose server s is kept to what box points at, with a policy that
// allows looking and asks about the rest.
func boxGate(t *testing.T, folder string, box *Box) (*Gate, *fakeCaller) {
	t.Helper()
	spec := supervised(profiles.ProfileSpec{Default: new("ask"), Rules: []profiles.RuleSpec{
		{Effects: []string{"read"}, Where: []string{"workspace"}, Action: new("allow")},
		{Effects: []string{"read"}, Where: []string{"remote"}, Net: []string{"fixed"}, Action: new("allow")},
	}})
	view := meantView(t, spec, folder)
	view.Box = func(server string) Box {
		if server != "s" {
			t.Errorf("asked about %q", server)
		}
		return *box
	}
	caller := &fakeCaller{reply: okReply}
	return New(view, Options{Caller: caller, Recorder: &book{}}), caller
}

// A browser counts as on this machine while the system keeps it there, also after a
// script in its page; without that nothing is known.
func TestABrowserThatIsKeptHere(t *testing.T) {
	for name, row := range map[string]struct {
		box  Box
		here bool
	}{
		"nothing holds it":    {Box{}, false},
		"its hosts":           {Box{Net: true, Hosts: []string{"localhost"}}, true},
		"no network":          {Box{Net: true}, true},
		"another host, too":   {Box{Net: true, Hosts: []string{"localhost", "a.example"}}, false},
		"an address":          {Box{Net: true, Hosts: []string{"127.0.0.1"}}, false},
		"the step is refused": {Box{Hosts: []string{"localhost"}}, false},
		"files alone":         {Box{Files: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := boxGate(t, "/", &row.box)
				run := beginMeant(t, g, "s1", workspace.Workspace{})
				run.asks(!row.here, "s__open", `{"url":"http://localhost:3000"}`)
				run.asks(true, "s__open", `{"url":"https://a.example"}`)
				run.asks(true, "s__script", `{"code":"1"}`)
				run.asks(!row.here, "s__back", `{}`)
				// Of what is not on this machine, or no address of it, nothing is said.
				run.asks(true, "s__open", `{"url":"file:///etc/passwd"}`)
				run.asks(true, "s__click", `{"target":"x"}`)
			})
		})
	}
}

// What a server reads that names no path is in the workspace if it can read nothing
// else, and not otherwise.
func TestAServerThatIsKeptInTheWorkspace(t *testing.T) {
	root, ws := playground(t)
	for name, row := range map[string]struct {
		box    Box
		within bool
	}{
		"nothing holds it":          {Box{Write: []string{ws}}, false},
		"the workspace":             {Box{Files: true, Write: []string{ws}}, true},
		"a folder of it, to read":   {Box{Files: true, Read: []string{filepath.Join(ws, "src")}}, true},
		"no folder at all":          {Box{Files: true}, true},
		"another folder to change":  {Box{Files: true, Write: []string{ws, root}}, false},
		"another folder to read":    {Box{Files: true, Write: []string{ws}, Read: []string{root}}, false},
		"the network is no matter":  {Box{Net: true, Write: []string{ws}}, false},
		"what its names lead to is": {Box{Files: true, Write: []string{filepath.Join(ws, "out")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "what its names") {
				link(t, root, filepath.Join(ws, "out"))
			}
			synctest.Test(t, func(t *testing.T) {
				g, _ := boxGate(t, ws, &row.box)
				run := beginMeant(t, g, "s1", inWorkspace(t, ws))
				run.asks(!row.within, "s__read", `{}`)
				run.asks(true, "s__write", `{"text":"x"}`)
				run.asks(false, "s__read", `{"path":"src/a"}`)
			})
		})
	}
}

// A call that was judged while a box box is not sent once it does not.
func TestABoxThatDoesNotHoldAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ws := playground(t)
		box := Box{Net: true, Files: true, Write: []string{ws}}
		g, caller := boxGate(t, ws, &box)
		run := beginMeant(t, g, "s1", inWorkspace(t, ws))
		for name, less := range map[string]Box{
			"the network": {Files: true, Write: []string{ws}},
			"the files":   {Net: true, Write: []string{ws}},
		} {
			box = Box{Net: true, Files: true, Write: []string{ws}}
			sent := len(caller.calls)
			asked, err := run.call("s__write", `{"path":"src/a","text":"x"}`, func() { box = less })
			var denied *approval.DeniedError
			if !asked || !errors.As(err, &denied) || denied.Reason != approval.Stale || !strings.Contains(denied.Message, "the box of s does not hold") {
				t.Errorf("without %s: asked %v, ended with %v", name, asked, err)
			}
			if len(caller.calls) != sent {
				t.Errorf("without %s: sent %q", name, caller.calls[sent:])
			}
		}
	})
}

// The question says what holds, and so does the record of the call.
func TestTheBoxIsSaidAndRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ws := playground(t)
		box := Box{Says: "confined to /home/me/app, no network", Steps: "files network"}
		g, _ := boxGate(t, ws, &box)
		run := beginMeant(t, g, "s1", inWorkspace(t, ws))
		run.asks(true, "s__write", `{"path":"src/a","text":"x"}`)
		var said, recorded []string
		all, err := g.Broker().Requests(t.Context(), approval.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range all {
			said = append(said, q.Items[0].About.Box)
		}
		for _, rec := range g.recorder.(*book).records {
			if rec.Event == ledger.Intent {
				recorded = append(recorded, rec.Box)
			}
		}
		if diff := cmp.Diff([][]string{{box.Says}, {box.Steps}}, [][]string{said, recorded}); diff != "" {
			t.Error(diff)
		}
	})
}
