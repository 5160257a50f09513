package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replay"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/sandbox"
	"codemode-bridge/sandbox/worker"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two configurations share a store. Their bridges come, go and are killed,
// their files are edited, scripts run, people answer, and everybody tries to go
// on with everybody's runs, in random orders. One order again:
//
//	go test ./bridge -run 'TestBoundaries/^seed-17$'
//
// `make test-real` plays 10,000.
func TestBoundaries(t *testing.T) { playAll(t, 200) }

// playAll plays the schedules of so many seeds, until three have failed.
func playAll(t *testing.T, n int) {
	var failed atomic.Int32
	for seed := range n {
		t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) {
			t.Parallel()
			if failed.Load() >= 3 {
				return
			}
			defer func() {
				if t.Failed() {
					failed.Add(1)
				}
			}()
			synctest.Test(t, func(t *testing.T) { play(t, int64(seed)) })
		})
	}
}

const (
	pausedFor      = 40 * time.Second // people have to answer what a run away asks
	clientPatience = 2 * time.Second  // of clients
)

// A neighbourhood is the two configurations with all that they share.
type neighbourhood struct {
	*testing.T
	*fleet
	rand    *rand.Rand
	steps   []string
	configs []*configuration
	alive   []*process
	born    int
	scripts int
	wait    sync.WaitGroup // of clients and command lines that wait
	ctx     context.Context

	mu       sync.Mutex
	model    model
	runs     []string // in the order in which they began
	senders  map[int]*mcp.ClientSession
	codes    map[int]string
	script   map[string]int       // of a run
	sending  map[intended]string  // the run that is about to make a call
	secrets  map[string]string    // by run: what its client got with a paused answer
	overFor  map[string]time.Time // by run: since when it is cancelled
	problems []string
}

// A configuration is a file, as its owner has it at the moment.
type configuration struct {
	gate.Configuration
	phrasing
	away map[string]string // servers that were taken out
	// people are its approvers: in each configuration somebody called ann, whom
	// the other one does not know by her token.
	people *approval.Approvers
}

// A process is a bridge with what it has read of its configuration.
type process struct {
	*Server
	n       *neighbourhood
	name    string
	config  *configuration
	life    *life
	pool    *sandbox.Pool
	end     context.CancelFunc
	ends    []func() // what is to end before it
	ctx     context.Context
	clients []*mcp.ClientSession

	mu       sync.Mutex
	has      phrasing          // what it decides on
	upstream map[string]string // its servers, which change a moment earlier
}

// An intended call is one that a process has written down to send.
type intended struct {
	process   *process
	script, n int
}

