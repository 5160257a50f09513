// Package metrics counts what a bridge does, for Prometheus.
//
//	recorder ── Recorded ──▶ counters, histograms ─┐
//	gate     ── Decisions ─▶ histogram             ├─▶ GET /metrics
//	           State, read at each scrape ─────────┘
//
// What happens to runs, calls and questions is counted from the audit records, for there
// is one of everything; how the bridge is at the moment is read when somebody asks.
//
// No label may grow without bound or say what a script, a person or a server wrote:
// profiles and servers are those of the configuration, all other labels but the names of
// tools are words of our own, and tools have names only if [Options.Tools] lets them, so
// many at most. Whatever else comes is "other". There are no labels for principals,
// sessions, clients, runs, requests, arguments or errors.
package metrics

import (
	"context"
	"net/http"
	"time"

	"codemode-bridge/bridge/ledger"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options say what is counted.
type Options struct {
	// Version and Commit are the program's; Go is what it was built with.
	Version, Commit, Go string
	// Profiles and Servers return the names in the configuration in force. They may be
	// called for each record.
	Profiles, Servers func() []string
	// Tools is how many tools are counted by name; 0: none.
	Tools int
	// State says how the bridge is. It is called at each scrape, and may take until ctx
	// ends.
	State func(ctx context.Context) State
}

// Metrics are the numbers of one bridge. Their methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry
	profiles *names
	servers  *names
	tools    *toolNames

	runsStarted   *prometheus.CounterVec   // profile
	runsEnded     *prometheus.CounterVec   // profile, end
	runTime       *prometheus.HistogramVec // profile
	calls         *prometheus.CounterVec   // profile, server, disposition, outcome
	callTime      *prometheus.HistogramVec // server
	toolCalls     *prometheus.CounterVec   // server, tool, outcome
	decisionTime  prometheus.Histogram
	asked         *prometheus.CounterVec   // profile
	verdicts      *prometheus.CounterVec   // channel, verdict
	questionWait  *prometheus.HistogramVec // channel, verdict
	limitRefusals *prometheus.CounterVec   // limit
	commitTime    prometheus.Histogram
	records       *prometheus.CounterVec // event
	storeErrors   prometheus.Counter
}

// New makes metrics that count from now on.
func New(o Options) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), profiles: &names{in: o.Profiles}, servers: &names{in: o.Servers}, tools: &toolNames{max: o.Tools}}
	m.runsStarted = m.counters("codemode_runs_started_total", "Runs that began.", "profile")
	m.runsEnded = m.counters("codemode_runs_ended_total", "Runs that ended, by how: done, failed, or stopped (cancelled, or beyond a limit).", "profile", "end")
	m.runTime = m.histograms("codemode_run_duration_seconds", "How long runs took from beginning to end, waiting for people included.", []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 7200}, "profile")
	m.calls = m.counters("codemode_calls_total", "Calls of tools, by what policy said and what became of them: done, failed (the server's answer is an error), refused (not sent), unknown (sent, and no answer came).", "profile", "server", "disposition", "outcome")
	m.callTime = m.histograms("codemode_call_duration_seconds", "How long servers took to answer calls.", []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "server")
	if o.Tools > 0 {
		m.toolCalls = m.counters("codemode_tool_calls_total", "Calls that were sent, by tool; those beyond the configured number of tools are other.", "server", "tool", "outcome")
	}
	m.decisionTime = m.histogram("codemode_decision_duration_seconds", "How long policy took to decide on a call, waiting for people not included.", []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1})
	m.asked = m.counters("codemode_calls_asked_total", "Calls that were put to people.", "profile")
	m.verdicts = m.counters("codemode_verdicts_total", "Verdicts, by the channel on which they came and what they were: approved, denied, vote (one of several that are needed), or refused (they came too late, or from somebody who may not give them).", "channel", "verdict")
	m.questionWait = m.histograms("codemode_question_wait_seconds", "How long calls waited for a verdict that settled them.", []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 14400}, "channel", "verdict")
	m.limitRefusals = m.counters("codemode_limit_refusals_total", "What was refused for a limit: questions (as many are open, or were asked, as may be) and workers (a run found no memory for a worker in time).", "limit")
	m.commitTime = m.histogram("codemode_store_commit_duration_seconds", "How long the store took to write records, one or several at a time.", []float64{.0001, .0005, .001, .005, .01, .025, .05, .1, .25, .5, 1, 5})
	m.records = m.counters("codemode_store_records_total", "Records that were written to the audit log, by event.", "event")
	m.storeErrors = prometheus.NewCounter(prometheus.CounterOpts{Name: "codemode_store_errors_total", Help: "Records that could not be written; each refused what it announced."})
	for _, limit := range limits {
		m.limitRefusals.WithLabelValues(limit)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "codemode_build_info", Help: "1, with what the program was built from.",
		ConstLabels: prometheus.Labels{"version": o.Version, "commit": o.Commit, "go_version": o.Go}})
	build.Set(1)
	m.registry.MustRegister(m.storeErrors, build, newStateCollector(o.State, m.servers), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

// Decisions returns what counts decisions on calls and how long they took; nil for nil
// metrics.
func (m *Metrics) Decisions() func(took time.Duration) {
	if m == nil {
		return nil
	}
	return func(took time.Duration) { m.decisionTime.Observe(took.Seconds()) }
}

// Recorded counts what records say that were written together, which took so long (0 where
// none are kept), or that could not be written.
func (m *Metrics) Recorded(all []ledger.Record, took time.Duration, err error) {
	if err != nil {
		m.storeErrors.Add(float64(len(all)))
		return
	}
	if took > 0 {
		m.commitTime.Observe(took.Seconds())
	}
	for i := range all {
		if took > 0 {
			m.records.WithLabelValues(word(string(all[i].Event), events)).Inc()
		}
		m.count(&all[i])
	}
}

// Handler answers with the metrics, whoever asks.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError})
}
