package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge"
	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/handles"
	"codemode-bridge/bridge/lockfile"
	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/observed"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/turns"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/bridge/view"
	"codemode-bridge/cmd/codemode-bridge/logincmd"
	"codemode-bridge/cmd/codemode-bridge/running"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
	"codemode-bridge/cmd/codemode-bridge/toolscmd"
	"codemode-bridge/cmd/codemode-bridge/upstreams"
	"codemode-bridge/profiles"
	"codemode-bridge/sandbox"
)

// parts is a running bridge: everything that build made. The configuration in force
// is the only part that is replaced.
type parts struct {
	log       *slog.Logger
	recorder  *recorder.Recorder
	env       config.Env
	serverKey []byte // for the identities of servers
	upstreams *upstream.Set
	logins    *logincmd.Logins
	pool      *sandbox.Pool
	gate      *gate.Gate
	server    *bridge.Server
	observed  *observed.Store
	desk      *desk
	reloads   *reloads
	pins      *pins.Store
	views     *view.Maker
	start     *upstreams.Start               // of eval: says which servers start first; nil: all start at once
	told      atomic.Pointer[running.Bridge] // of a command: the bridge that knows its servers; see hear

	started time.Time
	here    func() string // the folder that the bridge was started in; empty if that is not known
	cached  bool          // there are tools of the last run to list
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu  sync.Mutex // guards cfg
	cfg *config.Config
}

// A lifetime says what a bridge is built for.
type lifetime int

const (
	lasting lifetime = iota // to serve clients
	brief                   // for one command: its servers end fast
	resting                 // likewise, and none of its servers is started until parts.only says so
	single                  // like brief, for one script: parts.start starts the servers that it names first
)