func play(t *testing.T, seed int64) {
	n := &neighbourhood{T: t, fleet: newFleet(), rand: rand.New(rand.NewSource(seed)),
		model:   model{began: map[string]origin{}, noes: map[numbered]bool{}, yeses: map[numbered]consent{}, sent: map[numbered]bool{}},
		senders: map[int]*mcp.ClientSession{}, codes: map[int]string{}, script: map[string]int{}, sending: map[intended]string{},
		secrets: map[string]string{}, overFor: map[string]time.Time{}}
	var stop context.CancelFunc
	n.ctx, stop = context.WithCancel(t.Context())
	for _, name := range []string{"A", "B"} {
		c := &configuration{Configuration: gate.Configuration{ID: "id " + name, Name: name}, away: map[string]string{}}
		var err error
		c.people, err = approval.NewApprovers(approval.Realm{Configuration: c.ID}, []approval.Approver{{Name: "ann", Role: approval.Admin, Token: sha256.Sum256([]byte("ann of " + name))}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.policy, c.servers = policies()[0], map[string]string{"db": name + "'s db", "log": name + "'s log"}
		n.configs = append(n.configs, c)
		n.birth(c)
	}
	for range 8 + n.rand.Intn(13) {
		n.step()
		if n.rand.Intn(3) > 0 {
			synctest.Wait()
		}
		n.look()
	}
	synctest.Wait()
	stop()
	for len(n.alive) > 0 {
		n.close(n.alive[0])
	}
	n.wait.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.problems {
		t.Error(p)
	}
	if len(n.problems) > 0 {
		t.Logf("seed %d, after\n%s", seed, strings.Join(n.steps, "\n"))
	}
}

func (n *neighbourhood) log(format string, args ...any) {
	n.steps = append(n.steps, fmt.Sprintf(format, args...))
}

func (n *neighbourhood) problem(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.problemLocked(format, args...)
}

func (n *neighbourhood) problemLocked(format string, args ...any) {
	n.problems = append(n.problems, fmt.Sprintf("after step %d: ", len(n.steps))+fmt.Sprintf(format, args...))
}

// one returns one of several, zero if there is none.
func one[T any](r *rand.Rand, all []T) (some T) {
	if len(all) > 0 {
		some = all[r.Intn(len(all))]
	}
	return some
}

// A kind of step, and how often it is taken.
var stepKinds = []struct {
	weight int
	do     func(*neighbourhood, *process)
}{
	{6, (*neighbourhood).start}, {8, (*neighbourhood).answer}, {9, (*neighbourhood).resume}, {5, (*neighbourhood).edit}, {5, (*neighbourhood).load},
	{2, (*neighbourhood).kill}, {2, (*neighbourhood).restart}, {3, (*neighbourhood).suspend}, {4, (*neighbourhood).pass}, {1, (*neighbourhood).replayed},
	{1, (*neighbourhood).cancel}, {1, (*neighbourhood).revoke}, {1, (*neighbourhood).birthToo}, {2, (*neighbourhood).turn},
}

func (n *neighbourhood) step() {
	for _, p := range slices.Clone(n.alive) {
		if isClosed(p.life.ended) { // it has made its last commit
			n.log("%s is dead", p.name)
			n.close(p)
		}
	}
	for _, c := range n.configs {
		if n.processOf(c) == nil && n.rand.Intn(4) > 0 {
			n.birth(c)
		}
	}
	p := one(n.rand, n.alive)
	if p == nil {
		return
	}
	sum := 0
	for _, k := range stepKinds {
		sum += k.weight
	}
	at := n.rand.Intn(sum)
	for _, k := range stepKinds {
		if at -= k.weight; at < 0 {
			k.do(n, p)
			return
		}
	}
}

func (n *neighbourhood) processOf(c *configuration) *process {
	for _, p := range n.alive {
		if p.config == c {
			return p
		}
	}
	return nil
}

func (n *neighbourhood) birthToo(p *process) {
	if len(n.alive) < 4 {
		n.birth(p.config)
	}
}

// birth starts a bridge of a configuration.
func (n *neighbourhood) birth(c *configuration) {
	n.born++
	p := &process{n: n, name: fmt.Sprintf("%s%d", c.Name, n.born), config: c, life: newLife(0, true), has: c.phrasing, upstream: c.servers}
	n.log("%s starts, with %s and %v", p.name, c.policy.name, c.servers)
	pool, err := sandbox.NewPool(sandbox.Options{Serve: worker.Serve, Warm: -1})
	if err != nil {
		n.Fatal(err)
	}
	p.pool = pool
	store := watched{mortalStore{n.records, p.life}, p}
	requests := mortalRequests{n.requests, p.life}
	g := gate.New(p.has.view(), gate.Options{Caller: p, Recorder: store, Approvers: func() bool { return true }, Configuration: c.Configuration,
		Broker: approval.New(approval.Options{Store: requests, Bridge: p.name, Configuration: c.ID, Gone: n.isGone, Approvers: func() *approval.Approvers { return c.people },
			Limits: approval.Limits{Budget: 1000}})})
	p.Server = New(Options{Gate: g, Pool: pool, Upstreams: p, Version: "test", Logger: slog.New(slog.DiscardHandler),
		Journal: store, Bridge: p.name, Gone: n.isGone, KeepJournals: time.Hour})
	ctx, end := context.WithCancel(n.ctx)
	p.end = end
	if n.rand.Intn(2) == 0 {
		moved := make(chan struct{})
		go func() { defer close(moved); p.ResumeAnswered(ctx) }()
		p.ends = append(p.ends, func() { <-moved })
	}
	p.ctx = ctx
	n.alive = append(n.alive, p)
}

// aClient is one of the two clients that a bridge may have.
func (p *process) aClient() *mcp.ClientSession {
	k := p.n.rand.Intn(2)
	if k < len(p.clients) {
		return p.clients[k]
	}
	ours, theirs := mcp.NewInMemoryTransports()
	served := make(chan struct{})
	go func() { defer close(served); p.Serve(p.ctx, ours) }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "tester"}, nil).Connect(p.ctx, theirs, &mcp.ClientSessionOptions{ProtocolVersion: newestSessionProtocol})
	if err != nil {
		p.n.Fatal(err)
	}
	p.clients = append(p.clients, client)
	p.ends = append(p.ends, func() { client.Close(); <-served })
	return client
}

