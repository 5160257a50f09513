package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A scale says how much of bridges with one store is measured (-replicas).
type scale struct {
	sessions  int           // that bridges have together
	calls     int           // one after the other
	questions int           // across bridges
	load      time.Duration // of each load
	page      string        // the page whose table is replaced; none if empty
}

// atOnceLoad is how many sessions of a load call at the same time.
const atOnceLoad = 8

// questionTarget bounds how long a question and its verdict are under way between bridges.
const questionTarget = 100 * time.Millisecond

const noteOnce = `return await codemode.n__note({})`

// replicas measures what a store in PostgreSQL costs, what one, two and three bridges do
// with it, and how long questions and verdicts take between them. It writes Markdown to w,
// and returns how many targets were missed.
func (m *machine) replicas(ctx context.Context, w io.Writer, s scale) (missed int, err error) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return 0, errors.New("-replicas reads processor time and memory in /proc, which is not there")
	}
	if m.bridge, err = filepath.Abs(m.bridge); err != nil {
		return 0, err
	}
	if m.scratch, err = os.MkdirTemp("", "bench-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.scratch)) }()
	n, err := newNoter()
	if err != nil {
		return 0, err
	}
	defer n.stop()
	d, err := startDatabase()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()

	var out strings.Builder
	about, err := d.about(ctx, s)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(&out, "%s\n\n", about)
	for _, part := range []func(context.Context, *database, *noter, scale) (*grid, error){m.stores, m.crowds} {
		g, err := part(ctx, d, n, s)
		if err != nil {
			return 0, err
		}
		g.print(&out)
	}
	g, missed, err := m.acrossBridges(ctx, d, n, s)
	if err != nil {
		return 0, err
	}
	g.print(&out)
	text := strings.TrimSpace(out.String()) + "\n"
	if s.page != "" {
		if err := replaceMeasured(s.page, measuredBegins, text); err != nil {
			return missed, err
		}
	}
	_, err = io.WriteString(w, text)
	return missed, err
}

// about says on what was measured, and what a commit costs there without a bridge.
func (d *database) about(ctx context.Context, s scale) (string, error) {
	var version string
	if err := d.sql.QueryRowContext(ctx, "SHOW server_version").Scan(&version); err != nil {
		return "", err
	}
	version, _, _ = strings.Cut(version, " ")
	took, err := d.commits(ctx, max(s.calls, 20))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Everything on one machine: %s, PostgreSQL %s with `fsync`, the servers that are called, and the clients. A commit of one row by itself takes %s there (p99 %s).",
		thisMachine(), version, show(quantile(took, 50)), show(quantile(took, 99))), nil
}

// stores compares a call that is recorded in PostgreSQL with one in SQLite and one that is
// not recorded.
func (m *machine) stores(ctx context.Context, d *database, n *noter, s scale) (g *grid, err error) {
	names := []string{"no store", "SQLite", "PostgreSQL"}
	more := []map[string]any{{"audit": map[string]any{"enabled": false}}, nil, d.inDatabase("alone")}
	list := make([]*site, len(more))
	one, hundred := make([]func() error, len(more)), make([]func() error, len(more))
	for i := range more {
		fmt.Fprintf(os.Stderr, "starting a bridge: %s\n", names[i])
		config := fleetConfig(n, more[i])
		if list[i], err = m.site(ctx, config); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, list[i].close()) }()
		p, err := list[i].plain(ctx)
		if err != nil {
			return nil, err
		}
		one[i] = func() error { return p.note(ctx, noteOnce) }
		hundred[i] = func() error {
			return p.note(ctx, `let r; for (let i = 0; i < 100; i++) r = await codemode.n__note({}); return r`)
		}
	}
	g = &grid{heading: "A call that may write, by where it is recorded", columns: names}
	taken, err := interleave(s.calls, one...)
	if err != nil {
		return nil, err
	}
	g.durations("1 call in 1 eval, p50", taken, func(all []time.Duration) time.Duration { return quantile(all, 50) })
	g.durations("the same, p99", taken, func(all []time.Duration) time.Duration { return quantile(all, 99) })
	if taken, err = interleave(max(s.calls/20, 2), hundred...); err != nil {
		return nil, err
	}
	g.durations("a call, of 100 in sequence in 1 eval, p50", taken, func(all []time.Duration) time.Duration { return quantile(all, 50) / 100 })
	loads := make([]*loaded, len(list))
	for i := range list {
		fmt.Fprintf(os.Stderr, "a load: %s\n", names[i])
		if loads[i], err = crowd(ctx, list[i:i+1], d, "alone", atOnceLoad, s.load); err != nil {
			return nil, err
		}
	}
	g.loads(fmt.Sprintf("%d sessions at once: evals with 1 call a second", atOnceLoad), loads, func(l *loaded) string { return fmt.Sprintf("%.0f", l.rate()) })
	g.loads("of these, p99", loads, func(l *loaded) string { return show(quantile(l.took, 99)) })
	g.loads("processor time of an eval: bridge and worker", loads, func(l *loaded) string { return show(l.each(l.bridges)) })
	g.loads("processor time of an eval: the database", loads[2:], func(l *loaded) string { return show(l.each(l.database)) })
	return g, nil
}