// build puts a bridge together from the floor up. Servers connect in the background.
// Close ends everything but rec, which stays the caller's.
func build(ctx context.Context, con *console, cfg *config.Config, l *logs, rec *auditLog, lives lifetime) (*parts, error) {
	program, err := worker()
	if err != nil {
		return nil, err
	}
	p := &parts{log: l.logger, recorder: rec.Recorder, env: con.Env, cfg: cfg, started: time.Now(), here: startFolder(l.logger)}
	if p.desk, err = openDesk(ctx, cfg, rec.Store() != nil, l.logger); err != nil {
		return nil, err
	}
	p.desk.with = withConfig(cfg, con.Env)
	p.reloads = newReloads(con, p, cfg)
	p.log.Info("bridge begins", "version", version, "commit", built().Revision(), "worker", program)
	counts := newMetrics(p, cfg.Metrics, lives)
	traces, tracer := newTraces(ctx, p, lives)
	cache := cacheFolder(con, cfg.File)
	p.pins = openPins(con, cfg)
	p.observed = observed.Open(cache, observed.Options{Logger: l.logger})
	p.logins = logins(con)
	p.logins.Serve(p.desk.pageAddress, false)
	if lives == lasting {
		p.logins.Move(func(server, file string) {
			p.log.Info("the login at a server was moved from its file to the store, where all bridges have it", "server", server, "file", file)
		})
	}
	p.upstreams = upstream.New(upstream.Options{Logger: l.logger.With("part", "upstream"), ClientVersion: version, Hasty: lives != lasting, Changed: func() { p.views.Touch() }})
	p.pool, err = sandbox.NewPool(sandbox.Options{
		Worker: program, Limits: limits(cfg.Sandbox), Warm: warm(cfg.Sandbox.Warm), MaxWorkers: cfg.Sandbox.Workers,
		Memory: int64(cfg.Sandbox.Memory), Crowded: func() { p.server.MakeRoom() }, Fresh: cfg.Sandbox.Fresh, Logger: l.logger.With("part", "sandbox"),
	})
	if err != nil {
		p.upstreams.Close()
		p.logins.Close()
		p.observed.Close()
		p.desk.close()
		return nil, err
	}
	if p.serverKey = rec.servers; p.serverKey == nil {
		p.serverKey = make([]byte, 32)
		rand.Read(p.serverKey)
	}
	p.views = view.New(p.configured(cfg), view.Options{
		Listed: p.listed, Observed: p.observation, Absent: p.absent, Offers: p.upstreams.Offers, Box: p.box, Pins: p.pins, LookOnly: rec.Refuses(), Hide: rec.Secrets().Hide,
		Recorder: rec, Cache: cache, Log: l.logger,
	})
	p.cached = len(p.views.First().Cached) > 0
	p.readSaved(cfg)
	p.gate = gate.New(p.views.First(), gate.Options{Caller: p.upstreams, Reader: p.upstreams, Recorder: rec, Fence: p.desk.members.Fence, Broker: p.desk.broker(cfg.Approvals, l.logger), Approvers: p.desk.anybody, Fingerprints: rec.fingerprints, Conceal: rec.Secrets().Hide, Configuration: p.desk.conf, MostCalls: cfg.Sandbox.Calls, Await: p.awaitServer, Gather: p.gather, Previewed: p.previewed, Turn: turns.New(turns.Processors()).Do, Decided: counts.Decisions(), Marks: con.shared.Marks(cfg, marksFolder(con, cfg.File))})
	var summaryWait time.Duration
	if cfg.Approvals.Summaries {
		summaryWait = 5 * time.Second
	}
	p.server = bridge.New(bridge.Options{
		Gate: p.gate, Pool: p.pool, Upstreams: p.upstreams, Version: version,
		Full: cfg.Surface == config.SurfaceFull, Limits: limits(cfg.Sandbox), MaxResult: int(cfg.Sandbox.Result),
		Problem: p.reloads.trouble, Held: p.reloads.pending.Text, Unrecorded: rec.Unavailable, Ready: p.awaitList, Observed: p.observe, Ended: p.upstreams.EndSession, Logger: l.logger,
		Where: bridge.Where{Tracer: tracer, Access: func() *access.Rules { return p.config().Rules() }, Folder: p.folder, Workspace: p.roots(con).Workspace}, Journal: rec.Journal(), Bridge: p.desk.id, JournalBytes: int64(cfg.Runs.Journal), KeepJournals: time.Duration(cfg.Runs.Keep), Gone: p.desk.members.Gone, Shared: bridge.Shared{Seal: rec.states, Name: cmp.Or(con.replica, p.desk.id), Handles: handles.SharedBy(p.desk.conf.ID, rec.handles)},
		ApproveAt: func(string) string { return p.desk.at("/") }, ReadAt: p.desk.readAt, SummaryWait: summaryWait,
	})
	p.desk.members.Watch(nil, p.server.Reclaim)
	p.views.Serve(p.gate, p.server.Replace)
	rec.Secrets().Learn(hidden(cfg, con.Env), con.Env)
	rec.Secrets().HideLogins(p.logins.Hide)
	switch lives {
	case lasting, brief:
		p.upstreams.Apply(p.specs(cfg))
	case single:
		p.start = upstreams.NewStart(p.upstreams, p.specs(cfg))
	case resting:
	}
	following, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.ended.Go(func() { p.views.Follow(following) })
	p.ended.Go(func() { serveMetrics(following, p, counts, cfg.Metrics) })
	p.ended.Go(func() { <-following.Done(); traces.Close() })
	if p.start != nil {
		p.ended.Go(func() { p.start.Follow(following) })
	}
	return p, nil
}

// fileKey is a short name for a configuration file, after which the folders that
// belong to it are named.
func fileKey(file string) string { return upstreams.FileKey(file) }

// cacheFolder is where the last catalogue of a configuration file is kept; empty, so
// that none is kept, if the environment names no folder.
func cacheFolder(con *console, file string) string {
	places, err := config.Paths(con.Env)
	if err != nil {
		return ""
	}
	return filepath.Join(places.CacheDir, "catalog-"+fileKey(file))
}

