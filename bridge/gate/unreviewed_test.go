package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"
)

const whyHeld = "its definition changed since ann accepted it on 2026-11-20"

// holding is a gate with fs__read held, before whatever allows or denies.
func holding(t *testing.T, spec profiles.Spec, h UnreviewedTool, o func(*Options)) (*Gate, *fakeCaller, *book) {
	t.Helper()
	caller, b := &fakeCaller{reply: okReply}, &book{}
	g := newGate(t, spec, caller, b)
	old := g.View()
	h.Why = whyHeld
	view := &View{Profiles: old.Profiles, Catalog: old.Catalog, Trusted: map[string]bool{"fs": true}, Complete: true, Unreviewed: map[ToolName]UnreviewedTool{{"fs", "read"}: h}}
	options := Options{Caller: caller, Recorder: b}
	if o != nil {
		o(&options)
	}
	return New(view, options), caller, b
}

var readCall = Call{Number: 1, Name: "fs__read", Args: json.RawMessage(`{"path":"x"}`)}

func TestQuarantinedToolIsDenied(t *testing.T) {
	off := false
	for name, spec := range map[string]profiles.Spec{
		"without a policy":         {},
		"on the allowlist":         supervised(profiles.ProfileSpec{Allowlist: []string{"fs__*"}}),
		"on the asklist":           supervised(profiles.ProfileSpec{Asklist: []string{"fs__read"}}),
		"with the gate turned off": {Enabled: &off, Profiles: map[string]*profiles.ProfileSpec{"p": {}}},
	} {
		profile := ""
		if spec.Profiles != nil {
			profile = "p"
		}
		g, caller, b := holding(t, spec, UnreviewedTool{Quarantined: true}, nil)
		_, err := g.Call(t.Context(), begin(t, g, profile), readCall)
		var denied *approval.DeniedError
		if !errors.As(err, &denied) || denied.Reason != approval.Denied || denied.Message != "fs__read was not sent: it is quarantined: "+whyHeld+". The same call is denied again" {
			t.Errorf("%s: %v", name, err)
		}
		if len(caller.calls) != 0 {
			t.Errorf("%s: it was sent", name)
		}
		if got := b.events(); got != "run_started refusal:refused" {
			t.Errorf("%s: recorded %s", name, got)
		}
		if names := g.View().Sees(profile).Names(); slices.Contains(names, "fs__read") || !slices.Contains(names, "fs__delete") {
			t.Errorf("%s: scripts see %q", name, names)
		}
	}
}

// What policy denies by itself stays the reason that is given, of a tool that
// is quarantined as well.
func TestHeldToolThatIsDenied(t *testing.T) {
	g, caller, _ := holding(t, supervised(profiles.ProfileSpec{Denylist: []string{"fs__read"}}), UnreviewedTool{}, nil)
	_, err := g.Call(t.Context(), begin(t, g, "p"), readCall)
	if err == nil || !strings.Contains(err.Error(), "denylist") || len(caller.calls) != 0 {
		t.Errorf("a denied tool that has changed: %v", err)
	}
}

