package main

import (
	"context"
	"runtime"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/metrics"
	"codemode-bridge/bridge/trace"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/pushcmd"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
	"codemode-bridge/cmd/codemode-bridge/telemetry"
)

// newMetrics counts what a lasting bridge does, and nothing if the configuration names no
// address where that could be read. It is called before the bridge does anything.
func newMetrics(p *parts, m config.Metrics, lives lifetime) *metrics.Metrics {
	if m.Listen.IsZero() || lives != lasting {
		return nil
	}
	counts := metrics.New(metrics.Options{
		Version: version, Commit: built().Revision(), Go: runtime.Version(), Tools: m.Tools, State: func(ctx context.Context) metrics.State { return metricsState(ctx, p) },
		Profiles: func() []string { return p.config().Profiles.Names() }, Servers: func() []string { return serverNames(p.config()) },
	})
	p.recorder.Observe(counts.Recorded)
	return counts
}

// getenv returns a variable's value, empty if it is not set.
func getenv(env config.Env) func(name string) string {
	return func(name string) string { value, _ := env(name); return value }
}

// newTraces exports the spans of runs where the environment says so. A mistake in it costs
// the traces and nothing else.
func newTraces(ctx context.Context, p *parts, lives lifetime) (*telemetry.Export, *trace.Tracer) {
	if lives == resting {
		return nil, nil
	}
	traces, tracer, err := telemetry.Open(ctx, telemetry.Options{Getenv: getenv(p.env), Version: version, Logger: p.log, Passes: (&telemetry.Passing{Config: p.config}).To})
	if err != nil {
		p.log.Warn("runs are not traced", "err", err)
	}
	return traces, tracer
}

// serveMetrics serves the metrics, if there are any, until ctx ends. A bridge whose
// metrics cannot be read does everything else all the same.
func serveMetrics(ctx context.Context, p *parts, counts *metrics.Metrics, m config.Metrics) {
	if counts == nil {
		return
	}
	site, err := counts.Serve(metrics.SiteOptions{Listen: m.Listen.Reveal(), Token: m.Token.Reveal(), Hosts: config.Reveal(m.AllowedHosts)})
	if err != nil {
		p.log.Warn("there are no metrics of this bridge; metrics.listen names another address", "err", err)
		return
	}
	defer site.Close()
	p.log.Info("metrics can be read", "at", site.Address)
	<-ctx.Done()
}

// metricsState is how the bridge is.
func metricsState(ctx context.Context, p *parts) metrics.State {
	waiting, pool := p.gate.Broker().Counts(""), p.pool.Status()
	s := metrics.State{
		Runs: p.server.Running(), Sessions: len(p.server.Sessions()), Questions: questionsOf(ctx, p), Open: waiting.Open, Queued: waiting.Queued,
		Writable: p.recorder.Unavailable() == "", Backlog: p.recorder.Backlog(), Unpushed: pushcmd.Waiting(ctx, p.recorder.Store(), p.config().Audit, storecmd.OpenPushed),
		Workers: metrics.Workers{Live: pool.Live, Warm: pool.Warm, Idle: pool.Idle, Busy: pool.Running, Queued: pool.Queued, Started: pool.Started, Killed: pool.KilledFor},
	}
	for _, is := range p.upstreams.Status() {
		if is.State != upstream.Disabled {
			s.Servers = append(s.Servers, metrics.Server{Name: is.Name, State: string(is.State), Connected: is.State == upstream.Connected || is.State == upstream.Unhealthy, Since: is.Since, Failures: is.Failures, Tools: is.Tools})
		}
	}
	return s
}

// questionsOf are those of the bridge's configuration that wait; nil if they cannot be read.
func questionsOf(ctx context.Context, p *parts) *metrics.Questions {
	now := time.Now()
	open, err := p.gate.Broker().Requests(ctx, approval.Filter{Open: now})
	if err != nil {
		return nil
	}
	var q metrics.Questions
	for _, e := range open {
		if len(e.Items) == 0 || e.Items[0].Key.Configuration != p.desk.conf.ID {
			continue
		}
		q.Waiting++
		q.Oldest = max(q.Oldest, now.Sub(e.Asked))
	}
	return &q
}
