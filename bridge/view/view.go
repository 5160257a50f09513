// Package view builds the [gate.View] that every call is decided on, and builds a
// new one whenever something in it changes.
//
//	configuration ── Replace ──────┐
//	servers' tools ── Touch ───────┤                ┌─▶ gate, bridge (Options.Show)
//	saved scripts ── SetScripts ───┼─▶ a new View ──┤
//	pins, decisions ── Touch ──────┘                └─▶ the cache, for the next start
//
// A view is a policy and a catalogue behind one pointer; neither is ever changed in
// place. Each time a view is built, the servers' tools are compared with the accepted
// ones (package pins). An unreviewed tool is marked in the same view as the catalogue
// that lists it, so that no call is decided on two versions. Differences are recorded,
// and the grants for the tools concerned end.
//
// Until a server has listed its tools, those of the last start are used, from a cache
// that [catalog.Catalog.Save] writes.
package view

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/profiles"
)

// A Configured is what the configuration says of a view.
type Configured struct {
	Profiles   *profiles.Set
	Servers    []Server                   // those that are on
	Order      []string                   // all servers, in the order of the configuration: see catalog.Sources
	Kept       map[catalog.ToolRef]string // nil: those of the lock file
	Identities map[string]string          // tell servers of the same name apart: see gate.View
	Meanings   map[string]gate.Meant
}

// A Server is one server of the configuration.
type Server struct {
	Name    string
	Trusted bool       // what it says of its own tools
	Builtin bool       // its tools change with our own releases: they need no review
	Rules   pins.Rules // for tools that nobody has accepted as they are
}

// A Recorder keeps what has happened to tools and grants.
type Recorder interface {
	Enqueue(context.Context, ledger.Record)
}

// Options are what a Maker works with. A field is required unless its comment says
// otherwise.
type Options struct {
	// Listed are the tools of the servers that have listed them.
	Listed   func() map[string][]catalog.Definition
	Observed func(tool *catalog.Tool, limit int) catalog.Observation // of past answers
	Absent   func(server string) (state, why string)                 // of a server that has not listed its tools; nil: nothing is known of it
	Offers   func(method string) []string                            // servers that answer one of catalog's methods now; nil: none
	Box      func(server string) gate.Box                            // what the system keeps its program to now; nil: nothing
	Pins     *pins.Store
	LookOnly bool                     // what servers list is not written down in Pins
	Hide     func(text string) string // takes known secrets out
	Recorder Recorder
	Cache    string // folder of the last catalogue; empty for none
	Log      *slog.Logger
}

// A Maker makes views. Any number of goroutines may call it.
type Maker struct {
	o       Options
	changed chan struct{} // holds one token when tools have changed
	shown   bell          // rings when another view is shown
	indexes sync.WaitGroup

	mu         sync.Mutex // one view at a time; guards what follows
	configured Configured
	scripts    []catalog.Script
	cached     map[string]catalog.Server // the last run's tools, for servers that have not answered yet
	absent     map[string]absence
	offers     map[string]offer // what servers have had besides tools
	gate       *gate.Gate       // nil before Serve
	show       func(*gate.View)

	lockProblem string // why the lock file could not be read last; empty: it could
}

// New returns a maker that has read the cache. Without one, or with one that is
// damaged, its first view has no tools.
func New(configured Configured, o Options) *Maker {
	m := &Maker{o: o, configured: configured, changed: make(chan struct{}, 1), cached: map[string]catalog.Server{}, absent: map[string]absence{}, offers: map[string]offer{}}
	if o.Cache == "" {
		return m
	}
	servers, err := catalog.Load(o.Cache)
	if err != nil {
		o.Log.Debug("reading the last catalogue", "err", err)
	}
	for _, s := range servers {
		m.cached[s.Name] = s
	}
	return m
}

// First is the view that a gate begins with.
func (m *Maker) First() *gate.View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.viewLocked()
}

// Serve says which gate the views are for, and what shows it a new one.
func (m *Maker) Serve(g *gate.Gate, show func(*gate.View)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate, m.show = g, show
}

// Touch notes that some server's tools or state, or the pins, have changed. It
// never blocks.
func (m *Maker) Touch() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Follow makes the view anew after each Touch, until ctx ends: a moment after the
// last one, as servers tend to connect together.
func (m *Maker) Follow(ctx context.Context) {
	const calm = 30 * time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(calm):
		}
		m.Refresh()
	}
}

// Wait waits for what Refresh has begun, once nothing calls that any more.
func (m *Maker) Wait() { m.indexes.Wait() }