// close ends a bridge, in order if it is not dead.
func (n *neighbourhood) close(p *process) {
	dead := !p.life.alive()
	if dead {
		n.bury(p)
	}
	p.end()
	p.Close(0)
	for _, end := range p.ends {
		end()
	}
	p.pool.Close()
	n.bury(p)
	n.alive = slices.DeleteFunc(n.alive, func(q *process) bool { return q == p })
}

func (n *neighbourhood) bury(p *process) {
	n.fleet.mu.Lock()
	defer n.fleet.mu.Unlock()
	n.gone[p.name] = true
}

func (n *neighbourhood) restart(p *process) {
	synctest.Wait()
	n.log("%s ends", p.name)
	n.close(p)
}

// kill kills a bridge, now or in the middle of what it does next.
func (n *neighbourhood) kill(p *process) {
	synctest.Wait()
	l := p.life
	l.mu.Lock()
	if n.rand.Intn(2) == 0 {
		l.last, l.kept = l.commits+1+n.rand.Intn(6), n.rand.Intn(2) == 0
		l.mu.Unlock()
		n.log("%s will be killed at commit %d (kept: %v)", p.name, l.last, l.kept)
		return
	}
	if !l.dead {
		l.dead = true
		close(l.ended)
	}
	l.mu.Unlock()
	n.log("%s is killed", p.name)
	n.close(p)
}

// start sends a script.
func (n *neighbourhood) start(p *process) {
	n.scripts++
	id := n.scripts
	code := n.newScript(id)
	if n.rand.Intn(3) == 0 {
		n.log("%s is sent script %d by a program:\n%s", p.name, id, code)
		p.Start(n.ctx, "", code, nil, "ci") // an error is that of a bridge that dies
		return
	}
	c := p.aClient()
	n.log("%s is sent script %d by its client %d:\n%s", p.name, id, slices.Index(p.clients, c), code)
	n.mu.Lock()
	n.senders[id], n.codes[id] = c, code
	n.mu.Unlock()
	n.ask(c, "eval", map[string]any{"code": code}, nil)
}

// newScript writes a script that calls servers.
func (n *neighbourhood) newScript(id int) string {
	var calls []string
	for i := range 1 + n.rand.Intn(4) {
		server := one(n.rand, []string{"db", "db", "db", "store", "log"})
		calls = append(calls, fmt.Sprintf("codemode.%s__write({page: %d, number: %d, size: %d})", server, id, i+1, one(n.rand, []int{0, 0, 0, 1500})))
	}
	switch n.rand.Intn(3) {
	case 0: // one after the other
		return "await " + strings.Join(calls, "\nawait ")
	case 1: // and what is refused is none of its concern
		return "try { await " + strings.Join(calls, " } catch {}\ntry { await ") + " } catch {}"
	default:
		return "await Promise.allSettled([async () => " + strings.Join(calls, ", async () => ") + "].map(f => f()))"
	}
}

