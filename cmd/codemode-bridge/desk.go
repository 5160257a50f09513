package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/notify"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/bridge/takeover"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/cmd/codemode-bridge/cli"
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
	members   *storecmd.Members  // the bridges with the same store; nil if requests are kept in memory
	approvers atomic.Pointer[approval.Approvers]
	separate  atomic.Bool
	notices   atomic.Pointer[notify.Notifier]        // nil: no notices are wanted
	told      atomic.Pointer[func(approval.Request)] // also called with each request, unless nil; must not block
	page      atomic.Pointer[string]                 // the address of the page; nil if there is none
}

// openDesk opens the store of requests. Without an audit log (kept is false) they
// are in memory, and no other process can answer them.
func openDesk(ctx context.Context, cfg *config.Config, kept bool, log *slog.Logger) (*desk, error) {
	d := &desk{id: replica.NewName(), store: new(approval.Memory), close: func() error { return nil }}
	d.conf.ID, d.conf.Name = cfg.Identity()
	d.realm = realmOf(cfg)
	if err := d.follow(cfg); err != nil {
		return nil, err
	}
	if kept {
		store, err := storecmd.OpenRequests(ctx, cfg.Audit)
		if err != nil {
			if storecmd.Full(err) {
				return nil, &configError{err, "the disk is full: make room; codemode-bridge audit prune gives back what old records take"}
			}
			return nil, &configError{err, "the file holds open questions and grants, nothing else: set it aside and they are asked anew"}
		}
		if d.members, err = storecmd.Join(ctx, cfg.Audit, d.id, version, log); err != nil {
			return nil, errors.Join(err, store.Close())
		}
		d.store, d.close = store, func() error { return errors.Join(store.Close(), d.members.Leave()) }
	}
	return d, nil
}

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
	case d.members != nil:
		return wording.DescribeOptions{Whole: "codemode-bridge approvals show " + request + d.with}
	default:
		return wording.DescribeOptions{}
	}
}

// withConfig returns the flag with which a command reads this configuration, quoted
// for a shell; "" if it is in its usual place.
func withConfig(cfg *config.Config, env config.Env) string {
	if places, err := config.Paths(env); err == nil && places.ConfigFile == cfg.File {
		return ""
	}
	return " --config " + cli.Word(cfg.File)
}

// broker makes the broker of this process.
func (d *desk) broker(a config.Approvals, logger *slog.Logger) *approval.Broker {
	return approval.New(approval.Options{
		Store: d.store, Bridge: d.id, Configuration: d.conf.ID, Gone: d.members.Gone, Separate: d.separate.Load, Approvers: d.approvers.Load, Asked: d.asked, Logger: logger,
		Limits: approval.Limits{PerRun: a.PerRun, PerSession: a.PerSession, PerBridge: a.PerBridge, Refuse: a.Overflow == config.OverflowRefuse, Budget: a.Budget, BudgetTime: time.Duration(a.BudgetTime), Flood: a.Flood},
	})
}

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
		return !kept[e.Run] && (e.Bridge == "" || e.Bridge != p.desk.id && p.desk.members.Gone(e.Bridge))
	}, nil
}

// abandon closes the requests that can no longer matter.
func (p *parts) abandon(ctx context.Context) error {
	over, err := p.over(ctx)
	if err == nil {
		err = p.gate.Broker().Abandon(ctx, nil, over)
	}
	return err
}

// takeOver has this bridge take over what those leave that end without a word, and give
// up what others have taken over from it. After either, again is called.
func (p *parts) takeOver(ctx context.Context, again func()) {
	p.desk.members.Watch(func([]string) error {
		if ctx.Err() != nil {
			return nil // another bridge does, or the next
		}
		err := takeover.Runs(ctx, takeover.Options{
			Journal: p.recorder.Journal(), Requests: p.desk.store, Bridge: p.desk.id, Configuration: p.desk.conf.ID, Gone: p.desk.members.Gone, Cancel: p.server.CancelRun,
		})
		again()
		return errors.Join(err, p.abandon(ctx))
	}, func(ctx context.Context) error {
		err := p.server.Reclaim(ctx)
		again()
		return err
	})
}

// resumeAnswered resumes the runs that people have answered, until ctx ends, and those anew
// that another bridge was about to resume when it ended.
func (p *parts) resumeAnswered(ctx context.Context) {
	for ctx.Err() == nil {
		looking, again := context.WithCancel(ctx)
		p.takeOver(ctx, again)
		p.server.ResumeAnswered(looking)
		again()
	}
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
		err := errors.Join(p.abandon(ctx), p.gate.Broker().Prune(ctx, time.Now().Add(-keep)))
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
