package gate

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// touched is a view with one tool of which nothing is known but what its server
// says of it.
func touched(t *testing.T, trusted bool, identities map[string]string) *View {
	t.Helper()
	set, problems := profiles.Parse(supervised(profiles.ProfileSpec{Default: new("risk")}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &View{Profiles: set, Trusted: map[string]bool{"fs": trusted}, Identities: identities, Catalog: catalog.Build([]catalog.Server{
		{Name: "fs", Tools: []catalog.Definition{{Name: "touch", Input: json.RawMessage(`{"type":"object"}`), Annotations: profiles.Annotations{ReadOnly: yes()}}}}})}
}

var touch = Call{Number: 1, Name: "fs__touch", Args: json.RawMessage(`{}`)}

// Trust that a server got while a run was under way is for runs that begin later.
func TestTrustIsKept(t *testing.T) {
	is := map[string]string{"fs": "the server"}
	caller := &fakeCaller{reply: okReply}
	g := New(touched(t, false, is), Options{Caller: caller, Recorder: &book{}})
	early := begin(t, g, "p")
	g.Replace(touched(t, true, is))
	var denied *approval.DeniedError
	if _, err := g.Call(t.Context(), early, touch); !errors.As(err, &denied) || len(caller.calls) > 0 {
		t.Errorf("a run that began before: %v, sent %q", err, caller.calls)
	}
	if _, err := g.Call(t.Context(), begin(t, g, "p"), touch); err != nil || len(caller.calls) != 1 {
		t.Errorf("a run that began after: %v, sent %q", err, caller.calls)
	}
}

// A server of which it is not known what it is gets no call.
func TestUnknownServersAreNotCalled(t *testing.T) {
	caller := &fakeCaller{reply: okReply}
	g := New(touched(t, true, map[string]string{}), Options{Caller: caller, Recorder: &book{}})
	if _, err := g.Call(t.Context(), begin(t, g, "p"), touch); !errors.As(err, new(*UnknownToolError)) || len(caller.calls) > 0 {
		t.Errorf("got %v, sent %q", err, caller.calls)
	}
}

// A call whose answer was lost is not told as refused: it may have been made.
func TestALostCallIsNotRefused(t *testing.T) {
	view := touched(t, true, map[string]string{"fs": "the server"})
	g := New(view, Options{Caller: &fakeCaller{reply: okReply}, Recorder: &book{}})
	r := begin(t, g, "p")
	now := touched(t, true, maps.Clone(view.Identities))
	now.Identities["fs"] = "another"
	g.Replace(now)
	lost := touch
	lost.Lost, lost.Again = true, true
	if _, err := g.Call(t.Context(), r, lost); !errors.As(err, new(*UnknownOutcomeError)) {
		t.Errorf("got %v", err)
	}
}