// warm converts the configured number of ready workers for package sandbox, where 0
// means the default and a negative number none.
func warm(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// Close ends the bridge. Runs under way get grace to end; then servers and workers are
// stopped, politely first.
func (p *parts) Close(grace time.Duration) {
	p.server.Close(grace)
	p.stop() // from here on no view is made and no goroutine started
	p.ended.Wait()
	p.views.Wait()
	if err := p.upstreams.Close(); err != nil {
		p.log.Warn("closing the servers", "err", err)
	}
	p.logins.Close()
	p.observed.Close()
	if err := p.pool.Close(); err != nil {
		p.log.Warn("closing the sandbox", "err", err)
	}
	if err := p.desk.close(); err != nil {
		p.log.Warn("closing the requests", "err", err)
	}
}

// reconfigure swaps in a configuration that was loaded and checked.
func (p *parts) reconfigure(cfg *config.Config) {
	if !reflect.DeepEqual(cfg.Access, p.config().Access) || !reflect.DeepEqual(cfg.HTTP.Tokens, p.config().HTTP.Tokens) {
		defer p.server.AccessChanged()
	}
	p.views.Replace(p.configured(cfg), func() {
		p.mu.Lock()
		p.cfg = cfg
		p.mu.Unlock()
		p.pins.CompareWith(lockfile.Path(cfg.File), storecmd.Portable(cfg, p.env))
		p.upstreams.Apply(p.specs(cfg))
	})
}

// configured converts a configuration for package view.
func (p *parts) configured(cfg *config.Config) view.Configured {
	c := view.Configured{Profiles: cfg.Profiles, Identities: p.identities(cfg), Meanings: meanings(cfg), Order: cfg.ServerOrder()}
	for _, name := range serverNames(cfg) {
		s := cfg.Servers[name]
		own := s.Type == config.KindBuiltin
		c.Servers = append(c.Servers, view.Server{Name: name, Trusted: s.TrustAnnotations || own, Builtin: own, Rules: toolscmd.Rules(s)})
	}
	return c
}

// listed returns the tools of the servers that have listed theirs.
func (p *parts) listed() map[string][]catalog.Definition {
	all, of := map[string][]catalog.Definition{}, p.upstreams.Tools()
	if told := p.told.Load(); told != nil {
		of = told.Tools()
	}
	for name, tools := range of {
		all[name] = definitions(tools)
	}
	return all
}

// absent says why a server has not listed its tools, as [view.Options] wants it.
func (p *parts) absent(server string) (state, why string) {
	for _, st := range p.states() {
		switch {
		case st.Name != server:
		case st.State == upstream.NeedsLogin, st.Login != "":
			return "needs a login", ""
		case st.Err != "" || st.Failures > 0:
			return "failed", st.Plain // clients' models read it as the bridge's own words
		}
	}
	return "connecting", ""
}

// specs returns a configuration's servers as this bridge runs them: with the user's
// logins and their identities.
func (p *parts) specs(cfg *config.Config) []upstream.Spec {
	all, are := specsWithLogins(cfg, p.logins, p.env), p.identities(cfg)
	for i := range all {
		all[i].Identity = are[all[i].Name]
	}
	return all
}

// folder is the working folder of servers without cwd; empty if all have one.
func (p *parts) folder() string {
	if !startsInWindow(p.config()) {
		return ""
	}
	return p.here()
}

// identities returns, by name, what identifies each server of a configuration besides
// its name: a paused run is resumed only with the same servers.
func (p *parts) identities(cfg *config.Config) map[string]string {
	usual := func(name string) bool { return len(upstream.Inherited(nil, []string{name + "="})) > 0 }
	are := make(map[string]string, len(cfg.Servers))
	for name, s := range cfg.Servers {
		are[name] = s.Identity(p.serverKey, p.env, usual)
	}
	return are
}

// config is the configuration in force.
func (p *parts) config() *config.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cfg
}

