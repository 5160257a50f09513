package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/confirmed"
	"codemode-bridge/bridge/recorder"
)

// Where there are approvers, a configuration that loosens what was confirmed is
// not taken over before one of them who may has confirmed it:
//
//	file changes ── reloaded ──┬── nothing looser ──────────────▶ take
//	   a start ──────┘         └── hold ── lookAtHeld ── confirmed ──▶ take
//
// What is held is in the store of requests as well, so that a confirmation in
// one process counts in every bridge with the file.

// row is what the store keeps of what is held in the place of old.
func (h *heldConfig) row(old *config.Config, bridge string) approval.Held {
	row := approval.Held{Bridges: []string{bridge}, File: heldKey(h.cfg), Digest: textDigest(h.cfg), Since: time.Now(), Why: h.why, NeedsReason: h.grave, Diff: h.diff}
	less := *old
	less.Approvals = meanwhile(old.Approvals, h.cfg.Approvals)
	if people, err := approversOf(&less, approval.Realm{}); err == nil { // less than was in force, so it is right
		row.Approvers = people.All()
	}
	row.Delegations = delegationsOf(&less)
	return row
}

// heldKey names the file whose change is held, whatever links lead to it: the
// overlay, where there is one.
func heldKey(cfg *config.Config) string {
	if cfg.Overlay != "" {
		return confirmed.Resolve(cfg.Overlay)
	}
	return confirmed.Resolve(cfg.File)
}

// textDigest is of the exact text of a configuration.
func textDigest(cfg *config.Config) string {
	if cfg.Overlay != "" {
		return cfg.Digest.String() + "+" + cfg.OverlayDigest.String()
	}
	return cfg.Digest.String()
}

// begin keeps what a bridge was started with, and holds what the file says if
// that is something else.
func (p *parts) begin(ctx context.Context, a *console, file *config.Config) error {
	if cfg := p.config(); file == cfg {
		first, err := keepTaken(a, cfg, "", "", time.Now())
		if err != nil {
			return &configError{err, "what is confirmed later is compared with it: make the state folder writable"}
		}
		if first {
			p.recorder.Enqueue(ctx, recorder.ConfigFirst(recordedAs(cfg)))
		}
		p.releaseGone(ctx, cfg)
		return nil
	}
	if err := p.reloaded(ctx, a, file); err != nil {
		return err
	}
	if h := p.held.Load(); h != nil {
		a.told("%s waits for an approver, and what was confirmed last goes on: %s (%s)", heldKey(file), strings.Join(h.why, "; "), h.wayOn())
	}
	return nil
}

// reloaded takes over what the file says now, or holds it.
func (p *parts) reloaded(ctx context.Context, a *console, cfg *config.Config) error {
	p.reload.Lock()
	defer p.reload.Unlock()
	if _, err := approversOf(cfg, p.desk.realm); err != nil {
		return err
	}
	p.problem.Store(nil)
	old := p.config()
	h, err := judge(a, cfg, old)
	if err != nil {
		return err
	}
	if h == nil {
		p.letGoLocked(ctx)
		return p.takeLocked(ctx, a, cfg, approval.Held{})
	}
	p.held.Store(h) // before it is kept, which tells those who then look here
	row, err := approval.Hold(ctx, p.desk.store, h.row(old, p.desk.id), time.Now())
	switch {
	case err != nil:
		p.log.Error("nobody can confirm the configuration that is held", "err", err)
	case row.By != "": // in another process, or who wrote it on the page
		p.held.Store(nil)
		return p.takeLocked(ctx, a, cfg, row)
	}
	if err := p.followMeanwhile(h, row.Rejected != nil); err != nil {
		return err
	}
	p.recorder.Enqueue(context.WithoutCancel(ctx), recorder.ConfigPending(recordedAs(old), recordedAs(cfg), h.why))
	p.log.Warn("the configuration loosens what was confirmed, so it waits for an approver, on the page or at the command line", "why", h.why, "hint", h.wayOn())
	select {
	case p.holding <- struct{}{}:
	default:
	}
	return nil
}

// followMeanwhile sets who may answer while h is held: what it takes from
// approvers they have lost at once, unless somebody has rejected it.
func (p *parts) followMeanwhile(h *heldConfig, rejected bool) error {
	return p.desk.follow(meanwhileOf(h, rejected))
}

