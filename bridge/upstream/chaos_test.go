//go:build unix

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// A menace is a server that does one thing wrong all the time, and what must
// come of it.
type menace struct {
	name string
	spec Spec
	// want are texts each of which is in an error of its calls, or in what its
	// status says, before the test is over.
	want  []string
	works works
	pace  time.Duration // between two calls of one caller
}

// works says whether calls of a menace succeed too.
type works int

const (
	never works = iota
	may
	must // before the test is over
)

const anything = "any" // a fault that the seed chooses, each time another

// menaces are all the ways to go wrong, at stdio and over HTTP. The large
// results are of so many MB. What comes of some is a matter of chance and of
// time; these are among them only if chance is set.
func menaces(t *testing.T, large int, chance bool, pids string) []menace {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	huge := "huge-" + strconv.Itoa(large)
	const suspended = "no call is sent since"
	const handshake = "it did not answer the handshake within"
	const unlisted = "listing its tools: no answer within"
	hangs := script{Discover: []string{"hang"}, Initialize: []string{"hang"}}
	all := []menace{
		{"exits", script{Start: "exit"}.stdio(t), []string{"exit status 3", "the server is parked"}, never, often},
		{"not-there", Spec{Command: "no-such-program-anywhere"}, []string{"not found", "the server is parked"}, never, often},
		{"crash-initialize", script{Initialize: []string{"crash"}}.stdio(t), []string{"out of cheese", "the server is parked"}, never, often},
		{"crash-list", script{List: []string{"crash"}}.stdio(t), []string{"listing its tools", "the server is parked"}, never, often},
		{"crash-call", script{Call: []string{"crash"}}.stdio(t), []string{"while the call was under way", suspended}, never, often},
		{"crash-effect", script{Call: []string{"effect", ""}}.stdio(t), []string{"outcome unknown"}, may, often},
		{"crash-sometimes", script{Call: []string{"", "", "", "crash"}}.stdio(t), []string{"exit status 7"}, must, often},
		{"crash-half", script{Call: []string{"half"}}.stdio(t), []string{"outcome unknown", suspended}, never, often},
		{"crash-http", script{Call: []string{"", "crash"}}.http(t), []string{"outcome unknown", suspended}, may, often},
		{"crash-sse", script{Call: []string{"", "crash"}}.sse(t), []string{"outcome unknown", suspended}, may, often},
		{"half-http", script{Call: []string{"half"}}.http(t), []string{"outcome unknown", suspended}, never, often},
		{"half-json", script{Call: []string{"half"}, JSON: true}.http(t), []string{"outcome unknown", suspended}, never, often},
		{"hang-connect", hangs.stdio(t), []string{handshake}, never, often},
		{"hang-connect-http", hangs.http(t), []string{handshake}, never, often},
		{"silent-address", Spec{URL: "http://" + silent.Addr().String()}, []string{handshake}, never, often},
		{"hang-list", script{List: []string{"hang"}}.stdio(t), []string{unlisted}, never, often},
		{"hang-call", script{Call: []string{"hang"}}.stdio(t), []string{"no answer within", suspended}, never, often},
		{"hang-call-http", script{Call: []string{"hang"}}.http(t), []string{"no answer within", suspended}, never, often},
		{"slow", script{Call: []string{"slow-20", ""}}.stdio(t), []string{"no answer within"}, may, often},
		{"slow-http", script{Call: []string{"slow-20"}}.http(t), []string{"no answer within", suspended}, never, often},
		{"large", script{Call: []string{huge}}.stdio(t), []string{"larger than the limit of"}, never, seldom},
		{"large-http", script{Call: []string{huge}}.http(t), []string{"larger than the limit of"}, never, seldom},
		{"deep", script{Call: []string{"deep-200"}}.stdio(t), []string{"nested more than", suspended}, never, often},
		{"banner", script{Start: "banner"}.stdio(t), nil, must, often},
		{"garbage", script{Call: []string{"garbage"}}.stdio(t), nil, must, often},
		{"wrong-ids", script{Call: []string{"wrongid", "noid", "twice", "dup"}}.stdio(t), nil, must, often},
		{"many-tools", script{Tools: 10_000}.stdio(t), nil, must, often},
		{"changing", script{List: []string{"change"}}.stdio(t), []string{"no tool of this name"}, never, often},
		{"storm", script{Start: "storm"}.stdio(t), nil, must, often},
		{"notifies", script{Call: []string{"notify-1"}}.stdio(t), nil, must, seldom},
		{"asks", script{Call: []string{"ask-500"}}.stdio(t), nil, must, seldom},
		{"stderr", script{Start: "stderr"}.stdio(t), nil, must, often},
		{"family", script{Start: "family:" + pids}.stdio(t), nil, must, often},
		{"orphans", script{Start: "orphans:" + pids, Call: []string{"", "", "crash"}}.stdio(t), []string{"exit status 7"}, must, often},
		{"refused", Spec{URL: "http://127.0.0.1:1"}, []string{"connection refused", suspended}, never, often},
		{"login", script{Status: 401}.http(t), []string{"HTTP status 401"}, never, often},
		{"status", script{Status: 503}.http(t), []string{"503", suspended}, never, often},
		{"listen-lost", script{Modern: true, Listen: []string{"drop", "refuse", ""}}.http(t), nil, must, often},
		{"unlisted", script{List: []string{"error"}}.http(t), []string{"does not know the request that lists them"}, never, often},
	}
	if chance {
		// One that keeps a processor busy for seconds before it is given up, alone
		// in TestWhatIsWrongIsSaid; one that works after ten seconds only; and
		// those that a seed chooses.
		all = append(all, menace{"junk", script{Start: "yes"}.stdio(t), []string{`such as "y"`}, never, often})
		all = append(all, menace{"listen-hang", script{Modern: true, Listen: []string{"hang"}}.http(t), nil, must, often})
		for seed := range uint64(2) {
			sc := script{Seed: seed + 1, Discover: []string{anything}, Initialize: []string{anything}, List: []string{anything}, Call: []string{anything}}
			all = append(all, menace{fmt.Sprint("seed-", seed), sc.stdio(t), []string{"no answer within"}, must, often},
				menace{fmt.Sprint("seed-http-", seed), sc.http(t), []string{"no answer within"}, must, often})
		}
	}
	for i := range all {
		spec := &all[i].spec
		spec.Name = all[i].name
		spec.Limits.ConnectTimeout, spec.Limits.Timeout, spec.Limits.MaxReply = time.Minute, 2*time.Minute, 2<<20
		// Only those that must run out of time have little of it: what works is
		// never late, however busy the machine is.
		for _, want := range all[i].want {
			switch {
			case want == handshake:
				spec.Limits.ConnectTimeout = time.Second
			case want == unlisted, all[i].name == "junk": // which must have started in it
				spec.Limits.ConnectTimeout = 10 * time.Second
			case want == "no answer within":
				spec.Limits.ConnectTimeout, spec.Limits.Timeout = 5*time.Second, 300*time.Millisecond
			}
		}
	}
	return all
}