// ask has a client call a tool, and reads what it gets.
func (n *neighbourhood) ask(c *mcp.ClientSession, tool string, args map[string]any, then func(text string)) {
	ctx, cancel := context.WithTimeout(n.ctx, 3*time.Minute)
	n.wait.Go(func() {
		defer cancel()
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || len(res.Content) == 0 {
			return // the bridge is gone
		}
		text := res.Content[0].(*mcp.TextContent).Text
		var paused struct{ Status, Run, Resume string }
		if json.Unmarshal([]byte(text), &paused) == nil && paused.Status == "paused" {
			n.mu.Lock()
			if paused.Resume != "" {
				n.secrets[paused.Run] = paused.Resume
			}
			n.mu.Unlock()
		}
		if then != nil {
			then(text)
		}
	})
}

// answer has an approver answer a question, at any bridge.
func (n *neighbourhood) answer(p *process) {
	synctest.Wait()
	open, err := n.requests.Requests(n.ctx, approval.Filter{Open: time.Now()})
	if err != nil || len(open) == 0 {
		n.start(p)
		return
	}
	n.say(p, one(n.rand, open), n.rand.Intn(3) > 0)
}

// say brings a yes or a no to a question at a bridge, or a yes to some of its calls
// alone, and writes it into the model's books.
func (n *neighbourhood) say(p *process, e approval.StoredRequest, yes bool) {
	v := approval.Verdict{Approve: yes}
	switch {
	case !v.Approve:
		v.Reason = approval.Declined
	case e.Decision.Remember && n.rand.Intn(3) == 0:
		v.Scope = approval.SessionScope
	case len(e.Items) > 1 && n.rand.Intn(3) == 0:
		v.Rows = []int{one(n.rand, e.Items).Call}
	}
	about, refused := make(map[numbered]consent), make(map[numbered]bool)
	for _, i := range e.Items {
		var args struct{ Number int }
		if err := json.Unmarshal(i.Shown.JSON, &args); err != nil {
			n.Error(err)
		}
		call := numbered{e.Run, args.Number}
		if !v.About(i.Call).Approve {
			refused[call] = true
			continue
		}
		about[call] = consent{i.Key.Configuration, i.Key.Server, i.Key.Identity}
	}
	n.log("at %s, yes %s is said to %v, and no to %v of script %d", p.name, v.Scope, slices.Collect(maps.Keys(about)), slices.Collect(maps.Keys(refused)), n.scriptOf(e.Run))
	n.mu.Lock()
	yeses, grants := maps.Clone(n.model.yeses), slices.Clone(n.model.grants)
	for call, c := range about {
		n.model.yeses[call] = c // it stands in the books before anybody hears of it
		if v.Scope == approval.SessionScope {
			n.model.grants = append(n.model.grants, granted{c, e.Items[0].Key.Session})
		}
	}
	n.mu.Unlock()
	counts, kept := n.bring(p, e, v)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case kept, !p.life.alive(): // it may count later: the bridge died, before or after it was written
	case !counts:
		n.model.yeses, n.model.grants = yeses, grants
	default:
		maps.Copy(n.model.noes, refused)
	}
}

// turn has somebody say no to a run that is away, the policy change, and the run
// go on: whoever is asked again says yes.
func (n *neighbourhood) turn(p *process) {
	n.suspend(p)
	synctest.Wait()
	n.answerOf(p, false)
	p.config.policy = one(n.rand, policies())
	n.log("%s gets policy %s", p.config.Name, p.config.policy.name)
	n.load(p)
	n.resume(p)
	synctest.Wait()
	n.answerOf(p, true)
}

// answerOf answers what the runs of a bridge's configuration ask.
func (n *neighbourhood) answerOf(p *process, yes bool) {
	open, err := n.requests.Requests(n.ctx, approval.Filter{Open: time.Now()})
	if err != nil {
		n.Error(err)
	}
	for _, e := range open {
		if e.Items[0].Key.Configuration == p.config.ID {
			n.say(p, e, yes)
		}
	}
}

