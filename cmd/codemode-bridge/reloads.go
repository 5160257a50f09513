package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/cmd/codemode-bridge/statuscmd"
)

// A reloads takes the configuration over whenever its file changes. A file with
// mistakes changes nothing: the last good configuration stays in force. One that
// loosens something may have to wait for an approver; see package pending.
type reloads struct {
	bridge  *parts
	con     *console
	first   *config.Config         // with which the bridge was built
	problem atomic.Pointer[string] // what is wrong with the file on disk
	serving atomic.Pointer[statuscmd.Announcement]
	pending *pending.Reloader
}

func newReloads(con *console, p *parts, first *config.Config) *reloads {
	r := &reloads{bridge: p, con: con, first: first}
	r.pending = pending.NewReloader(pending.Options{
		History: history(con), Store: p.desk.store, Bridge: p.desk.id, Gone: p.desk.members.Gone, Log: p.log,
		InForce: p.config, Take: r.take, Follow: p.desk.follow,
		Submitted: func(ctx context.Context, old *config.Config, c *pending.Change) {
			p.recorder.Enqueue(context.WithoutCancel(ctx), recorder.ConfigPending(recordedAs(old), recordedAs(c.Config), c.Why))
		},
	})
	return r
}

// begin keeps the configuration with which the bridge started as confirmed. If the
// file says something else, that becomes the pending configuration.
func (r *reloads) begin(ctx context.Context, file *config.Config) error {
	if cfg := r.bridge.config(); file == cfg {
		first, err := r.keep(cfg, approval.PendingConfig{})
		if err != nil {
			return &configError{err, "what is confirmed later is compared with it: make the state folder writable"}
		}
		if first {
			r.bridge.recorder.Enqueue(ctx, recorder.ConfigFirst(recordedAs(cfg)))
		}
		r.pending.WithdrawGone(ctx, cfg)
		return nil
	}
	if err := r.reload(ctx, file); err != nil {
		return err
	}
	if c := r.pending.Change(); c != nil {
		r.con.Told("%s waits for an approver, and what was confirmed last goes on: %s (%s)", c.Key(), strings.Join(c.Why, "; "), c.WayOn())
	}
	return nil
}

// keep stores, for the next start, that cfg is in force.
func (r *reloads) keep(cfg *config.Config, confirmed approval.PendingConfig) (first bool, err error) {
	return history(r.con).Keep(cfg, confirmed.By, confirmed.Channel, time.Now())
}

// watch follows the file until ctx ends. Seen is what it said when it was last read.
func (r *reloads) watch(ctx context.Context, seen *config.Config) {
	r.bridge.ended.Go(func() { r.bridge.followSaved(ctx, r.first) })
	r.bridge.ended.Go(func() { r.pending.Watch(ctx) })
	watchFiles(ctx, r.con, seen, func(cfg *config.Config, looked []string) {
		var err error
		if r.con.covers != nil {
			err = r.con.covers(cfg, looked)
		}
		if err == nil {
			err = r.reload(ctx, cfg)
		}
		if err != nil {
			r.refused(ctx, err)
		}
	}, func(err error) { r.refused(ctx, err) })
	r.pending.Withdraw(ctx)
}

// reload takes over what the file says now, or lets it wait for an approver.
func (r *reloads) reload(ctx context.Context, cfg *config.Config) error {
	if _, err := pending.Approvers(cfg, r.bridge.desk.realm); err != nil {
		return err
	}
	r.problem.Store(nil)
	r.announce()
	return hinted(r.pending.Reload(ctx, cfg))
}

// refused logs and records that the file cannot be taken over.
func (r *reloads) refused(ctx context.Context, err error) {
	if problems := (config.Problems)(nil); errors.As(err, &problems) || errors.Is(err, instance.ErrNotShared) {
		r.pending.Withdraw(ctx) // the file no longer says what was pending
	}
	text := fmt.Sprint(err)
	if old := r.problem.Swap(&text); old == nil || *old != text {
		r.bridge.recorder.Enqueue(context.WithoutCancel(ctx), recorder.ConfigRefused(recordedAs(r.bridge.config()), text))
	}
	r.announce()
	r.bridge.log.Error("the configuration was not taken over; the last good one goes on", "err", err)
}

// announce tells `status`, in a `serve`, whether the file on disk was taken over.
func (r *reloads) announce() {
	if err := r.serving.Load().Refused(r.trouble()); err != nil {
		r.bridge.log.Warn("status does not know of the configuration on disk", "err", err)
	}
}

// take puts cfg in force, with its secrets. Confirmed says who confirmed it, if anybody had to.
func (r *reloads) take(ctx context.Context, cfg *config.Config, confirmed approval.PendingConfig) error {
	cfg, err := r.con.withSecretsInForce(ctx, cfg)
	if err != nil {
		return err
	}
	if err := r.bridge.desk.follow(cfg); err != nil {
		return err
	}
	if !fixedOf(cfg).equals(fixedOf(r.first)) {
		r.bridge.log.Warn("id, sandbox, surface, windows, scripts, runs, audit, store, approvals.oidc, http.listen, http.auth, metrics, centre and whether tokens are needed at all take effect at the next start")
	}
	r.bridge.recorder.Secrets().Learn(hidden(cfg, r.con.Env), r.con.Env)
	old := r.bridge.config()
	rec := recorder.ConfigTaken(recordedAs(old), recordedAs(cfg), pending.Changes(old, cfg, r.runAs), confirmed.Text)
	rec.Approver, rec.Channel = confirmed.By, confirmed.Channel
	r.bridge.recorder.Enqueue(context.WithoutCancel(ctx), rec)
	if _, err := r.keep(cfg, confirmed); err != nil {
		r.bridge.log.Error("the next start will not know that this configuration was taken over", "err", err)
	}
	r.bridge.reconfigure(cfg)
	r.bridge.log.Info("the configuration was taken over", "servers", len(cfg.Servers), "profiles", len(cfg.Profiles.Names()))
	return nil
}

// trouble says what is wrong with the configuration file on disk; "" if nothing is.
func (r *reloads) trouble() string {
	if text := r.problem.Load(); text != nil {
		return *text
	}
	return ""
}

// fixed is the part of a configuration whose changes take effect only at the next
// start.
type fixed struct {
	id      string
	sandbox config.Sandbox
	surface config.Surface
	windows config.Windows
	scripts config.Scripts
	runs    config.Runs
	audit   config.Audit
	signOn  config.OIDC
	listen  string
	tokens  bool // whether there are any
	auth    config.OAuth
	metrics config.Metrics
	centre  config.Centre
}

func fixedOf(cfg *config.Config) fixed {
	return fixed{
		cfg.ID, cfg.Sandbox, cfg.Surface, cfg.Windows, cfg.Scripts, cfg.Runs, cfg.Audit,
		cfg.Approvals.OIDC, cfg.HTTP.Listen.Reveal(), len(cfg.HTTP.Tokens) > 0, cfg.HTTP.Auth, cfg.Metrics, cfg.Centre,
	}
}

// equals compares by value: a config.Value holds a pointer to its text.
func (f fixed) equals(other fixed) bool { return reflect.DeepEqual(f, other) }

// runAs returns, by name, how each server of a configuration is run, so that two
// configurations can be compared.
func (r *reloads) runAs(cfg *config.Config) map[string]any {
	are := map[string]any{}
	for _, spec := range specs(cfg, r.con.Env) {
		spec.InProcess = nil // functions are never equal
		are[spec.Name] = spec
	}
	return are
}
