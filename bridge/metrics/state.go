package metrics

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A State is how a bridge is at a moment.
type State struct {
	Servers  []Server
	Runs     int // under way
	Sessions int // of clients
	Workers  Workers
	// Questions are those that wait in the store, whichever bridge asked; nil if that
	// could not be read.
	Questions *Questions
	// Open and Queued are the calls of this bridge that wait for a person: as part of a
	// question, and for their turn to become one.
	Open, Queued int
	// Writable reports whether the store takes records; false, no call is made. Backlog is
	// how many records of what has happened already wait to be written.
	Writable bool
	Backlog  int
	// Unpushed is, by who gets the records as well, how many it has not acknowledged.
	Unpushed map[string]int64
}

// A Server is an upstream server at a moment.
type Server struct {
	Name      string
	State     string    // one of states
	Connected bool      // its tools can be called
	Since     time.Time // of the state
	Failures  int       // in a row
	Tools     int
}

// Questions are those that wait for people.
type Questions struct {
	Waiting int
	Oldest  time.Duration // how long the oldest has waited; 0 without any
}

// Workers are those of the sandbox.
type Workers struct {
	Live, Warm, Idle, Busy int
	Queued                 int // runs that wait for one
	Started                uint64
	// Killed are those ended before their time since the bridge began, by why.
	Killed map[string]uint64
}

// sinks are who may get the records as well.
var sinks = []string{"otlp", "webhook"}

// states are those of servers, in package upstream's words, and reasons why workers are
// killed in package sandbox's.
var (
	states = []string{"connecting", "connected", "unhealthy", "suspended", "trying", "idle", "failed", "parked", "needs-login", "disabled"}
	// Reasons are in every answer, so that a rate is right from the first kill on.
	reasons = []string{"cpu time", "wall time", "memory", "total memory", "recursion", "calls", "timers", "waiting", "arguments", "result", "cancelled", "died", "restless"}
)

// scrapeTime bounds how long the state may take.
const scrapeTime = 5 * time.Second

// A stateCollector reads the state at each scrape.
type stateCollector struct {
	read    func(context.Context) State
	servers *names

	mu          sync.Mutex
	connections map[string]connections // by server
}

// connections counts those of a server, as far as scrapes saw them.
type connections struct {
	since time.Time // of the last one
	count int
}

func newStateCollector(read func(context.Context) State, servers *names) *stateCollector {
	return &stateCollector{read: read, servers: servers, connections: make(map[string]connections)}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	serverUp          = desc("codemode_server_up", "Whether an upstream server's tools can be called: 1 or 0. One that is idle starts with the next call, and is up.", "server")
	serverState       = desc("codemode_server_state", "1 for the state that an upstream server is in, 0 for the others. While suspended, its breaker is open: it failed several calls in a row; trying, it is half-open.", "server", "state")
	serverFailures    = desc("codemode_server_failures", "Failures of an upstream server in a row: to connect and, connected, of calls.", "server")
	serverTools       = desc("codemode_server_tools", "Tools that an upstream server listed last.", "server")
	serverConnections = desc("codemode_server_connections_total", "Connections to an upstream server as scrapes found them: above 1, it was restarted or connected again.", "server")
	runsActive        = desc("codemode_runs_active", "Runs that are under way, those that wait for people included.")
	sessionsOpen      = desc("codemode_sessions", "Sessions of clients.")
	workersNow        = desc("codemode_workers", "Workers of the sandbox: warm (ready, never used), idle (kept by a session without a run), busy (running a script), changing (starting or ending).", "state")
	workersStarted    = desc("codemode_workers_started_total", "Workers that became ready.")
	workersKilled     = desc("codemode_workers_killed_total", "Workers that were ended before their time, by why: the limit that a script met, cancelled, died (the worker ended or broke the protocol), restless (it used the processor without a run).", "reason")
	runsQueued        = desc("codemode_runs_queued", "Runs that wait for a worker.")
	questionsWaiting  = desc("codemode_questions_waiting", "Questions in the store that wait for people. Bridges with the same store and configuration all say the same.")
	questionOldest    = desc("codemode_question_oldest_seconds", "How long the oldest question in the store has waited; 0 if none waits.")
	callsWaiting      = desc("codemode_calls_waiting", "Calls of this bridge that wait for people: asked, or queued until they may become a question.", "state")
	pushWaiting       = desc("codemode_push_waiting_records", "Records of the audit log that were not acknowledged yet by whoever gets them as well; all bridges with the store say alike.", "to")
	storeWritable     = desc("codemode_store_writable", "Whether the audit log takes records: 1 or 0. At 0 every call is refused.")
	storeBacklog      = desc("codemode_store_backlog_records", "Records of what has happened already that could not be written yet. Until they are, every call is refused.")
)

// Describe describes the metrics.
func (c *stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{serverUp, serverState, serverFailures, serverTools, serverConnections, runsActive, sessionsOpen, workersNow, workersStarted, workersKilled,
		runsQueued, questionsWaiting, questionOldest, callsWaiting, storeWritable, storeBacklog, pushWaiting} {
		to <- d
	}
}

// Collect reads the state.
func (c *stateCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime) // a collector is given none
	defer cancel()
	s := c.read(ctx)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	for _, one := range s.Servers {
		c.server(one, gauge, counter)
	}
	gauge(runsActive, float64(s.Runs))
	gauge(sessionsOpen, float64(s.Sessions))
	w := s.Workers
	gauge(workersNow, float64(w.Warm), "warm")
	gauge(workersNow, float64(w.Idle), "idle")
	gauge(workersNow, float64(w.Busy), "busy")
	gauge(workersNow, float64(max(0, w.Live-w.Warm-w.Idle-w.Busy)), "changing")
	counter(workersStarted, float64(w.Started))
	killed := make(map[string]uint64)
	for _, why := range reasons {
		killed[why] = 0
	}
	for why, n := range w.Killed {
		killed[word(why, reasons)] += n
	}
	for _, why := range slices.Sorted(maps.Keys(killed)) {
		counter(workersKilled, float64(killed[why]), why)
	}
	gauge(runsQueued, float64(w.Queued))
	if s.Questions != nil {
		gauge(questionsWaiting, float64(s.Questions.Waiting))
		gauge(questionOldest, s.Questions.Oldest.Seconds())
	}
	gauge(callsWaiting, float64(s.Open), "asked")
	gauge(callsWaiting, float64(s.Queued), "queued")
	for _, to := range slices.Sorted(maps.Keys(s.Unpushed)) {
		gauge(pushWaiting, float64(s.Unpushed[to]), word(to, sinks))
	}
	gauge(storeWritable, oneIf(s.Writable))
	gauge(storeBacklog, float64(s.Backlog))
}

// server gives the metrics of a server; it has none if its name has no label.
func (c *stateCollector) server(s Server, gauge, counter func(*prometheus.Desc, float64, ...string)) {
	name := c.servers.label(s.Name)
	if name != s.Name {
		return
	}
	gauge(serverUp, oneIf(s.Connected || s.State == "idle"), name)
	for _, state := range states {
		gauge(serverState, oneIf(s.State == state), name, state)
	}
	gauge(serverFailures, float64(s.Failures), name)
	gauge(serverTools, float64(s.Tools), name)
	c.mu.Lock()
	had := c.connections[name]
	if s.State == "connected" && s.Since.After(had.since) {
		had.since = s.Since
		had.count++
		c.connections[name] = had
	}
	c.mu.Unlock()
	counter(serverConnections, float64(had.count), name)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
