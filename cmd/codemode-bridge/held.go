package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
)

// Where there are approvers, a configuration that loosens what holds is not
// taken over before one of them who may edit profiles has confirmed it:
//
//	file changes ── reloaded ──┬── nothing looser ──────────▶ take
//	                           └── hold ── lookAtHeld ── confirmed ──▶ take
//
// What is held is in the store of requests, so that a confirmation in one
// process counts in every bridge with the file. A bridge that starts takes the
// file as it is.

// A heldConfig is a configuration that waits to be confirmed.
type heldConfig struct {
	cfg   *config.Config
	why   []string
	grave bool // who confirms it says why
}

// newHeld compares a configuration with the one in force; nil if it need not
// be confirmed.
func newHeld(old, cfg *config.Config) *heldConfig {
	if len(old.Approvals.Approvers) == 0 { // there is nobody who could
		return nil
	}
	why := looser(old, cfg)
	if len(why) == 0 {
		return nil
	}
	return &heldConfig{cfg, why, grave(old, cfg)}
}

// row is what the store keeps of it.
func (h *heldConfig) row(old *config.Config) approval.Held {
	row := approval.Held{File: heldKey(h.cfg), Digest: textDigest(h.cfg), Since: time.Now(), Why: h.why, NeedsReason: h.grave, Diff: profileDiff(old.Profiles, h.cfg.Profiles)}
	less := *old
	less.Approvals = meanwhile(old.Approvals, h.cfg.Approvals)
	if people, err := approversOf(&less); err == nil { // less than was in force, so it is right
		row.Approvers = people.All()
	}
	row.Delegations = delegationsOf(&less)
	return row
}

// heldKey names the file whose change is held: the overlay, where there is one.
func heldKey(cfg *config.Config) string {
	if cfg.Overlay != "" {
		return cfg.Overlay
	}
	return cfg.File
}

// textDigest is of the exact text of a configuration.
func textDigest(cfg *config.Config) string {
	if cfg.Overlay != "" {
		return cfg.Digest.String() + "+" + cfg.OverlayDigest.String()
	}
	return cfg.Digest.String()
}

// reloaded takes over what the file says now, or holds it.
func (p *parts) reloaded(ctx context.Context, a *app, cfg *config.Config) error {
	p.reload.Lock()
	defer p.reload.Unlock()
	if _, err := approversOf(cfg); err != nil {
		return err
	}
	p.problem.Store(nil)
	old := p.config()
	h := newHeld(old, cfg)
	if h == nil {
		p.letGoLocked(ctx)
		return p.takeLocked(ctx, a, cfg, approval.Held{})
	}
	p.held.Store(h) // before it is kept, which tells those who then look here
	row, err := approval.Hold(ctx, p.desk.store, h.row(old), time.Now())
	switch {
	case err != nil:
		p.log.Error("nobody can confirm the configuration that is held", "err", err)
	case row.By != "": // in another process, or who wrote it on the page
		p.held.Store(nil)
		return p.takeLocked(ctx, a, cfg, row)
	}
	less := *old // what the change takes from approvers holds at once
	less.Approvals = meanwhile(old.Approvals, cfg.Approvals)
	if err := p.desk.follow(&less); err != nil {
		return err
	}
	p.recorder.owe(context.WithoutCancel(ctx), configHeld(old, cfg, h.why))
	p.log.Warn("the configuration loosens what holds, so it waits for an approver, on the page or at the command line: codemode-bridge config pending shows it, config confirm takes it over", "why", h.why)
	select {
	case p.holding <- struct{}{}:
	default:
	}
	return nil
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
	if err := approval.Release(context.WithoutCancel(ctx), p.desk.store, heldKey(h.cfg)); err != nil {
		p.log.Warn("dropping what was held", "err", err)
	}
}

// followHeld takes over what is held once it is confirmed, until ctx ends.
func (p *parts) followHeld(ctx context.Context, a *app) {
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

func (p *parts) lookAtHeld(ctx context.Context, a *app) {
	p.reload.Lock()
	defer p.reload.Unlock()
	h := p.held.Load()
	if h == nil {
		return
	}
	old := p.config()
	row, err := approval.HeldOf(ctx, p.desk.store, heldKey(h.cfg))
	if err == nil && row == nil { // by a bridge that has started since, and had nothing to hold
		_, err = approval.Hold(ctx, p.desk.store, h.row(old), time.Now())
	}
	switch {
	case err != nil:
		p.log.Error("looking whether the configuration is confirmed", "err", err)
	case row != nil && row.By != "" && row.Digest == textDigest(h.cfg):
		p.held.Store(nil)
		if err := p.takeLocked(ctx, a, h.cfg, *row); err != nil {
			p.log.Error("the confirmed configuration was not taken over", "err", err)
		}
	}
}

// takeAsItIs drops what another bridge may have left behind: this one has just
// started, with the file as it is. A bridge that still holds it says so again.
func (p *parts) takeAsItIs(ctx context.Context, cfg *config.Config) {
	_, err := p.desk.store.ChangeHeld(ctx, heldKey(cfg), func(old *approval.Held) (*approval.Held, error) {
		if old != nil && old.By == "" {
			return nil, nil
		}
		return old, nil
	})
	if err != nil {
		p.log.Warn("looking for a configuration that is held", "err", err)
	}
}

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