// The time between two calls: of the healthy server, and of each of the two
// callers of a menace.
const (
	pace   = 2 * time.Millisecond
	often  = 50 * time.Millisecond
	seldom = 500 * time.Millisecond
)

// A tally is what came of the calls of one server.
type tally struct {
	mu     sync.Mutex
	seen   map[string]bool // the texts wanted
	calls  int
	worked int
}

// missing is what the tally of a menace still lacks, empty for nothing.
func (c *tally) missing(m menace) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, want := range m.want {
		if !c.seen[want] {
			return fmt.Sprintf("%s: an error with %q", m.name, want)
		}
	}
	if m.works == must && c.worked == 0 {
		return m.name + ": a call that succeeds"
	}
	return ""
}

func (c *tally) note(m menace, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, want := range m.want {
		if strings.Contains(text, want) {
			c.seen[want] = true
		}
	}
}

// chaos runs all menaces at once beside a healthy server, until each has come to
// what must come of it, and for the given time; if that is not 0 it logs how
// long the healthy server's calls took. No call of it fails, its process stays,
// and in the end nothing is left of anything.
func chaos(t *testing.T, o Options, d time.Duration, large int) {
	before := goleak.IgnoreCurrent()
	open := len(descriptors())
	t.Cleanup(func() { // after the fakes over HTTP have ended
		goleak.VerifyNone(t, before)
		eventually(t, "without its pipes and connections", func() bool { return len(descriptors()) <= open })
	})
	pids := filepath.Join(t.TempDir(), "pids")
	good := script{}.stdio(t)
	good.Name = "good"
	s := New(o)
	defer s.Close()
	s.Apply([]Spec{good})
	connected(t, s)
	quiet := paced(t, s, time.After(d/10))
	was := s.status("good")

	all := menaces(t, large, d > 0, pids)
	specs := []Spec{good}
	for _, m := range all {
		specs = append(specs, m.spec)
	}
	s.Apply(specs)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var callers sync.WaitGroup
	tallies := make([]*tally, len(all))
	for i, m := range all {
		tallies[i] = &tally{seen: map[string]bool{}}
		for range 2 {
			callers.Go(func() { pester(ctx, t, s, m, tallies[i]) })
		}
	}
	var loud []time.Duration
	over, watched := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(watched)
		loud = paced(t, s, over)
	}()
	most := settleAll(t, s, all, tallies, d)
	close(over)
	<-watched
	if st := s.status("good"); st.State != Connected || st.PID != was.PID || st.Since != was.Since || st.Err != "" {
		t.Errorf("the healthy server was %+v\nand is %+v", was, st)
	}
	stop()
	callers.Wait()
	total, children, began := 0, descendants(), time.Now()
	for _, c := range tallies {
		total += c.calls
	}
	s.Close()
	t.Logf("%d menaces with %d calls, %d calls of the healthy server; heap at most %d MB; closed in %v with %d processes",
		len(all), total, len(loud), most>>20, time.Since(began).Round(time.Millisecond), len(children))
	if d > 0 {
		t.Logf("the healthy server's p50 was %v, quiet %v; its p99 %v, quiet %v", percentile(loud, 50), percentile(quiet, 50), percentile(loud, 99), percentile(quiet, 99))
	}

	eventually(t, "without processes", func() bool { return len(descendants()) == 0 })
	data, _ := os.ReadFile(pids)
	for _, line := range strings.Fields(string(data)) {
		pid, _ := strconv.Atoi(line)
		eventually(t, "without grandchildren", func() bool { return !alive(pid) })
	}
	if len(data) == 0 {
		t.Error("there were no grandchildren")
	}
}