// note runs a script that makes calls.
func (s *plainSession) note(ctx context.Context, code string) error {
	answer, err := s.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":%q}}}`, code))
	if err == nil && !bytes.Contains(answer, []byte(`"result":"noted"`)) {
		err = fmt.Errorf("eval answered %s", answer)
	}
	return err
}

// crowds lets one, two and three bridges have many sessions, which call in turn.
func (m *machine) crowds(ctx context.Context, d *database, n *noter, s scale) (*grid, error) {
	names := []string{"1 bridge", "2 bridges", "3 bridges"}
	loads := make([]*loaded, len(names))
	for i := range loads {
		fmt.Fprintf(os.Stderr, "%s, %d sessions\n", names[i], s.sessions)
		schema := fmt.Sprintf("crowd%d", i+1)
		list, err := m.sites(ctx, i+1, fleetConfig(n, d.inDatabase(schema)))
		if err != nil {
			return nil, err
		}
		loads[i], err = crowd(ctx, list, d, schema, s.sessions, s.load)
		if err := errors.Join(err, closeSites(list)); err != nil {
			return nil, err
		}
	}
	g := &grid{heading: fmt.Sprintf("%d sessions, %d of which call at once, each one call in an eval", s.sessions, atOnceLoad), columns: names}
	for _, row := range []struct {
		what string
		of   func(*loaded) string
	}{
		{"evals a second", func(l *loaded) string { return fmt.Sprintf("%.0f", l.rate()) }},
		{"an eval, p50", func(l *loaded) string { return show(quantile(l.took, 50)) }},
		{"an eval, p99", func(l *loaded) string { return show(quantile(l.took, 99)) }},
		{"processor time of an eval: bridges and workers", func(l *loaded) string { return show(l.each(l.bridges)) }},
		{"processor time of an eval: the database", func(l *loaded) string { return show(l.each(l.database)) }},
		{"records of an eval", func(l *loaded) string { return fmt.Sprintf("%.1f", float64(l.records)/float64(len(l.took))) }},
		{"records in a commit", func(l *loaded) string { return fmt.Sprintf("%.1f", float64(l.records)/float64(max(l.commits, 1))) }},
		{"commits of records a second", func(l *loaded) string { return fmt.Sprintf("%.0f", float64(l.commits)/l.lasted.Seconds()) }},
		{"bytes kept of a record, with indexes", func(l *loaded) string { return fmt.Sprint(l.bytes / max(l.records, 1)) }},
		{"write-ahead log of an eval", func(l *loaded) string { return showBytes(l.wal / int64(len(l.took))) }},
		{"connections of a bridge", func(l *loaded) string { return fmt.Sprintf("%.1f", float64(l.connections)/float64(l.sites)) }},
		{"resident, a bridge before", func(l *loaded) string { return showBytes(l.before / int64(l.sites)) }},
		{"more after it, of each session", func(l *loaded) string { return showBytes(max(0, l.after-l.before) / int64(l.sessions)) }},
	} {
		g.loads(row.what, loads, row.of)
	}
	return g, nil
}

