package pending

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
)

// Options are what a Reloader needs. All are required.
type Options struct {
	History *History
	Store   approval.Store           // of requests: there approvers see what is pending
	Bridge  string                   // names this bridge in the store
	Gone    func(bridge string) bool // reports whether another bridge has ended
	Log     *slog.Logger

	// InForce returns the configuration that the bridge runs with.
	InForce func() *config.Config
	// Take puts a configuration in force; confirmed says who confirmed it, if anybody
	// had to. Take, Follow and Submitted are never called concurrently.
	Take func(ctx context.Context, cfg *config.Config, confirmed approval.PendingConfig) error
	// Follow sets who may answer, while something is pending.
	Follow func(meanwhile *config.Config) error
	// Submitted hears of each change that begins to wait while old stays in force.
	Submitted func(ctx context.Context, old *config.Config, c *Change)
}

// A Reloader applies changes of a bridge's configuration file, or lets them wait
// for an approver. Its methods may be called concurrently.
type Reloader struct {
	o         Options
	mu        sync.Mutex // one change of the configuration at a time
	pending   atomic.Pointer[Change]
	submitted chan struct{} // holds one token when something has been submitted
}

// NewReloader returns a Reloader with nothing pending.
func NewReloader(o Options) *Reloader {
	return &Reloader{o: o, submitted: make(chan struct{}, 1)}
}

// Change returns the change that waits for an approver; nil if none does.
func (r *Reloader) Change() *Change { return r.pending.Load() }

// Reload applies the file as it is now, or lets it wait.
func (r *Reloader) Reload(ctx context.Context, cfg *config.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.o.InForce()
	c, err := r.o.History.Judge(cfg, old)
	if err != nil {
		return err
	}
	if c == nil {
		r.withdrawLocked(ctx)
		return r.o.Take(ctx, cfg, approval.PendingConfig{})
	}
	r.pending.Store(c) // before SubmitConfig, which wakes those who then ask for it
	row, err := approval.SubmitConfig(ctx, r.o.Store, c.Row(old, r.o.Bridge), time.Now())
	switch {
	case err != nil:
		r.o.Log.Error("nobody can confirm the pending configuration", "err", err)
	case row.By != "": // in another process, or who wrote it on the page
		r.pending.Store(nil)
		return r.o.Take(ctx, cfg, row)
	}
	if err := r.o.Follow(c.Meanwhile(row.Rejected != nil)); err != nil {
		return err
	}
	r.o.Submitted(ctx, old, c)
	r.o.Log.Warn("the configuration loosens what was confirmed, so it waits for an approver, on the page or at the command line", "why", c.Why, "hint", c.WayOn())
	select {
	case r.submitted <- struct{}{}:
	default:
	}
	return nil
}

// Withdraw drops the pending change: the file has changed again, or the bridge ends.
func (r *Reloader) Withdraw(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdrawLocked(ctx)
}

func (r *Reloader) withdrawLocked(ctx context.Context) {
	c := r.pending.Swap(nil)
	if c == nil {
		return
	}
	r.o.Log.Info("no configuration waits for an approver any more")
	if err := approval.WithdrawConfig(context.WithoutCancel(ctx), r.o.Store, c.Key(), r.withdraws); err != nil {
		r.o.Log.Warn("dropping what was pending", "err", err)
	}
}

// withdraws reports whether a bridge no longer waits for what it submitted: it is
// this one, which withdraws it, or has ended.
func (r *Reloader) withdraws(bridge string) bool { return bridge == r.o.Bridge || r.o.Gone(bridge) }

// WithdrawGone drops what bridges that have ended left pending for a file whose
// text needs no confirmation. What a running bridge waits for stays.
func (r *Reloader) WithdrawGone(ctx context.Context, cfg *config.Config) {
	row, err := approval.PendingConfigOf(ctx, r.o.Store, Key(cfg))
	if err == nil && row != nil && row.By == "" {
		err = approval.WithdrawConfig(ctx, r.o.Store, Key(cfg), r.withdraws)
	}
	if err != nil {
		r.o.Log.Warn("looking for a pending configuration", "err", err)
	}
}

// Watch applies the pending change once it is confirmed, until ctx ends.
func (r *Reloader) Watch(ctx context.Context) {
	for {
		var changed <-chan struct{} // nil while nothing is pending
		if r.pending.Load() != nil {
			changed = r.o.Store.Changed()
			r.look(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-r.submitted:
		}
	}
}

// look applies the pending change if it is confirmed by now.
func (r *Reloader) look(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.pending.Load()
	if c == nil {
		return
	}
	row, err := approval.PendingConfigOf(ctx, r.o.Store, c.Key())
	if err == nil && row == nil { // dropped by a bridge that started since with nothing pending
		_, err = approval.SubmitConfig(ctx, r.o.Store, c.Row(r.o.InForce(), r.o.Bridge), time.Now())
	}
	switch {
	case err != nil:
		r.o.Log.Error("looking whether the configuration is confirmed", "err", err)
	case row != nil && row.By != "" && row.Digest == c.Digest():
		r.pending.Store(nil)
		if err := r.o.Take(ctx, c.Config, *row); err != nil {
			r.o.Log.Error("the confirmed configuration was not taken over", "err", err)
		}
	case row != nil && row.Digest == c.Digest():
		if err := r.o.Follow(c.Meanwhile(row.Rejected != nil)); err != nil {
			r.o.Log.Error("following who may answer", "err", err)
		}
	}
}

// Text tells codemode_status what is pending; empty if nothing is.
func (r *Reloader) Text() string {
	c := r.pending.Load()
	if c == nil {
		return ""
	}
	return "waits for an approver (the approval page, or codemode-bridge config confirm): " + strings.Join(c.Why, "; ")
}

// Pending returns what this bridge has pending, for the page; nil if nothing is.
func (r *Reloader) Pending(ctx context.Context) (*approval.PendingConfig, error) {
	c := r.pending.Load()
	if c == nil {
		return nil, nil
	}
	row, err := approval.PendingConfigOf(ctx, r.o.Store, c.Key())
	if err != nil {
		return nil, fmt.Errorf("reading the pending configuration: %w", err)
	}
	if row == nil || row.By != "" || row.Digest != c.Digest() {
		return nil, nil // it is just being taken over, or dropped
	}
	return row, nil
}

// Confirm confirms the pending change with that digest, so that it is applied.
func (r *Reloader) Confirm(ctx context.Context, digest string, said approval.Confirmation) error {
	return r.answer(ctx, approval.Confirm, digest, said)
}

// Reject rejects the pending change with that digest.
func (r *Reloader) Reject(ctx context.Context, digest string, said approval.Confirmation) error {
	return r.answer(ctx, approval.Reject, digest, said)
}

// answer has the store take an answer to the pending change.
func (r *Reloader) answer(ctx context.Context, take func(ctx context.Context, s approval.Store, file, digest string, said approval.Confirmation) error, digest string, said approval.Confirmation) error {
	c := r.pending.Load()
	if c == nil {
		return approval.ErrUnknown
	}
	return take(ctx, r.o.Store, c.Key(), digest, said)
}