// paced calls the healthy server until over, and returns how long each call
// took, sorted. None fails.
func paced(t *testing.T, s *Set, over <-chan time.Time) (latencies []time.Duration) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		began := time.Now()
		result, err := s.Call(t.Context(), "good", "", "exact", nil)
		latencies = append(latencies, time.Since(began))
		if err != nil || string(result) != exact {
			t.Errorf("the healthy server gave %.200s and error %v", result, err)
		}
		select {
		case <-over:
			slices.Sort(latencies)
			return latencies
		case <-tick.C:
		}
	}
}

// settleAll waits until d has passed and every menace has come to what must
// come of it. It returns the largest heap on the way.
func settleAll(t *testing.T, s *Set, all []menace, tallies []*tally, d time.Duration) (most uint64) {
	began, settled, last := time.Now(), map[string]time.Duration{}, ""
	end, patience := time.Now().Add(d), time.Now().Add(d+4*time.Minute)
	for {
		most = max(most, inUse())
		statuses := map[string]Status{}
		for _, st := range s.Status() {
			statuses[st.Name] = st
		}
		missing := ""
		for i, m := range all {
			st := statuses[m.name]
			tallies[i].note(m, st.Err)
			if what := tallies[i].missing(m); what != "" {
				missing = fmt.Sprintf("%s; it is %+v", what, st)
			} else if settled[m.name] == 0 {
				settled[m.name] = time.Since(began)
				last = m.name
			}
		}
		switch now := time.Now(); {
		case now.After(end) && missing == "":
			t.Logf("the last to come to its end was %s, after %v", last, settled[last].Round(time.Millisecond))
			return most
		case now.After(patience):
			t.Errorf("there never was %s", missing)
			return most
		}
		time.Sleep(250 * time.Millisecond) // looking takes time from those who are measured
	}
}

func (s *Set) status(name string) Status {
	for _, st := range s.Status() {
		if st.Name == name {
			return st
		}
	}
	return Status{}
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*p/100)].Round(time.Microsecond)
}

// pester calls a menace again and again. Each call ends with the exact result or
// an error of a known kind.
func pester(ctx context.Context, t *testing.T, s *Set, m menace, c *tally) {
	kinds := []ErrorKind{Unavailable, Timeout, Canceled, BadReply, TooLarge, UnknownTool}
	tick := time.NewTicker(m.pace)
	defer tick.Stop()
	for ctx.Err() == nil {
		if c.missing(m) == "" {
			tick.Reset(seldom)
		}
		result, err := s.Call(ctx, m.name, "", "exact", nil)
		var e *Error
		switch {
		case err == nil && string(result) != exact:
			t.Errorf("%s gave the result %.200s", m.name, result)
		case err == nil && m.works == never:
			t.Errorf("%s gave a result", m.name)
		case err != nil && (!errors.As(err, &e) || !slices.Contains(kinds, e.Kind)):
			t.Errorf("%s gave the error %v", m.name, err)
		}
		c.mu.Lock()
		c.calls++
		if err == nil {
			c.worked++
		}
		c.mu.Unlock()
		if err != nil {
			c.note(m, err.Error())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// descriptors are the pipes and connections that this process has open.
func descriptors() (found []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + entry.Name()) // none is that of the listing itself
		if strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "socket:") {
			found = append(found, entry.Name()+" "+to)
		}
	}
	return found
}

// descendants are the processes that carry the marker of any child of ours.
func descendants() []string {
	if runtime.GOOS != "linux" {
		return nil
	}
	var found []string
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err == nil && strings.Contains(string(env), fakeRun+"="+strconv.Itoa(os.Getpid())+"\x00") {
			found = append(found, entry.Name())
		}
	}
	return found
}

// All at once, until each has done its worst; see TestLongChaos for longer.
func TestChaos(t *testing.T) {
	chaos(t, Options{RetryMin: 20 * time.Millisecond, RetryMax: time.Second, Suspend: 200 * time.Millisecond, Poll: time.Second}, 0, 3)
}
