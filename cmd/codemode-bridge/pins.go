package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pins"
)

// What servers list is compared with what was accepted of them (package pins)
// each time a view is made: the tools that are held get into the view with the
// catalogue that lists them, so that no call is decided on two versions.

// pinFolder is where the pins of a configuration file are kept; empty, which
// keeps them in memory, if the environment names no folder.
func pinFolder(con *console, file string) string {
	places, err := config.Paths(con.env)
	if err != nil {
		return ""
	}
	return filepath.Join(places.StateDir, "pins-"+fileKey(file))
}

// pinRules are the reactions that are configured for a server.
func pinRules(s *config.Server) pins.Rules {
	return pins.Rules{New: pins.Reaction(s.NewTools), Changed: pins.Reaction(s.ChangedTools)}
}

// holdLocked puts a server's tools that nobody has accepted as they are into
// the view. What comes from the last run is judged, but not written down: the
// server has not said it today.
func (p *parts) holdLocked(view *gate.View, s *catalog.Server) {
	configured := p.cfg.Servers[s.Name]
	if configured.Type == config.KindBuiltin {
		return // its tools change with our own releases
	}
	var standings map[string]pins.Standing
	var events []pins.Event
	var err error
	if s.Stale || !p.pinning {
		standings, err = p.pins.Judge(s.Name, s.Tools, pinRules(configured))
	} else {
		standings, events, err = p.pins.Observe(s.Name, s.Tools, pinRules(configured), time.Now())
	}
	if err != nil {
		p.log.Error("the tools of a server are not accepted until this is put right", "server", s.Name, "err", err)
	}
	s.Unread = map[string]string{}
	for name, standing := range standings {
		if standing.Hold == pins.Allow {
			continue
		}
		why := standing.Why + " (whoever runs the bridge can accept it)"
		s.Unread[name] = "Not described: " + why
		view.Held[gate.ToolName{Server: s.Name, Tool: name}] = gate.Held{
			Why: why, Quarantined: standing.Hold != pins.Ask, Was: standing.Was, Difference: pins.Flat(standing.Difference, p.recorder.Secrets().Hide),
		}
	}
	p.noteLocked(events)
}

// noteLocked writes down what was seen of tools, and ends the grants of those
// that are others now.
func (p *parts) noteLocked(events []pins.Event) {
	ctx := context.Background()
	for _, rec := range pins.Records(events) {
		p.recorder.Enqueue(ctx, rec)
	}
	for _, e := range events[:min(len(events), pins.MaxRecords)] {
		if e.Kind != pins.FirstContact {
			p.log.Warn("a server's tool is not what was accepted: codemode-bridge tools review shows it", "server", e.Server, "tool", canon.Visible(e.Tool), "what", e.Kind, "then", e.Hold)
		}
	}
	if slices.ContainsFunc(events, func(e pins.Event) bool { return e.Kind == pins.Differs || e.Kind == pins.Returned }) {
		p.revoke(ctx, events)
	}
}

// revoke ends the grants of tools that have changed: they were for what the
// tools had been.
func (p *parts) revoke(ctx context.Context, events []pins.Event) {
	is := map[gate.ToolName]string{}
	for _, e := range events {
		is[gate.ToolName{Server: e.Server, Tool: e.Tool}] = e.To
	}
	broker := p.gate.Broker()
	grants, err := broker.Grants(ctx)
	if err != nil {
		p.log.Error("reading the grants of changed tools", "err", err) // a grant names the definition it is for
		return
	}
	for _, g := range grants {
		to, changed := is[gate.ToolName{Server: g.Key.Server, Tool: g.Key.Tool}]
		if !changed || to == g.Key.Definition {
			continue
		}
		if _, err := broker.Revoke(ctx, g.ID); err != nil {
			p.log.Error("ending a grant of a changed tool", "err", err)
			continue
		}
		p.recorder.Enqueue(ctx, ledger.Record{Event: ledger.Revoked, Session: g.Key.Session, Profile: g.Key.Profile, Server: g.Key.Server, Tool: g.Key.Tool,
			Durable: true, Reasons: []string{"the tool has changed"}, Detail: ledger.Detail(map[string]string{"grant": g.ID})})
	}
}

// toolsOf shows the page the tools that wait, and takes what is decided there.
type toolsOf struct{ *parts }

func (o toolsOf) Waiting(context.Context) ([]admin.Tool, error) {
	cfg, secrets := o.config(), o.recorder.Secrets()
	waiting, err := o.pins.Waiting(cfg.ServerNames())
	if err != nil {
		return nil, err
	}
	var all []admin.Tool
	for _, w := range waiting {
		t := admin.Tool{Server: w.Server, Tool: w.Tool, State: string(w.State), Then: string(thenOf(w, cfg)), Since: w.Since, Digest: w.Digest, Was: w.Was,
			AcceptedBy: w.AcceptedBy, AcceptedAt: w.AcceptedAt, BlockedBy: w.BlockedBy, BlockedAt: w.BlockedAt, Notices: secrets.HideAll(w.Notices), Difference: []admin.ToolPart{}}
		for _, part := range w.Difference {
			t.Difference = append(t.Difference, admin.ToolPart{What: part.What, Lines: secrets.HideAll(part.Lines)})
		}
		all = append(all, t)
	}
	return all, nil
}

func (o toolsOf) Changed() <-chan struct{} { return o.shown.next() }

func (o toolsOf) Accept(ctx context.Context, server, tool, digest, by, channel string) error {
	return o.decide(ctx, pins.Reviewer.Accept, server, tool, digest, by, channel)
}

func (o toolsOf) Block(ctx context.Context, server, tool, digest, by, channel string) error {
	return o.decide(ctx, pins.Reviewer.Block, server, tool, digest, by, channel)
}

func (o toolsOf) decide(ctx context.Context, do func(pins.Reviewer, context.Context, pins.Waiting, string, string) error, server, tool, digest, by, channel string) error {
	if o.config().Servers[server] == nil {
		return admin.ErrUnknown
	}
	w, ok, err := o.pins.Find(server, tool)
	switch {
	case err != nil:
		return err
	case !ok:
		return admin.ErrUnknown
	}
	w.Digest = digest
	switch err := do(pins.Reviewer{Store: o.pins, Recorder: o.recorder}, ctx, w, by, channel); {
	case errors.Is(err, pins.ErrChanged):
		return admin.ErrChanged
	case errors.Is(err, pins.ErrUnknown):
		return admin.ErrUnknown
	case err != nil:
		return err
	}
	o.refresh()
	return nil
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