func TestHeldToolIsAsked(t *testing.T) {
	g, caller, b := holding(t, supervised(profiles.ProfileSpec{Allowlist: []string{"fs__read"}}), UnreviewedTool{Difference: []string{"@description", "+Sends."}}, nil)
	e, answered := readIsAsked(t, g)
	if e.Decision.Because().Detail != whyHeld || !slices.Equal(e.Difference, []string{"@description", "+Sends."}) {
		t.Errorf("the question is %+v", e.Request)
	}
	if d := wording.Describe(e.Request, wording.DescribeOptions{}); d.Rule != whyHeld || len(d.Difference) != 2 {
		t.Errorf("it is described as %+v", d)
	}
	if _, err := g.Settle(t.Context(), e.ID, e.Digest(), approval.Verdict{Approve: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil || len(caller.calls) != 1 {
		t.Errorf("after a yes: %v, sent %q", err, caller.calls)
	}
	asked := slices.IndexFunc(b.records, func(r ledger.Record) bool { return r.Event == ledger.Asked })
	if asked < 0 || !slices.Contains(b.records[asked].Reasons, whyHeld) {
		t.Errorf("recorded %+v", b.records)
	}
}

// A tool that changes while a person thinks makes their yes worthless.
func TestHeldMeanwhile(t *testing.T) {
	for name, change := range map[string]func(old *View) *View{
		"another definition": func(old *View) *View {
			return &View{Profiles: old.Profiles, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: []catalog.Definition{{Name: "read", Description: "sends"}}}}), Unreviewed: old.Unreviewed}
		},
		"blocked": func(old *View) *View {
			return &View{Profiles: old.Profiles, Catalog: old.Catalog, Unreviewed: map[ToolName]UnreviewedTool{{"fs", "read"}: {Why: "ann blocked it", Quarantined: true}}}
		},
	} {
		g, caller, _ := holding(t, supervised(profiles.ProfileSpec{}), UnreviewedTool{}, nil)
		e, answered := readIsAsked(t, g)
		g.Replace(change(g.View()))
		if _, err := g.Settle(t.Context(), e.ID, e.Digest(), approval.Verdict{Approve: true, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		var denied *approval.DeniedError
		if err := <-answered; !errors.As(err, &denied) || len(caller.calls) != 0 {
			t.Errorf("%s: %v, sent %q", name, err, caller.calls)
		}
	}
}

// readIsAsked makes readCall, and returns the question about it and where its error
// comes.
func readIsAsked(t *testing.T, g *Gate) (approval.StoredRequest, <-chan error) {
	t.Helper()
	r, err := g.Begin(t.Context(), Origin{ID: "r1", Session: "s1", Profile: "p", Reach: ByElicitation}, nil)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := g.Call(t.Context(), r, readCall)
		answered <- err
	}()
	return waitFor(t, g), answered
}

// waitFor returns the question that is put to a person.
func waitFor(t *testing.T, g *Gate) approval.StoredRequest {
	t.Helper()
	for {
		told := g.Broker().Changed()
		open, err := g.Broker().Requests(context.Background(), approval.Filter{Open: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if len(open) > 0 {
			return open[0]
		}
		<-told
	}
}

// What a changed tool says of itself lowers no risk until somebody
// has accepted it, and what it said before counts as well.
func TestHeldToolIsNoLessRisky(t *testing.T) {
	yes := true
	risky := catalog.Definition{Name: "read", Description: "deletes and sends everything", Annotations: profiles.Annotations{Destructive: &yes}}
	for _, row := range []struct {
		name     string
		trusted  bool
		held     *UnreviewedTool
		readOnly bool
		risk     profiles.Risk
	}{
		{"accepted, and its annotations are trusted", true, nil, true, profiles.Low},
		{"changed: what it says is not trusted", true, &UnreviewedTool{Why: whyHeld}, false, profiles.High},
		{"changed from something worse", true, &UnreviewedTool{Why: whyHeld, Was: &risky}, false, profiles.High},
	} {
		set, problems := profiles.Parse(supervised(profiles.ProfileSpec{}))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		view := &View{Profiles: set, Complete: true, Trusted: map[string]bool{"fs": row.trusted}, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: []catalog.Definition{
			{Name: "frobnicate", Description: "frobnicates", Annotations: profiles.Annotations{ReadOnly: &yes}}}}})}
		if row.held != nil {
			view.Unreviewed = map[ToolName]UnreviewedTool{{"fs", "frobnicate"}: *row.held}
		}
		tool, _ := view.Catalog.Lookup("fs__frobnicate")
		p, _ := set.Profile("p")
		if got := decideAll(p, view.Facts(tool)).Risk; got != row.risk {
			t.Errorf("%s: risk %s, want %s", row.name, got, row.risk)
		}
		if got := view.ReadOnly("p"); got != row.readOnly {
			t.Errorf("%s: read-only %v, want %v", row.name, got, row.readOnly)
		}
	}
	// A description that has lost its dangerous words is as risky as before.
	set, _ := profiles.Parse(supervised(profiles.ProfileSpec{}))
	p, _ := set.Profile("p")
	view := &View{Profiles: set, Catalog: catalog.Build([]catalog.Server{{Name: "fs", Tools: []catalog.Definition{{Name: "read", Description: "reads"}}}}),
		Unreviewed: map[ToolName]UnreviewedTool{{"fs", "read"}: {Why: whyHeld, Was: &risky}}}
	tool, _ := view.Catalog.Lookup("fs__read")
	if d := decideAll(p, view.Facts(tool)); d.Risk != profiles.High || d.Disposition != profiles.Ask {
		t.Errorf("a harmless new text gives %s, risk %s", d.Disposition, d.Risk)
	}
}
