package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"codemode-bridge/bridge"
	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/certificate"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/sso"
	"codemode-bridge/bridge/trace"
	"codemode-bridge/cmd/codemode-bridge/logincmd"
	"codemode-bridge/cmd/codemode-bridge/servecmd"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
)

// A page is the approval page and its API, on their own listener.
type page struct {
	site   *admin.Site
	server *http.Server
	failed chan error
	base   string
	forget context.CancelFunc // gives up the logins that it has begun

	certificate *certificate.Files // nil: plain HTTP
}

// openPage serves the approval page at an address until Close. The page is nil if the
// address says that it is off, or with an error, such as that the address is taken.
func (p *parts) openPage(a *console, address string) (*page, error) {
	if address == config.ListenOff {
		return nil, nil
	}
	cfg := p.config().Approvals
	l, err := servecmd.Listen(servecmd.SocketPage, address, cfg.TLS)
	if err != nil {
		return nil, fmt.Errorf("serving the approval page: %w", err)
	}
	base, hosts := l.Base(), append(config.Reveal(cfg.AllowedHosts), l.Hosts()...)
	base = strings.Replace(base, "THIS-MACHINE", "127.0.0.1", 1)
	var hooks []admin.Webhook
	for _, h := range cfg.Webhooks {
		hooks = append(hooks, admin.Webhook{URL: h.URL.Reveal(), Secret: []byte(h.Secret.Reveal())})
	}
	beginning, forget := context.WithCancel(context.Background())
	logins := logincmd.PageOptions{Logins: p.logins, Config: p.config, Go: p.ended.Go, Log: p.log}
	o := admin.Options{
		Approvers: p.desk.approvers.Load, Configuration: p.desk.conf.ID, Settler: p.gate, Requests: p.gate.Broker(), Runs: runsOf{p.server}, Sessions: sessionsOf{p.server}, Policy: &policyOf{parts: p, console: a}, Config: p.reloads.pending, Tools: toolsOf{p}, Logins: logincmd.NewPage(beginning, logins), Accounts: logincmd.People{PageOptions: logins},
		Status: func(ctx context.Context) any { return p.server.Status(ctx) }, Record: p.recorder, Hosts: hosts, Base: base, Webhooks: hooks, Bridge: p.desk.id, Logger: p.log.With("part", "page"),
	}
	if storecmd.Shares(p.config()) {
		o.SignIns = a.shared.Documents(storecmd.SignIns, p.config())
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
	pg := &page{site: site, base: base, certificate: l.Certificate, forget: forget, failed: make(chan error, 1), server: &http.Server{
		Handler: trace.Handler(site), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 120 * time.Second, MaxHeaderBytes: 32 << 10,
	}}
	go func() { pg.failed <- l.Serve(pg.server) }()
	p.desk.page.Store(&base)
	return pg, nil
}

// Close ends the page. Event streams are cut; requests under way get a second to end.
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

// runsOf gives the page a bridge's runs.
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

// sessionsOf gives the page a bridge's sessions.
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
