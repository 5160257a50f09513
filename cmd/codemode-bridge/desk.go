package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/alive"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/notify"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
)

// A desk is what a bridge needs to ask people who are not at the client: where
// requests are kept, who may answer them, and where.
type desk struct {
	store approval.Store
	close func() error

	id        string             // of this process, in the requests it puts
	conf      gate.Configuration // which configuration the bridge has; edits do not change that
	with      string             // the flags with which a command reads the same configuration
	realm     approval.Realm     // of the approvers
	alive     *alive.Member      // nil if requests are kept in memory
	folder    string             // in which bridges with the same log know of each other
	approvers atomic.Pointer[approval.Approvers]
	separate  atomic.Bool
	notices   atomic.Pointer[notify.Notifier]        // nil: no notices are wanted
	told      atomic.Pointer[func(approval.Request)] // also called with each request, unless nil; must not block
	page      atomic.Pointer[string]                 // the address of the page; nil if there is none
}

// openDesk opens the store of requests. Without an audit log (kept is false) they
// are in memory, and no other process can answer them.
func openDesk(ctx context.Context, cfg *config.Config, kept bool) (*desk, error) {
	d := &desk{id: fmt.Sprintf("b%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:10])), store: new(approval.Memory), close: func() error { return nil }}
	d.conf.ID, d.conf.Name = cfg.Identity()
	d.realm = realmOf(cfg)
	if err := d.follow(cfg); err != nil {
		return nil, err
	}
	if kept {
		store, err := storecmd.OpenRequests(ctx, cfg.Audit)
		if err != nil {
			return nil, &configError{err, "the file holds open questions and grants, nothing else: set it aside and they are asked anew"}
		}
		d.folder = bridgesOf(cfg.Audit)
		if d.alive, err = alive.Join(d.folder, d.id); err != nil {
			return nil, errors.Join(err, store.Close())
		}
		d.store, d.close = store, func() error { return errors.Join(store.Close(), d.alive.Leave()) }
	}
	return d, nil
}

// bridgesOf is the folder in which bridges with the same log know of each other.
func bridgesOf(place config.Audit) string { return place.Path + "-bridges" }

// follow takes the approvers over from a configuration.
func (d *desk) follow(cfg *config.Config) error {
	people, err := pending.Approvers(cfg, d.realm)
	if err != nil {
		return err
	}
	d.approvers.Store(people)
	d.separate.Store(cfg.Approvals.SeparateApprover)
	return nil
}

// anybody reports whether anybody but the person at the client could answer.
func (d *desk) anybody() bool { return d.page.Load() != nil || d.approvers.Load().Any() }

// at says where an approver answers: at a path of the page, or by a command; "" if
// nobody could.
func (d *desk) at(path string) string {
	switch page := d.page.Load(); {
	case page != nil:
		return *page + path
	case d.approvers.Load().Any():
		return "codemode-bridge approvals watch"
	}
	return ""
}

// pageAddress is the address of the page; "" if there is none.
func (d *desk) pageAddress() string {
	if page := d.page.Load(); page != nil {
		return *page
	}
	return ""
}

// readAt says where the whole of a request can be read: on the page, or by a command
// if other processes can read the store.
func (d *desk) readAt(request string) wording.DescribeOptions {
	switch page := d.page.Load(); {
	case page != nil:
		return wording.DescribeOptions{At: *page + "/r/" + request}
	case d.alive != nil:
		return wording.DescribeOptions{Whole: "codemode-bridge approvals show " + request + d.with}
	default:
		return wording.DescribeOptions{}
	}
}

// withConfig returns the flag with which a command reads this configuration, quoted
// for a shell; "" if it is in its usual place.
func withConfig(cfg *config.Config, env config.Env) string {
	places, err := config.Paths(env)
	switch {
	case err == nil && places.ConfigFile == cfg.File:
		return ""
	case strings.ContainsAny(cfg.File, " '\"$&|;()<>*?"):
		return " --config '" + strings.ReplaceAll(cfg.File, "'", `'\''`) + "'"
	default:
		return " --config " + cfg.File
	}
}

// broker makes the broker of this process.
func (d *desk) broker(a config.Approvals, logger *slog.Logger) *approval.Broker {
	return approval.New(approval.Options{
		Store: d.store, Bridge: d.id, Configuration: d.conf.ID, Gone: d.gone, Separate: d.separate.Load, Approvers: d.approvers.Load, Asked: d.asked, Logger: logger,
		Limits: approval.Limits{PerRun: a.PerRun, PerSession: a.PerSession, PerBridge: a.PerBridge, Refuse: a.Overflow == config.OverflowRefuse, Budget: a.Budget, BudgetTime: time.Duration(a.BudgetTime), Flood: a.Flood},
	})
}

// gone reports whether a bridge that shares the store has ended.
func (d *desk) gone(bridge string) bool { return d.alive != nil && alive.Gone(d.folder, bridge) }

// over returns a function that reports whether a request can no longer matter: its
// bridge has ended, and its run cannot be resumed elsewhere.
func (p *parts) over(ctx context.Context) (func(approval.StoredRequest) bool, error) {
	kept := map[string]bool{}
	if journal := p.recorder.Journal(); journal != nil {
		runs, err := journal.Runs(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range runs {
			kept[k.Run] = k.State != ledger.Finished
		}
	}
	return func(e approval.StoredRequest) bool {
		return !kept[e.Run] && (e.Bridge == "" || e.Bridge != p.desk.id && p.desk.gone(e.Bridge))
	}, nil
}

// tidy closes the requests of bridges that are gone, and removes requests and grants
// that ended longer ago than keep, now and once a day until ctx ends.
func (p *parts) tidy(ctx context.Context, keep time.Duration) {
	if keep <= 0 {
		keep = 30 * 24 * time.Hour
	}
	tick := time.NewTicker(24 * time.Hour)
	defer tick.Stop()
	for {
		broker := p.gate.Broker()
		over, err := p.over(ctx)
		if err == nil {
			err = errors.Join(broker.Abandon(ctx, nil, over), broker.Prune(ctx, time.Now().Add(-keep)))
		}
		if err != nil && ctx.Err() == nil {
			p.log.Error("tidying the requests", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// realmOf is the scope in which credentials identify an approver of a configuration.
// A login identifies somebody only together with the provider that vouches for it,
// the client that it vouches to, and the claim.
func realmOf(cfg *config.Config) approval.Realm {
	id, _ := cfg.Identity()
	realm := approval.Realm{Configuration: id}
	if sign := cfg.Approvals.OIDC; !sign.IsZero() {
		realm.Provider = strings.Join([]string{sign.Issuer.Reveal(), sign.ClientID.Reveal(), sign.Claim}, " ")
	}
	return realm
}