// bring has ann of a bridge's configuration bring a verdict there, and reports
// whether it counts, or is kept for the bridge that asked.
func (n *neighbourhood) bring(p *process, e approval.StoredRequest, v approval.Verdict) (counts, kept bool) {
	ann, _ := p.config.people.Authenticate("ann of " + p.config.Name)
	v, err := p.config.people.Sign(ann, e.Request, v, "page", time.Now())
	if err == nil {
		_, err = p.o.Gate.Settle(n.ctx, e.ID, e.Digest(), v)
	}
	if brought := (*approval.RelayedError)(nil); errors.As(err, &brought) {
		ctx, cancel := context.WithTimeout(n.ctx, 3*time.Second)
		defer cancel()
		_, err = p.o.Gate.Broker().Outcome(ctx, e.ID, brought.ID)
	}
	if err == nil && e.ConfigurationID() != p.config.ID {
		n.problem("what ann of %s said counts for a question of %s", p.config.Name, e.ConfigurationID())
	}
	return err == nil, errors.Is(err, approval.ErrUnjudged)
}

// resume has somebody try to go on with a run, in one of the ways that there
// are.
func (n *neighbourhood) resume(p *process) {
	n.mu.Lock()
	id := one(n.rand, n.runs)
	if ours := n.runsOfLocked(p.config); len(ours) > 0 && n.rand.Intn(2) == 0 {
		id = ours[len(ours)-1]
	}
	began := n.model.began[id]
	script, secret := n.script[id], n.secrets[id]
	owner, code := n.senders[script], n.codes[script]
	n.mu.Unlock()
	if id == "" {
		n.start(p)
		return
	}
	ours := began.config == p.config.ID
	foreign := func(how string, err error) {
		if err == nil && !ours {
			n.problem("%s of %s went on with the run of script %d of %s, by %s", p.name, p.config.Name, script, began.config, how)
		}
	}
	switch how := n.rand.Intn(6); how {
	case 0:
		n.log("%s goes on with script %d, for the command line", p.name, script)
		ctx, cancel := context.WithTimeout(n.ctx, time.Duration(1+n.rand.Intn(10))*time.Second)
		n.wait.Go(func() {
			defer cancel()
			_, err := p.Resume(ctx, id, "the command line", nil)
			foreign("the command line", err)
		})
	case 1:
		n.log("%s goes on with script %d, for the page", p.name, script)
		n.wait.Go(func() { foreign("the page", p.ResumeInBackground(n.ctx, id, "the page")) })
	case 2:
		if owner == nil || !slices.Contains(p.clients, owner) || secret == "" {
			n.start(p)
			return
		}
		n.log("%s is sent script %d again", p.name, script)
		n.ask(owner, "eval", map[string]any{"code": code}, nil)
	default:
		c := p.aClient()
		args := map[string]any{"run": id}
		if how == 3 && secret != "" {
			args["resume"] = secret
		}
		n.log("a client of %s goes on with script %d: owner %v, secret %v", p.name, script, c == owner, args["resume"] != nil)
		right := ours && owner != nil && (c == owner || args["resume"] != nil)
		n.ask(c, "eval_resume", args, func(text string) {
			if !right && !strings.Contains(text, "there is no run") && !strings.Contains(text, "shutting down") {
				n.problem("a stranger who asks %s for the run of script %d gets %s", p.name, script, text)
			}
		})
	}
}

// runsOfLocked are the runs of a configuration, the oldest first.
func (n *neighbourhood) runsOfLocked(c *configuration) (all []string) {
	for _, id := range n.runs {
		if n.model.began[id].config == c.ID {
			all = append(all, id)
		}
	}
	return all
}