// Replace makes views of another configuration from now on. Apply, which hands its
// servers to whoever runs them, is called in between: no view is made with the tools
// of a server that is another one.
func (m *Maker) Replace(configured Configured, apply func()) {
	m.mu.Lock()
	m.configured, m.offers = configured, map[string]offer{}
	apply()
	m.mu.Unlock()
	m.Refresh()
}

// SetScripts makes views with other saved scripts from now on; Refresh shows them.
func (m *Maker) SetScripts(all []catalog.Script) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts = all
}

// Changed returns a channel that is closed when another view is shown.
func (m *Maker) Changed() <-chan struct{} { return m.shown.next() }

// Refresh shows the tools and the policy of this moment.
func (m *Maker) Refresh() {
	m.mu.Lock()
	defer m.mu.Unlock()
	view := m.viewLocked()
	old := m.gate.View()
	if old.Catalog.Revision() == view.Catalog.Revision() && old.Profiles == view.Profiles && stale(old) == stale(view) && slices.Equal(old.Catalog.Absent(), view.Catalog.Absent()) && slices.Equal(old.Cached, view.Cached) && old.Catalog.SameOffers(view.Catalog) {
		return
	}
	m.show(view)
	m.shown.ring()
	m.indexes.Go(func() { view.Sees("").Search(catalog.SearchQuery{Query: "index"}) }) // the first search makes the index
	if m.o.Cache != "" {
		if err := view.Catalog.Save(m.o.Cache); err != nil {
			m.o.Log.Warn("keeping the catalogue for the next start", "err", err)
		}
	}
}

// stale counts the tools that only the last run has seen.
func stale(view *gate.View) int {
	n := 0
	for _, t := range view.Catalog.Tools() {
		if t.Stale {
			n++
		}
	}
	return n
}

// viewLocked makes the view: the configured policy over the tools that the servers
// have listed or, before that, had in the last run.
func (m *Maker) viewLocked() *gate.View {
	listed := m.o.Listed()
	view := &gate.View{Profiles: m.configured.Profiles, Trusted: map[string]bool{}, Unreviewed: map[gate.ToolName]gate.UnreviewedTool{}, Complete: true, Identities: m.configured.Identities, Meanings: m.configured.Meanings, Box: m.o.Box}
	m.lockLocked()
	from := catalog.Sources{Observed: m.o.Observed, Scripts: m.scripts, Order: m.configured.Order, Kept: m.configured.Kept}
	if from.Kept == nil {
		from.Kept = m.o.Pins.Kept()
	}
	m.offersLocked()
	for _, s := range m.configured.Servers {
		view.Trusted[s.Name] = s.Trusted
		shown, ok := m.cached[s.Name]
		if tools, is := listed[s.Name]; is {
			has := m.offers[s.Name]
			shown, ok = catalog.Server{Name: s.Name, Tools: tools, Resources: has.resources, Prompts: has.prompts}, true
			delete(m.cached, s.Name)
		}
		if !ok {
			view.Complete, view.Awaited = false, append(view.Awaited, s.Name)
			from.Absent = append(from.Absent, catalog.Absent{Server: s.Name, Why: m.absentLocked(s.Name)})
			continue
		}
		delete(m.absent, s.Name)
		if shown.Stale {
			view.Cached = append(view.Cached, s.Name)
		}
		if !s.Builtin {
			m.reviewLocked(view, &shown, s.Rules)
		}
		from.Servers = append(from.Servers, shown)
	}
	view.Catalog = from.Build()
	return view
}

// An offer is what a server has besides tools.
type offer struct{ resources, prompts bool }

// offersLocked looks what the servers have besides tools. A server that is down for a
// while has what it had: clients are told of every change of a description.
func (m *Maker) offersLocked() {
	if m.o.Offers == nil {
		return
	}
	for _, name := range m.o.Offers(catalog.ReadResource) {
		m.offers[name] = offer{true, m.offers[name].prompts}
	}
	for _, name := range m.o.Offers(catalog.GetPrompt) {
		m.offers[name] = offer{m.offers[name].resources, true}
	}
}

// An absence is why a server has not listed its tools.
type absence struct{ state, why string }

// absentLocked says why a server has not listed its tools: its state, and the first reason
// that was given for that. A server that is tried again and again may fail with other
// words each time; clients keep the descriptions that have the text, so it stays the same.
func (m *Maker) absentLocked(server string) string {
	is := absence{state: "connecting"}
	if m.o.Absent != nil {
		is.state, is.why = m.o.Absent(server)
	}
	if was := m.absent[server]; was.state == is.state && was.why != "" {
		is = was
	}
	m.absent[server] = is
	if is.why == "" {
		return is.state
	}
	return is.state + ": " + is.why
}

