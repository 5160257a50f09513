package view

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/profiles"
)

// A bench is a gate whose views a maker makes, of servers that list what a test says.
type bench struct {
	*Maker
	gate *gate.Gate

	mu      sync.Mutex
	listed  map[string][]catalog.Definition
	records []ledger.Record
}

func (b *bench) Enqueue(_ context.Context, r ledger.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, r)
}

func (b *bench) lists(server string, tools ...catalog.Definition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed[server] = tools
}

func (b *bench) reasons() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.records {
		all = append(all, r.Reasons...)
	}
	return all
}

func tool(name, description string) catalog.Definition {
	return catalog.Definition{Name: name, Description: description, Input: []byte(`{"type":"object"}`)}
}

func configured(t *testing.T, servers ...Server) Configured {
	t.Helper()
	set, err := profiles.FromSource([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return Configured{Profiles: set, Servers: servers}
}

func newBench(t *testing.T, cache string, servers ...Server) *bench {
	t.Helper()
	b := &bench{listed: map[string][]catalog.Definition{}}
	b.Maker = New(configured(t, servers...), Options{
		Listed: func() map[string][]catalog.Definition {
			b.mu.Lock()
			defer b.mu.Unlock()
			all := map[string][]catalog.Definition{}
			for name, tools := range b.listed {
				all[name] = tools
			}
			return all
		},
		Observed: func(*catalog.Tool, int) catalog.Observation { return catalog.Observation{} },
		Pins:     pins.Open(""), Hide: func(text string) string { return text },
		Recorder: b, Cache: cache, Log: slog.New(slog.DiscardHandler),
	})
	b.gate = gate.New(b.First(), gate.Options{})
	b.Serve(b.gate, b.gate.Replace)
	t.Cleanup(b.Wait)
	return b
}

func names(v *gate.View) (all []string) {
	for _, t := range v.Catalog.Tools() {
		if t.Server != "" { // those without are our own
			all = append(all, t.Path())
		}
	}
	slices.Sort(all)
	return all
}

var (
	web   = Server{Name: "web", Rules: pins.Rules{New: pins.Allow, Changed: pins.Ask}}
	clock = Server{Name: "clock", Builtin: true, Trusted: true}
)

// Why a server is absent is said in the same words while it fails, whatever it says each
// time, so that the clients' lists of tools do not change with every attempt.
func TestAbsent(t *testing.T) {
	t.Parallel()
	state, why := "connecting", ""
	m := New(configured(t, web, clock), Options{
		Listed:   func() map[string][]catalog.Definition { return nil },
		Absent:   func(server string) (string, string) { return state, why },
		Observed: func(*catalog.Tool, int) catalog.Observation { return catalog.Observation{} },
		Pins:     pins.Open(""), Hide: func(text string) string { return text }, Log: slog.New(slog.DiscardHandler),
	})
	is := func(want string) {
		t.Helper()
		for _, a := range m.First().Catalog.Absent() {
			if a.Why != want {
				t.Errorf("%s is absent since %q, want %q", a.Server, a.Why, want)
			}
		}
	}
	is("connecting")
	state, why = "failed", "exit status 1 at 14:02"
	is("failed: exit status 1 at 14:02")
	why = "exit status 1 at 14:03"
	is("failed: exit status 1 at 14:02")
	why = "" // it is being tried again
	is("failed: exit status 1 at 14:02")
	state = "needs a login"
	is("needs a login")
	if n := len(m.First().Catalog.Absent()); n != 2 {
		t.Errorf("%d servers are absent", n)
	}
}

// What a server had in the last run stands in for what it has not listed yet.
func TestTheLastRunStandsIn(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	b := newBench(t, cache, web, clock)
	if v := b.gate.View(); v.Complete || len(v.Awaited) == 0 || len(names(v)) > 0 {
		t.Errorf("before anything is listed, complete is %t: %q", v.Complete, names(v))
	}
	b.lists("web", tool("search", "Searches."))
	b.lists("clock", tool("now", "The time."))
	b.Refresh()
	want := []string{"clock__now", "web__search"}
	v := b.gate.View()
	if diff := cmp.Diff(want, names(v)); diff != "" || !v.Complete || len(v.Awaited) > 0 {
		t.Errorf("once all is listed, complete is %t (-want +got):\n%s", v.Complete, diff)
	}
	if diff := cmp.Diff(map[string]bool{"clock": true, "web": false}, v.Trusted); diff != "" {
		t.Errorf("others are trusted (-want +got):\n%s", diff)
	}
	again := newBench(t, cache, web, clock)
	if v := again.gate.View(); !v.Complete || !slices.Equal(names(v), want) || stale(v) != 2 {
		t.Errorf("at the next start, complete is %t: %q, %d of the last run", v.Complete, names(v), stale(v))
	}
	if len(again.records) > 0 {
		t.Errorf("what the server has not said today is recorded: %+v", again.records)
	}
}

// A tool whose definition changed needs a review, in the same view, and there is a
// record of it.
func TestAChangedToolNeedsReview(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", web, clock)
	b.lists("web", tool("search", "Searches."), tool("fetch", "Fetches."))
	b.lists("clock", tool("now", "The time."))
	b.Refresh()
	if v := b.gate.View(); len(v.Unreviewed) > 0 {
		t.Fatalf("at first contact, %v need review", v.Unreviewed)
	}
	b.lists("web", tool("search", "Searches, and sends what it finds elsewhere."), tool("fetch", "Fetches."))
	b.lists("clock", tool("now", "The time, in another release."))
	b.Refresh()
	v := b.gate.View()
	search := gate.ToolName{Server: "web", Tool: "search"}
	if got := slices.Collect(maps.Keys(v.Unreviewed)); !slices.Equal(got, []gate.ToolName{search}) {
		t.Errorf("of the changed tools, %v need review", got)
	}
	if u := v.Unreviewed[search]; u.Quarantined || len(u.Difference) == 0 {
		t.Errorf("the changed tool is %+v", u)
	}
	if got, want := b.reasons(), []string{"first contact with 2 tools", "its definition has changed: its calls ask"}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// Servers tend to connect together: many touches make one view.
func TestFollowWaitsForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", web)
		ctx, stop := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { b.Follow(ctx) })
		changed := b.Changed()
		var tools []catalog.Definition
		for _, name := range []string{"search", "fetch"} {
			tools = append(tools, tool(name, "It does."))
			b.lists("web", tools...)
			b.Touch()
			time.Sleep(time.Millisecond)
		}
		<-changed
		if got := names(b.gate.View()); len(got) != 2 {
			t.Errorf("one view after the other: %q", got)
		}
		next := b.Changed()
		b.Touch() // nothing differs
		time.Sleep(time.Second)
		select {
		case <-next:
			t.Error("the same view was shown again")
		default:
		}
		stop()
		following.Wait()
		b.Wait()
	})
}

