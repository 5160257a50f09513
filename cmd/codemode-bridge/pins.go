package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
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
			Why: why, Quarantined: standing.Hold != pins.Ask, Was: standing.Was, Difference: flat(p.recorder.Secrets(), standing.Difference),
		}
	}
	p.noteLocked(events)
}

// maxToolRecords bounds the records of one list of tools: a server may list
// thousands, and others each time.
const maxToolRecords = 50

// noteLocked writes down what was seen of tools, and ends the grants of those
// that are others now.
func (p *parts) noteLocked(events []pins.Event) {
	ctx := context.Background()
	for i, e := range events {
		if i == maxToolRecords {
			p.recorder.Enqueue(ctx, ledger.Record{Event: ledger.ToolChanged, Server: e.Server, Durable: true,
				Reasons: []string{fmt.Sprintf("and %s more", count(len(events)-i, "tool"))}})
			break
		}
		p.recorder.Enqueue(ctx, toolChanged(e))
		if e.Kind != pins.FirstContact {
			p.log.Warn("a server's tool is not what was accepted: codemode-bridge tools review shows it", "server", e.Server, "tool", canon.Visible(e.Tool), "what", e.Kind, "then", e.Hold)
		}
	}
	for _, e := range events {
		if e.Kind == pins.Differs || e.Kind == pins.Returned {
			p.revoke(ctx, events)
			return
		}
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
			Durable: true, Reasons: []string{"the tool has changed"}, Detail: recorder.Detail(map[string]string{"grant": g.ID})})
	}
}

// toolDetail is what the record of a tool's definition says.
type toolDetail struct {
	What  string `json:"what,omitempty"`
	Old   string `json:"old_definition,omitempty"`
	New   string `json:"new_definition,omitempty"`
	Tools int    `json:"tools,omitempty"`
	Hold  string `json:"then,omitempty"`
}

func toolChanged(e pins.Event) ledger.Record {
	words := map[pins.Kind]string{
		pins.FirstContact: "first contact with " + count(e.Tools, "tool"),
		pins.Appeared:     "a tool that was not there before",
		pins.Differs:      "its definition has changed",
		pins.Returned:     "its definition is the accepted one again",
	}[e.Kind]
	if e.Hold != pins.Allow || e.Kind == pins.Differs {
		words += map[pins.Reaction]string{pins.Allow: ": accepted by the configuration", pins.Ask: ": its calls ask"}[e.Hold]
		if e.Hold == pins.Quarantine {
			words += ": quarantined"
		}
	}
	return ledger.Record{Event: ledger.ToolChanged, Server: e.Server, Tool: e.Tool, Durable: true, Reasons: []string{words},
		Detail: recorder.Detail(toolDetail{string(e.Kind), e.From, e.To, e.Tools, string(e.Hold)})}
}

// flat are the parts of a difference as lines, without the secrets that are
// known: a careless server may describe itself with them.
func flat(secrets *recorder.Secrets, parts []pins.Part) []string {
	var all []string
	for _, part := range parts {
		all = append(all, "@"+part.What)
		for _, line := range part.Lines {
			all = append(all, secrets.Hide(line))
		}
	}
	return all
}

// A reviewer is where decisions on tools are made, by people who were found
// out to be who they are. Each is recorded before it is made.
type reviewer struct {
	pins     *pins.Store
	recorder *recorder.Recorder
}

// accept accepts a tool as w shows it. The error is pins.ErrUnknown,
// pins.ErrChanged, or says what failed.
func (r reviewer) accept(ctx context.Context, w pins.Waiting, by, channel string) error {
	return r.decide(ctx, ledger.ToolAccepted, w, by, channel, r.pins.Accept)
}

// block keeps a tool from scripts.
func (r reviewer) block(ctx context.Context, w pins.Waiting, by, channel string) error {
	return r.decide(ctx, ledger.ToolBlocked, w, by, channel, r.pins.Block)
}

func (r reviewer) decide(ctx context.Context, event ledger.Event, w pins.Waiting, by, channel string, do func(server, tool, digest, by string, now time.Time) error) error {
	now, ok, err := r.pins.Find(w.Server, w.Tool)
	switch {
	case err != nil:
		return err
	case !ok:
		return pins.ErrUnknown
	case now.Digest != w.Digest:
		return pins.ErrChanged
	}
	rec := ledger.Record{Event: event, Time: time.Now(), Server: w.Server, Tool: canon.Visible(w.Tool), Approver: by, Channel: channel, Durable: true,
		Detail: recorder.Detail(toolDetail{What: string(w.State), Old: w.Was, New: w.Digest})}
	ctx = context.WithoutCancel(ctx)
	if err := r.recorder.Record(ctx, rec); err != nil {
		return fmt.Errorf("recording what %s decided: %w", cmp.Or(by, "nobody"), err)
	}
	if err = do(w.Server, w.Tool, w.Digest, by, rec.Time); err != nil {
		rec.Outcome, rec.Error = ledger.Failed, canon.Visible(err.Error())
		r.recorder.Enqueue(ctx, rec)
	}
	return err
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
	return o.decide(ctx, reviewer.accept, server, tool, digest, by, channel)
}

func (o toolsOf) Block(ctx context.Context, server, tool, digest, by, channel string) error {
	return o.decide(ctx, reviewer.block, server, tool, digest, by, channel)
}

func (o toolsOf) decide(ctx context.Context, do func(reviewer, context.Context, pins.Waiting, string, string) error, server, tool, digest, by, channel string) error {
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
	switch err := do(reviewer{o.pins, o.recorder}, ctx, w, by, channel); {
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