// lockLocked says in the log, once, why the lock file cannot be read.
func (m *Maker) lockLocked() {
	_, _, err := m.o.Pins.Lock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != m.lockProblem {
		m.o.Log.Error("what is accepted by the lock file alone is unreviewed until this is put right", "err", err)
	}
	m.lockProblem = text
}

// reviewLocked puts a server's tools that nobody has accepted as they are into
// the view. What comes from the last run is judged, but not written down: the
// server has not said it today.
func (m *Maker) reviewLocked(view *gate.View, s *catalog.Server, rules pins.Rules) {
	var standings map[string]pins.Standing
	var events []pins.Event
	var err error
	if s.Stale || m.o.LookOnly {
		standings, err = m.o.Pins.Judge(s.Name, s.Tools, rules)
	} else {
		standings, events, err = m.o.Pins.Observe(s.Name, s.Tools, rules, time.Now())
	}
	if err != nil {
		m.o.Log.Error("the tools of a server are not accepted until this is put right", "server", s.Name, "err", err)
	}
	s.Unread = map[string]string{}
	for name, standing := range standings {
		if standing.Reaction == pins.Allow {
			continue
		}
		why := standing.Why + " (whoever runs the bridge can accept it)"
		if standing.Reaction == pins.Quarantine && standing.State == pins.New {
			why += "; if the configuration file was moved or copied, a lock file brings along what was accepted (codemode-bridge tools review says how)"
		}
		s.Unread[name] = "Not described: " + why
		view.Unreviewed[gate.ToolName{Server: s.Name, Tool: name}] = gate.UnreviewedTool{
			Why: why, Quarantined: standing.Reaction != pins.Ask, Was: standing.Was, Difference: pins.Flat(standing.Difference, m.o.Hide),
		}
	}
	m.recordLocked(events)
}

// recordLocked writes down what was seen of tools, and ends the grants of those
// that changed.
func (m *Maker) recordLocked(events []pins.Event) {
	ctx := context.Background() // it has happened, whoever waits
	for _, rec := range pins.Records(events) {
		m.o.Recorder.Enqueue(ctx, rec)
	}
	for _, e := range events[:min(len(events), pins.MaxRecords)] {
		if e.Kind != pins.FirstContact {
			m.o.Log.Warn("a server's tool is not what was accepted: codemode-bridge tools review shows it", "server", e.Server, "tool", canon.Escape(e.Tool), "what", e.Kind, "then", e.Reaction)
		}
	}
	if slices.ContainsFunc(events, func(e pins.Event) bool { return e.Kind == pins.Differs || e.Kind == pins.Returned }) {
		m.revoke(ctx, m.gate.Broker(), events)
	}
}

// revoke ends the grants of tools that have changed: they were given for earlier
// definitions.
func (m *Maker) revoke(ctx context.Context, broker *approval.Broker, events []pins.Event) {
	is := map[gate.ToolName]string{}
	for _, e := range events {
		is[gate.ToolName{Server: e.Server, Tool: e.Tool}] = e.To
	}
	grants, err := broker.Grants(ctx)
	if err != nil {
		m.o.Log.Error("reading the grants of changed tools", "err", err) // a grant names the definition it is for
		return
	}
	for _, g := range grants {
		changed := slices.ContainsFunc(g.Kinds(), func(kind approval.Kind) bool {
			to, changed := is[gate.ToolName{Server: kind.Key.Server, Tool: kind.Key.Tool}]
			return changed && to != kind.Key.Definition
		})
		if !changed {
			continue
		}
		if _, err := broker.Revoke(ctx, g.ID); err != nil {
			m.o.Log.Error("ending a grant of a changed tool", "err", err)
			continue
		}
		m.o.Recorder.Enqueue(ctx, ledger.Record{Event: ledger.Revoked, Session: g.Key.Session, Profile: g.Key.Profile, Server: g.Key.Server, Tool: g.Key.Tool,
			Durable: true, Reasons: []string{"the tool has changed"}, Detail: ledger.Detail(map[string]string{"grant": g.ID})})
	}
}

// A bell rings for all who wait for its next ring. The zero value is ready.
type bell struct {
	mu   sync.Mutex
	ends chan struct{} // with the next ring; nil if nobody waits
}

func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ends == nil {
		b.ends = make(chan struct{})
	}
	return b.ends
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ends != nil {
		close(b.ends)
		b.ends = nil
	}
}