// edit changes a configuration.
func (n *neighbourhood) edit(p *process) {
	c := p.config
	c.servers = maps.Clone(c.servers)
	switch n.rand.Intn(6) {
	default:
		c.policy = one(n.rand, policies())
		n.log("%s gets policy %s", c.Name, c.policy.name)
	case 3: // a server becomes another one, which may be the one of both
		name := one(n.rand, slices.Sorted(maps.Keys(c.servers)))
		if name == "" {
			return
		}
		c.servers[name] = one(n.rand, []string{c.Name + "'s db", c.Name + "'s other db", "the db of both"})
		n.log("%s's server %s is %s", c.Name, name, c.servers[name])
	case 4: // one goes, or comes back
		name := one(n.rand, []string{"db", "db", "log"})
		if is, ok := c.servers[name]; ok {
			c.away[name] = is
			delete(c.servers, name)
		} else if is, ok := c.away[name]; ok {
			c.servers[name] = is
		}
		n.log("%s's servers are %v", c.Name, c.servers)
	case 5: // one gets another name
		db, store := c.servers["db"], c.servers["store"]
		delete(c.servers, "db")
		delete(c.servers, "store")
		if db != "" {
			c.servers["store"] = db
		}
		if store != "" {
			c.servers["db"] = store
		}
		n.log("%s's servers are %v", c.Name, c.servers)
	}
	if n.rand.Intn(3) > 0 {
		n.load(p)
	}
}

// load has a bridge take over what its configuration says: its servers first,
// then what it decides on. Something else may happen in between.
func (n *neighbourhood) load(p *process) {
	synctest.Wait()
	next := p.config.phrasing
	n.log("%s takes over %s and %v", p.name, next.policy.name, next.servers)
	p.mu.Lock()
	p.upstream = next.servers
	p.mu.Unlock()
	if n.rand.Intn(3) == 0 {
		n.answer(p)
		synctest.Wait()
	}
	if n.rand.Intn(3) == 0 {
		n.start(p)
		synctest.Wait()
	}
	p.mu.Lock()
	p.has = next
	p.mu.Unlock()
	p.Replace(next.view())
}

// suspend has a bridge suspend what does nothing but wait.
func (n *neighbourhood) suspend(p *process) {
	synctest.Wait()
	p.roster.mu.Lock()
	live := slices.Collect(maps.Values(p.roster.live))
	p.roster.mu.Unlock()
	for _, r := range live {
		if r.suspend() {
			n.log("%s suspends script %d", p.name, n.scriptOf(r.id))
		}
	}
}

// pass lets time pass.
func (n *neighbourhood) pass(*process) {
	d := one(n.rand, []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, 3 * time.Second, 11 * time.Second})
	if n.rand.Intn(8) == 0 {
		d = 70 * time.Second
	}
	n.log("%v pass", d)
	time.Sleep(d)
}

// scriptOf says which script a run runs.
func (n *neighbourhood) scriptOf(run string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.script[run]
}

// anyRun picks a run that has begun, and says which script it runs.
func (n *neighbourhood) anyRun() (id string, script int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id = one(n.rand, n.runs)
	return id, n.script[id]
}

// replayed looks at a run again.
func (n *neighbourhood) replayed(p *process) {
	id, script := n.anyRun()
	if id == "" {
		return
	}
	synctest.Wait()
	n.mu.Lock()
	before, ours := len(n.model.sent), n.model.began[id].config == p.config.ID
	n.mu.Unlock()
	n.log("%s replays script %d", p.name, script)
	_, err := p.Replay(n.ctx, id, func(replay.Step) {})
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.model.sent) != before {
		n.problemLocked("a replay has made calls")
	}
	if err == nil && !ours {
		n.problemLocked("%s replayed another configuration's run", p.name)
	}
}

// cancel has somebody end a run.
func (n *neighbourhood) cancel(p *process) {
	id, script := n.anyRun()
	if id == "" {
		return
	}
	n.log("%s ends script %d", p.name, script)
	err := p.CancelRun(n.ctx, id, "bob")
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil || !p.life.alive() {
		return
	}
	if n.model.began[id].config != p.config.ID {
		n.problemLocked("%s ended another configuration's run", p.name)
	}
	n.overFor[id] = time.Now()
}