// Between two configurations no view is made with the tools of a server that is
// another one.
func TestReplace(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", web)
	b.lists("web", tool("search", "Searches."))
	b.Refresh()
	b.Replace(configured(t, clock), func() { b.lists("clock", tool("now", "The time.")) })
	if got, want := names(b.gate.View()), []string{"clock__now"}; !slices.Equal(got, want) {
		t.Errorf("shown are %q, want %q", got, want)
	}
	b.SetScripts([]catalog.Script{{Name: "daily", Source: "return 1", Digest: "d"}})
	b.Refresh()
	if _, ok := b.gate.View().Catalog.Saved("daily"); !ok {
		t.Error("a saved script is not shown")
	}
}

// A server that connects, and one that is off, changes no name of another.
func TestNamesDoNotDependOnWhoConnects(t *testing.T) {
	b := newBench(t, "", Server{Name: "my_srv"}, Server{Name: "my-srv"})
	b.configured.Order = []string{"off", "my-srv", "my_srv"}
	b.configured.Kept = map[catalog.ToolRef]string{{Server: "my_srv", Tool: "kept"}: "kept_name"}
	names := func() (all []string) {
		for _, tool := range b.First().Catalog.Tools() {
			if tool.Server != "" {
				all = append(all, tool.Script)
			}
		}
		return all
	}
	b.lists("my_srv", tool("go", ""), tool("kept", ""))
	if got, want := names(), []string{"my_srv_d395ea__go", "kept_name"}; !slices.Equal(got, want) {
		t.Errorf("alone its tools are called %q, want %q", got, want)
	}
	b.lists("my-srv", tool("go", ""))
	if got, want := names(), []string{"my_srv__go", "my_srv_d395ea__go", "kept_name"}; !slices.Equal(got, want) {
		t.Errorf("then the tools are called %q, want %q", got, want)
	}
}

// What a server has besides tools is known as long as its tools are, whether it is
// connected or not: clients are told when a description changes.
func TestOffers(t *testing.T) {
	t.Parallel()
	var resources []string
	m := New(configured(t, web, clock), Options{
		Listed: func() map[string][]catalog.Definition {
			return map[string][]catalog.Definition{"web": {{Name: "get"}}}
		},
		Offers: func(method string) []string {
			if method == catalog.ReadResource {
				return resources
			}
			return nil
		},
		Observed: func(*catalog.Tool, int) catalog.Observation { return catalog.Observation{} },
		Pins:     pins.Open(""), Hide: func(text string) string { return text }, Recorder: &bench{}, Log: slog.New(slog.DiscardHandler),
	})
	shown := 0
	g := gate.New(m.First(), gate.Options{})
	m.Serve(g, func(v *gate.View) { shown++; g.Replace(v) })
	has := func(what string, want bool, times int) {
		t.Helper()
		if got, _ := g.View().Sees("").Offers(); got != want || shown != times {
			t.Errorf("%s: resources %v, want %v; shown %d times, want %d", what, got, want, shown, times)
		}
	}
	has("at first", false, 0)
	resources = []string{"web"}
	m.Refresh()
	has("it says that it has some", true, 1)
	resources = nil
	m.Refresh()
	has("it is down", true, 1)
	m.Replace(configured(t, web, clock), func() {})
	has("another configuration", false, 2)
	m.Wait()
}