// ready waits until every server has connected or failed, or ctx ends, and makes a
// view of their tools. It says whom it waits for.
func (p *parts) ready(ctx context.Context, con *console) {
	var waiting sync.WaitGroup
	names := p.upstreams.Pending()
	said := con.waitFor(names)
	for _, name := range names {
		waiting.Go(func() {
			p.upstreams.WaitReady(ctx, name)
			said.Answered(name)
		})
	}
	waiting.Wait()
	said.Close()
	p.views.Refresh()
}

// only runs none but the named servers from now on, with the secrets that they name, and
// waits until each has connected or failed; it changes nothing else.
func (p *parts) only(ctx context.Context, con *console, names ...string) error {
	cfg := p.config()
	var below []string
	for _, name := range names {
		below = append(below, ofServer(name)...)
	}
	if len(below) > 0 { // without pointers all secrets would be asked for
		var err error
		if cfg, err = con.withSecrets(ctx, cfg, below...); err != nil {
			return err
		}
	}
	p.recorder.Secrets().Learn(hidden(cfg, p.env), p.env)
	p.upstreams.Apply(slices.DeleteFunc(p.specs(cfg), func(s upstream.Spec) bool { return !slices.Contains(names, s.Name) }))
	p.ready(ctx, con)
	return nil
}

// firstWait is how long after the start clients that list tools, and scripts that search
// or list them, wait for servers. A call waits for its own server, and for no other.
const firstWait = 2 * time.Second

// awaitList waits for the servers before their tools are described to a client, at the
// latest firstWait after the start. A client need not wait where there are the tools of
// the last run: it is told when they change.
func (p *parts) awaitList(ctx context.Context) {
	if !p.cached && !p.gate.View().Complete {
		p.gather(ctx)
	}
}

// gather returns when every server has listed its tools or failed, at the latest
// firstWait after the start.
func (p *parts) gather(ctx context.Context) {
	if p.start != nil {
		p.start.All()
	}
	until := p.started.Add(firstWait)
	if time.Now().After(until) {
		return // the views follow what comes later
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	p.upstreams.WaitReady(ctx)
	p.views.Refresh()
}

// previewed starts the servers that the script of a command names.
func (p *parts) previewed(report analysis.Report) {
	if p.start != nil {
		p.start.Previewed(report, p.gate.View().Owners)
	}
}

// awaitServer waits until one server has listed its tools, or cannot.
func (p *parts) awaitServer(ctx context.Context, server string) {
	if p.start != nil {
		p.start.For(server)
	}
	p.upstreams.Await(ctx, server)
	p.views.Refresh()
}

// tokens returns the bearer tokens of the configuration in force. If an edit has
// removed them all, nobody gets in.
func (p *parts) tokens() []mcphttp.Token {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []mcphttp.Token
	for _, t := range p.cfg.HTTP.Tokens {
		all = append(all, mcphttp.Token{Name: t.Name, Groups: t.Groups, SHA256: t.Digest})
	}
	return all
}

// definitions converts an upstream's tools for package catalog.
func definitions(tools []upstream.Tool) []catalog.Definition {
	all := make([]catalog.Definition, 0, len(tools))
	for _, t := range tools {
		all = append(all, catalog.Definition{
			Name: t.Name, Title: t.Title, Description: t.Description, Input: t.Input, Output: t.Output,
			Annotations: profiles.Annotations{ReadOnly: t.ReadOnly, Destructive: t.Destructive, Idempotent: t.Idempotent, OpenWorld: t.OpenWorld},
		})
	}
	return all
}

// serverNames returns the names of the enabled servers.
func serverNames(cfg *config.Config) []string {
	return slices.DeleteFunc(cfg.ServerNames(), func(name string) bool { return cfg.Servers[name].Disabled })
}