// A loaded is what a load has shown.
type loaded struct {
	sites, sessions   int
	lasted            time.Duration
	took              []time.Duration // of each eval, in order of length
	bridges, database time.Duration   // processor time
	records, commits  int64
	bytes, wal        int64 // of the log's tables, and written ahead
	connections       int64
	before, after     int64 // resident, of the bridges alone
}

func (l *loaded) rate() float64 { return float64(len(l.took)) / l.lasted.Seconds() }

// each is the part of one eval.
func (l *loaded) each(all time.Duration) time.Duration { return all / time.Duration(len(l.took)) }

// crowd opens sessions, spread over bridges, and lets them call in turn.
func crowd(ctx context.Context, list []*site, d *database, schema string, sessions int, lasts time.Duration) (l *loaded, err error) {
	l = &loaded{sites: len(list), sessions: sessions}
	if l.before, err = residentOf(list); err != nil {
		return nil, err
	}
	all := make([]*plainSession, sessions)
	for i := range all {
		if all[i], err = list[i%len(list)].plain(ctx); err != nil {
			return nil, err
		}
	}
	for i := range min(len(all), atOnceLoad) { // the first call of a bridge connects to the server
		if err := all[i].note(ctx, noteOnce); err != nil {
			return nil, err
		}
	}
	counts := func(add int64) error {
		processor, err := processorOf(list)
		if err != nil {
			return err
		}
		server, err := d.processor()
		if err != nil {
			return err
		}
		l.bridges += time.Duration(add) * processor
		l.database += time.Duration(add) * server
		for query, into := range map[string]*int64{
			"SELECT count(*) FROM " + schema + ".log":                                          &l.records,
			"SELECT changes FROM " + schema + ".heads WHERE name = 'log'":                      &l.commits,
			"SELECT pg_total_relation_size('" + schema + ".log')":                              &l.bytes,
			"SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint":                      &l.wal,
			"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'codemode-bridge'": &l.connections,
		} {
			n, err := d.number(ctx, query)
			if err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
			if into == &l.connections {
				*into = n
				continue
			}
			*into += add * n
		}
		return nil
	}
	if err := counts(-1); err != nil {
		return nil, err
	}
	start := time.Now()
	if l.took, err = inTurn(all, atOnceLoad, func(s *plainSession) error { return s.note(ctx, noteOnce) }, func() bool { return time.Since(start) < lasts }); err != nil {
		return nil, err
	}
	l.lasted = time.Since(start)
	if err := counts(1); err != nil {
		return nil, err
	}
	l.after, err = residentOf(list)
	return l, err
}