// revoke takes back a yes for a session.
func (n *neighbourhood) revoke(p *process) {
	synctest.Wait()
	grants, err := p.o.Gate.Broker().Grants(n.ctx)
	if err != nil || len(grants) == 0 {
		n.answer(p)
		return
	}
	g := one(n.rand, grants)
	n.log("at %s, the yes to %s is taken back", p.name, g.Script)
	if was, err := p.o.Gate.Broker().Revoke(n.ctx, g.ID); err != nil || !was {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := granted{consent{g.Key.Configuration, g.Key.Server, g.Key.Identity}, g.Key.Session}
	if i := slices.Index(n.model.grants, taken); i >= 0 {
		n.model.grants = slices.Delete(n.model.grants, i, i+1)
	}
}

// look finds runs where they do not belong.
func (n *neighbourhood) look() {
	n.mu.Lock()
	began, runs := maps.Clone(n.model.began), slices.Clone(n.runs)
	n.mu.Unlock()
	for _, p := range n.alive {
		for _, st := range p.Runs(n.ctx) {
			if b, ok := began[st.ID]; ok && b.config != p.config.ID {
				n.problem("%s lists a run of %s", p.name, b.config)
			}
		}
		for _, id := range runs {
			if began[id].config == p.config.ID {
				continue
			}
			if _, ok := p.Run(n.ctx, id); ok {
				n.problem("%s knows a run of %s", p.name, began[id].config)
			}
		}
	}
}

// Call is a server that is called: as upstream.Set does, it checks that it is
// the one that is meant.
func (p *process) Call(ctx context.Context, server, identity, tool string, raw json.RawMessage) (json.RawMessage, error) {
	p.mu.Lock()
	is, there := p.upstream[server]
	policy := p.has.policy
	p.mu.Unlock()
	if !there || identity != "" && is != identity || !p.life.alive() {
		return nil, &upstream.Error{Server: server, Tool: tool, Kind: upstream.UnknownServer, Err: errors.New("there is no such server any more")}
	}
	var args struct{ Page, Number, Size int }
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	p.n.mu.Lock()
	run := p.n.sending[intended{p, args.Page, args.Number}]
	if over, ok := p.n.overFor[run]; ok && time.Since(over) > time.Second {
		p.n.problemLocked("%s made a call of script %d, which was cancelled", p.name, args.Page)
	}
	c := reached{numbered: numbered{run, args.Number}, config: p.config.ID, server: server, identity: is, policy: policy}
	if wrong := p.n.model.wrong(c); wrong != "" {
		p.n.problemLocked("%s made call %d of script %d, at %s (%s), %s", p.name, args.Number, args.Page, server, is, wrong)
	}
	p.n.mu.Unlock()
	select {
	case <-time.After(time.Duration(args.Size) * time.Millisecond):
		return json.RawMessage(text("done")), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *process) Status() []upstream.Status { return nil }

// A watched store tells the model how runs begin, and which one is about to
// make a call.
type watched struct {
	mortalStore
	p *process
}

func (w watched) Record(ctx context.Context, all ...ledger.Record) error {
	for _, r := range all {
		if err := w.tell(r); err != nil {
			return err
		}
	}
	return w.mortalStore.Record(ctx, all...)
}

func (w watched) tell(r ledger.Record) error {
	n := w.p.n
	switch r.Event {
	case ledger.RunStarted:
		w.p.mu.Lock()
		has := w.p.has
		w.p.mu.Unlock()
		n.mu.Lock()
		n.model.began[r.Run] = origin{w.p.config.ID, r.Session, has.servers, has.policy}
		n.runs = append(n.runs, r.Run)
		var id int
		fmt.Sscanf(r.Script[strings.Index(r.Script, "{page: "):], "{page: %d", &id)
		n.script[r.Run] = id
		n.mu.Unlock()
	case ledger.Intent:
		var args struct{ Page, Number int }
		if err := json.Unmarshal(r.Args, &args); err != nil {
			return err
		}
		n.mu.Lock()
		n.sending[intended{w.p, args.Page, args.Number}] = r.Run
		n.mu.Unlock()
	}
	return nil
}