// letGo drops what is held.
func (p *parts) letGo(ctx context.Context) {
	p.reload.Lock()
	defer p.reload.Unlock()
	p.letGoLocked(ctx)
}

func (p *parts) letGoLocked(ctx context.Context) {
	h := p.held.Swap(nil)
	if h == nil {
		return
	}
	p.log.Info("no configuration waits for an approver any more")
	if err := approval.Release(context.WithoutCancel(ctx), p.desk.store, heldKey(h.cfg), p.desk.letsGo); err != nil {
		p.log.Warn("dropping what was held", "err", err)
	}
}

// followHeld takes over what is held once it is confirmed, until ctx ends.
func (p *parts) followHeld(ctx context.Context, a *console) {
	for {
		var told <-chan struct{} // nobody looks while nothing is held
		if p.held.Load() != nil {
			told = p.desk.store.Requested()
			p.lookAtHeld(ctx, a)
		}
		select {
		case <-ctx.Done():
			return
		case <-told:
		case <-p.holding:
		}
	}
}

func (p *parts) lookAtHeld(ctx context.Context, a *console) {
	p.reload.Lock()
	defer p.reload.Unlock()
	h := p.held.Load()
	if h == nil {
		return
	}
	old := p.config()
	row, err := approval.HeldOf(ctx, p.desk.store, heldKey(h.cfg))
	if err == nil && row == nil { // by a bridge that has started since, and had nothing to hold
		_, err = approval.Hold(ctx, p.desk.store, h.row(old, p.desk.id), time.Now())
	}
	switch {
	case err != nil:
		p.log.Error("looking whether the configuration is confirmed", "err", err)
	case row != nil && row.By != "" && row.Digest == textDigest(h.cfg):
		p.held.Store(nil)
		if err := p.takeLocked(ctx, a, h.cfg, *row); err != nil {
			p.log.Error("the confirmed configuration was not taken over", "err", err)
		}
	case row != nil && row.Digest == textDigest(h.cfg):
		if err := p.followMeanwhile(h, row.Rejected != nil); err != nil {
			p.log.Error("following who may answer", "err", err)
		}
	}
}

// releaseGone drops what bridges that have ended may have left behind of a file
// that need not be confirmed. What a living bridge holds stays.
func (p *parts) releaseGone(ctx context.Context, cfg *config.Config) {
	row, err := approval.HeldOf(ctx, p.desk.store, heldKey(cfg))
	if err == nil && row != nil && row.By == "" {
		err = approval.Release(ctx, p.desk.store, heldKey(cfg), p.desk.letsGo)
	}
	if err != nil {
		p.log.Warn("looking for a configuration that is held", "err", err)
	}
}

// letsGo reports whether a bridge does not hold what it held: this one, which
// says so, or one that has ended.
func (d *desk) letsGo(bridge string) bool { return bridge == d.id || d.gone(bridge) }

// heldText says for codemode_status what waits to be confirmed.
func (p *parts) heldText() string {
	h := p.held.Load()
	if h == nil {
		return ""
	}
	return "waits for an approver (the approval page, or codemode-bridge config confirm): " + strings.Join(h.why, "; ")
}

// heldOf shows the page what this bridge holds.
type heldOf struct{ *parts }

func (o heldOf) Held(ctx context.Context) (*approval.Held, error) {
	h := o.held.Load()
	if h == nil {
		return nil, nil
	}
	row, err := approval.HeldOf(ctx, o.desk.store, heldKey(h.cfg))
	if err != nil {
		return nil, fmt.Errorf("reading what is held: %w", err)
	}
	if row == nil || row.By != "" || row.Digest != textDigest(h.cfg) {
		return nil, nil // it is just being taken over, or dropped
	}
	return row, nil
}

func (o heldOf) Confirm(ctx context.Context, digest string, said approval.Confirmation) error {
	h := o.held.Load()
	if h == nil {
		return approval.ErrUnknown
	}
	return approval.Confirm(ctx, o.desk.store, heldKey(h.cfg), digest, said)
}

func (o heldOf) Reject(ctx context.Context, digest string, said approval.Confirmation) error {
	h := o.held.Load()
	if h == nil {
		return approval.ErrUnknown
	}
	return approval.Reject(ctx, o.desk.store, heldKey(h.cfg), digest, said)
}
