package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"codemode-bridge/bridge"
	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/alive"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/notify"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/bridge/sso"
	"codemode-bridge/bridge/webguard"
)

// A desk is what a bridge needs to ask people who are not at the client:
// where requests are kept, who may answer them, and where they do.
type desk struct {
	store approval.Store
	close func() error

	id        string             // of this process, in the requests it puts
	conf      gate.Configuration // that it began with, whatever becomes of its text
	with      string             // flags that a command needs to read it
	realm     approval.Realm     // of the approvers
	alive     *alive.Member      // nil where nothing is shared
	folder    string             // of those who are
	approvers atomic.Pointer[approval.Approvers]
	separate  atomic.Bool
	notices   atomic.Pointer[notify.Notifier]        // nil: nobody is told
	told      atomic.Pointer[func(approval.Request)] // hears of each question as well, if not nil; it must not block
	page      atomic.Pointer[string]                 // the address of the page; nil as long as there is none
}

// openDesk opens the requests. Without an audit log they are kept in memory,
// and no other process can answer them.
func openDesk(ctx context.Context, cfg *config.Config, kept bool) (*desk, error) {
	d := &desk{id: fmt.Sprintf("b%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:10])), store: new(approval.Memory), close: func() error { return nil }}
	d.conf.ID, d.conf.Name = cfg.Identity()
	d.realm = realmOf(cfg)
	if err := d.follow(cfg); err != nil {
		return nil, err
	}
	if kept {
		store, err := sqlstore.OpenRequests(ctx, cfg.Audit.Requests())
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

// bridgesOf is the folder in which bridges that share a log know of each other.
func bridgesOf(place config.Audit) string { return place.Path + "-bridges" }

// follow takes over who may answer from a configuration.
func (d *desk) follow(cfg *config.Config) error {
	people, err := pending.Approvers(cfg, d.realm)
	if err != nil {
		return err
	}
	d.approvers.Store(people)
	d.separate.Store(cfg.Approvals.SeparateApprover)
	return nil
}

// anybody reports whether somebody could answer who is not at the client.
func (d *desk) anybody() bool { return d.page.Load() != nil || d.approvers.Load().Any() }

// at is where an approver answers a request or a run's requests.
func (d *desk) at(path string) string {
	switch page := d.page.Load(); {
	case page != nil:
		return *page + path
	case d.approvers.Load().Any():
		return "codemode-bridge approvals watch"
	}
	return ""
}

// readAt says where all of a request can be read: on its page, or by a command
// where other processes find it.
func (d *desk) readAt(request string) approval.DescribeOptions {
	switch page := d.page.Load(); {
	case page != nil:
		return approval.DescribeOptions{At: *page + "/r/" + request}
	case d.alive != nil:
		return approval.DescribeOptions{Whole: "codemode-bridge approvals show " + request + d.with}
	default:
		return approval.DescribeOptions{}
	}
}

// withConfig is what a command needs besides to read a configuration that is
// not the user's own.
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

// over reports whether nobody waits, or will wait, for a request's verdict: its
// bridge has ended, and its run cannot go on elsewhere.
func (p *parts) over(ctx context.Context) (func(approval.Entry) bool, error) {
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
	return func(e approval.Entry) bool {
		return !kept[e.Run] && (e.Bridge == "" || e.Bridge != p.desk.id && p.desk.gone(e.Bridge))
	}, nil
}

// tidy ends the questions of bridges that are gone, and forgets requests and
// grants that are long over, now and once a day until ctx ends.
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
			err = errors.Join(broker.Abandon(ctx, nil, over), broker.Tidy(ctx, time.Now().Add(-keep)))
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

// realmOf tells a configuration's approvers from others'. A login means somebody
// only together with who vouches for it, to whom, and by which claim.
func realmOf(cfg *config.Config) approval.Realm {
	id, _ := cfg.Identity()
	realm := approval.Realm{Configuration: id}
	if sign := cfg.Approvals.OIDC; !sign.IsZero() {
		realm.Provider = strings.Join([]string{sign.Issuer.Reveal(), sign.ClientID.Reveal(), sign.Claim}, " ")
	}
	return realm
}

// A page is the approval page and its API, on a listener of their own.
type page struct {
	site   *admin.Site
	server *http.Server
	failed chan error
	base   string
	forget context.CancelFunc // the logins that it has begun
}

// openPage serves the approval page, until Close. Nil is a page that is off,
// or whose address is taken: by another bridge, whose page shows the same
// requests.
func (p *parts) openPage(a *console, log *slog.Logger) (*page, error) {
	cfg := p.config().Approvals
	if cfg.Listen.Reveal() == config.ListenOff {
		return nil, nil
	}
	l, err := net.Listen("tcp", cfg.Listen.Reveal())
	if err != nil {
		return nil, fmt.Errorf("serving the approval page: %w", err)
	}
	base := "http://" + l.Addr().String()
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		base = fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	hosts := config.Reveal(cfg.AllowedHosts)
	if host, _, err := net.SplitHostPort(l.Addr().String()); err == nil {
		if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
			hosts = append(hosts, host)
		}
	}
	var hooks []admin.Webhook
	for _, h := range cfg.Webhooks {
		hooks = append(hooks, admin.Webhook{URL: h.URL.Reveal(), Secret: []byte(h.Secret.Reveal())})
	}
	beginning, forget := context.WithCancel(context.Background())
	o := admin.Options{
		Approvers: p.desk.approvers.Load, Configuration: p.desk.conf.ID, Desk: p.gate, Requests: p.gate.Broker(), Runs: runsOf{p.server}, Sessions: sessionsOf{p.server}, Policy: &policyOf{parts: p, app: a}, Config: p.reloads.pending, Tools: toolsOf{p}, Logins: newPageLogins(beginning, p),
		Status: func(ctx context.Context) any { return p.server.Status(ctx) }, Record: p.recorder, Hosts: hosts, Base: base, Webhooks: hooks, Bridge: p.desk.id, Logger: log.With("part", "page"),
	}
	if p.recorder.Store() != nil {
		o.Records = p.recorder.Store()
	}
	if sign := cfg.OIDC; !sign.IsZero() {
		if o.SignOnReturn = sign.RedirectURL.Reveal(); o.SignOnReturn == "" {
			o.SignOnReturn = base + "/login/done"
		}
		o.SignOn = sso.New(sso.Options{Issuer: sign.Issuer.Reveal(), ClientID: sign.ClientID.Reveal(), ClientSecret: sign.ClientSecret.Reveal(),
			RedirectURL: o.SignOnReturn, Claim: sign.Claim})
	}
	site := admin.New(o)
	pg := &page{site: site, base: base, forget: forget, failed: make(chan error, 1), server: &http.Server{
		Handler: site, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 120 * time.Second, MaxHeaderBytes: 32 << 10,
	}}
	go func() { pg.failed <- pg.server.Serve(webguard.Strict(l)) }()
	p.desk.page.Store(&base)
	return pg, nil
}

// Close ends the page: its streams are cut, requests under way end first.
func (pg *page) Close() {
	pg.forget()
	pg.site.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if pg.server.Shutdown(ctx) != nil {
		pg.server.Close()
	}
	<-pg.failed
}

// runsOf shows the page a bridge's runs.
type runsOf struct{ *bridge.Server }

func (r runsOf) Start(ctx context.Context, profile, code string, input json.RawMessage, requester string) (string, error) {
	return r.Server.Start(ctx, profile, code, input, requester)
}

func (r runsOf) Run(ctx context.Context, id string) (admin.Run, bool) {
	st, ok := r.Server.Run(ctx, id)
	return shownRun(st), ok
}

func (r runsOf) List(ctx context.Context) []admin.Run {
	var all []admin.Run
	for _, st := range r.Runs(ctx) {
		all = append(all, shownRun(st))
	}
	return all
}

func (r runsOf) Stop(ctx context.Context, id, by string) error {
	return noSuchRun(r.CancelRun(ctx, id, by))
}

func (r runsOf) Resume(ctx context.Context, id, by string) error {
	return noSuchRun(r.ResumeInBackground(ctx, id, by))
}

func noSuchRun(err error) error {
	switch {
	case errors.Is(err, bridge.ErrNoRun):
		return admin.ErrUnknown
	case errors.Is(err, bridge.ErrEnded):
		return admin.ErrEnded
	}
	return err
}

func (r runsOf) Changed() <-chan struct{} { return r.RunsChanged() }

func shownRun(st bridge.RunState) admin.Run {
	return admin.Run{ID: st.ID, Profile: st.Profile, Client: st.Client, Requester: st.Requester, State: admin.RunState(st.State),
		Started: st.Started, Ended: st.Ended, Calls: st.Calls, Result: st.Result}
}

// sessionsOf shows the page a bridge's sessions.
type sessionsOf struct{ *bridge.Server }

func (s sessionsOf) List() []admin.Session {
	var all []admin.Session
	for _, st := range s.Sessions() {
		all = append(all, admin.Session{ID: st.ID, Client: st.Client, Profile: st.Profile, Started: st.Started})
	}
	return all
}

func (s sessionsOf) Tighten(_ context.Context, session, profile, _ string) error {
	err := s.Server.Tighten(session, profile)
	if errors.Is(err, bridge.ErrNoSession) {
		return admin.ErrUnknown
	}
	return err
}
