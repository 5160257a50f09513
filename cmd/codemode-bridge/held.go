package main

import (
	"context"
	"fmt"
	"slices"
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
// file as it is, but does not start while another holds it: see mayStart.

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
func (h *heldConfig) row(old *config.Config, bridge string) approval.Held {
	row := approval.Held{Bridges: []string{bridge}, File: heldKey(h.cfg), Digest: textDigest(h.cfg), Since: time.Now(), Why: h.why, NeedsReason: h.grave, Diff: profileDiff(old.Profiles, h.cfg.Profiles)}
	less := *old
	less.Approvals = meanwhile(old.Approvals, h.cfg.Approvals)
	if people, err := approversOf(&less, approval.Realm{}); err == nil { // less than was in force, so it is right
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
	if _, err := approversOf(cfg, p.desk.realm); err != nil {
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
	row, err := approval.Hold(ctx, p.desk.store, h.row(old, p.desk.id), time.Now())
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
	if err := approval.Release(context.WithoutCancel(ctx), p.desk.store, heldKey(h.cfg), p.desk.letsGo); err != nil {
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
	}
}

// takeAsItIs drops what another bridge may have left behind: this one has just
// started, with the file as it is. What a living bridge holds stays.
func (p *parts) takeAsItIs(ctx context.Context, cfg *config.Config) {
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

// followTime is how long a bridge that starts waits for those that run to look
// at a file that was edited again.
const followTime = 5 * time.Second

// mayStart refuses to start with a file of which a bridge that runs holds an
// edit: who opens another window would have past the approver what waits for
// them.
func (d *desk) mayStart(ctx context.Context, cfg *config.Config) error {
	waited := time.NewTimer(followTime)
	defer waited.Stop()
	for over := false; ; {
		told := d.store.Requested() // before looking: nothing is missed
		row, err := approval.HeldOf(ctx, d.store, heldKey(cfg))
		switch {
		case err != nil:
			return fmt.Errorf("looking whether the configuration waits for an approver: %w", err)
		case row == nil, row.By != "", !slices.ContainsFunc(row.Bridges, func(b string) bool { return !d.letsGo(b) }):
			return nil
		case over, row.Digest == textDigest(cfg):
			return &configError{fmt.Errorf("an edit of %s waits for an approver, and a bridge that runs holds it: %s", heldKey(cfg), strings.Join(row.Why, "; ")),
				"codemode-bridge config pending shows it, config confirm takes it over; or take the edit back"}
		}
		select {
		case <-told:
		case <-waited.C:
			over = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
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