// inTurn has each of all do something in turn, some at once, as long as more says, and
// returns how long each took, in order of length.
func inTurn[T any](all []T, atOnce int, do func(T) error, more func() bool) (took []time.Duration, err error) {
	free := make(chan T, len(all)) // those that have waited longest first
	for _, one := range all {
		free <- one
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range min(atOnce, len(all)) {
		wait.Go(func() {
			for {
				mu.Lock()
				over := err != nil || !more()
				mu.Unlock()
				if over {
					return
				}
				one := <-free
				start := time.Now()
				failed := do(one)
				mu.Lock()
				took, err = append(took, time.Since(start)), errors.Join(err, failed)
				mu.Unlock()
				free <- one
			}
		})
	}
	wait.Wait()
	slices.Sort(took)
	return took, err
}

// processorOf is the processor time of bridges and of all their workers.
func processorOf(list []*site) (sum time.Duration, err error) {
	for _, s := range list {
		one, err := processorTime(s.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// residentOf is the memory of bridges without their workers.
func residentOf(list []*site) (sum int64, err error) {
	for _, s := range list {
		one, err := residentBytes(s.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// acrossBridges measures how soon a question of one bridge is seen at another, and how soon
// a verdict there lets the call go on. The second load is of the other sessions.
func (m *machine) acrossBridges(ctx context.Context, d *database, n *noter, s scale) (g *grid, missed int, err error) {
	fmt.Fprintln(os.Stderr, "questions across bridges")
	list, err := m.sites(ctx, 3, fleetConfig(n, d.inDatabase("across")))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, closeSites(list)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages := make([]<-chan shown, len(list))
	for i, one := range list {
		if pages[i], err = one.questions(ctx); err != nil {
			return nil, 0, err
		}
	}
	quiet, err := askAll(ctx, list, pages, n, "quiet", s.questions)
	if err != nil {
		return nil, 0, err
	}
	all := make([]*plainSession, s.sessions)
	for i := range all {
		if all[i], err = list[i%len(list)].plain(ctx); err != nil {
			return nil, 0, err
		}
	}
	var over sync.WaitGroup
	asked := make(chan struct{})
	over.Go(func() {
		_, _ = inTurn(all, 2, func(p *plainSession) error { return p.note(ctx, noteOnce) }, func() bool { // what fails is slow, too
			select {
			case <-asked:
				return false
			default:
				return true
			}
		})
	})
	busy, err := askAll(ctx, list, pages, n, "busy", s.questions)
	close(asked)
	over.Wait()
	if err != nil {
		return nil, 0, err
	}
	g = &grid{heading: fmt.Sprintf("A question of one bridge, answered at another; %d of them", s.questions), columns: []string{"p50", "p99", "target"}}
	for _, row := range []struct {
		what   string
		of     []answered
		took   func(answered) time.Duration
		target bool
	}{
		{"from the call until another bridge shows its question", quiet, func(a answered) time.Duration { return a.shown }, false},
		{"from a yes there until the call is made", quiet, func(a answered) time.Duration { return a.made }, false},
		{"question to verdict: both", quiet, answered.both, true},
		{fmt.Sprintf("both, while 2 of %d sessions call", s.sessions), busy, answered.both, false},
	} {
		taken := make([]time.Duration, len(row.of))
		for i, a := range row.of {
			taken[i] = row.took(a)
		}
		slices.Sort(taken)
		p99, verdict := quantile(taken, 99), ""
		if row.target {
			verdict = fmt.Sprintf("p99 below %s: ok", show(questionTarget))
			if p99 >= questionTarget {
				verdict = fmt.Sprintf("p99 below %s: MISS", show(questionTarget))
				missed++
			}
		}
		g.rows = append(g.rows, []string{row.what, show(quantile(taken, 50)), show(p99), verdict})
	}
	return g, missed, nil
}

// An answered is how long a question and its verdict were under way.
type answered struct{ shown, made time.Duration }

func (a answered) both() time.Duration { return a.shown + a.made }

// askAll has runs at each bridge in turn ask, and answers them at the next one.
func askAll(ctx context.Context, list []*site, pages []<-chan shown, n *noter, name string, times int) (all []answered, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for i := range times {
		at, there := i%len(list), (i+1)%len(list)
		key := fmt.Sprintf("%s %d", name, i)
		var run struct{ Run string }
		code := fmt.Sprintf(`await codemode.n__note({key: %q}); return await codemode.n__ask({key: %q})`, key, key+" asked")
		if err := list[at].do(ctx, "POST", "/api/runs?wait=0s", map[string]any{"code": code}, &run); err != nil {
			return nil, err
		}
		var q shown
		for q.run != run.Run {
			select {
			case q = <-pages[there]:
			case <-ctx.Done():
				return nil, fmt.Errorf("the question of run %s is not shown: %w", run.Run, ctx.Err())
			}
		}
		began, err := n.await(ctx, key)
		if err != nil {
			return nil, err
		}
		var request struct{ Digest string }
		if err := list[there].do(ctx, "GET", "/api/pending/"+q.id, nil, &request); err != nil {
			return nil, err
		}
		said := time.Now()
		if err := list[there].do(ctx, "POST", "/api/decide/"+q.id, map[string]any{"decision": "approve", "digest": request.Digest}, nil); err != nil {
			return nil, err
		}
		made, err := n.await(ctx, key+" asked")
		if err != nil {
			return nil, err
		}
		all = append(all, answered{q.at.Sub(began), made.Sub(said)})
	}
	return all, nil
}
