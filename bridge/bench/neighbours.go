package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// atOnce is how many scripts an attack runs at once that is many calls.
const atOnce = 4

// atOnceAfter is how soon the next eval is answered of a session whose script was stopped: what a start of the bridge takes at
// most, since the session may have to wait for another worker and for what its script had begun.
const atOnceAfter = 100 * time.Millisecond

// An attack is what a session does beside another one.
type attack struct {
	what, code string
	atOnce     int    // scripts that it runs at once
	ends       string // what the script returns; empty if it does not end by itself
}

var attacks = []attack{
	{"4 x 1,000 searches", `return (await Promise.all(Array.from({length: 1000}, (_, i) => codemode.search_tools({query: "ticket " + i})))).length`, atOnce, `1000`},
	{"4 x 1,000 calls", `return (await Promise.all(Array.from({length: 1000}, (_, id) => codemode.bench__get_issue_0({id})))).length`, atOnce, `1000`},
	{"a loop", `for (;;);`, 1, ""},
	{"memory", `const a = []; for (;;) a.push(new Array(1000).fill({}))`, 1, ""},
}

// neighbours compares the slowest evals of a session that is alone with those of one
// beside which another session does all it can, and measures how soon that one is
// answered afterwards.
func (m *machine) neighbours(ctx context.Context, t *table) (err error) {
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		return err
	}
	e, err := m.serve(ctx, map[string]any{"bench": map[string]any{"command": self, "args": []string{upstreamArg, "-tools", "100"}}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	list, err := e.sessions(ctx, 2)
	if err != nil {
		return err
	}
	innocent, hostile := list[0], list[1]
	if err := m.busyFloor(ctx, t, innocent); err != nil {
		return err
	}
	eval := func() error { return innocent.eval(ctx, `return 1`, `1`) }
	for _, a := range attacks {
		if a.ends != "" { // an attack that fails at once would be none
			if err := hostile.eval(ctx, a.code, a.ends); err != nil {
				return fmt.Errorf("%s: %w", a.what, err)
			}
		}
		quiet, err := p99(eval, nil)
		if err != nil {
			return err
		}
		stop := hostile.attack(ctx, a)
		beside, err := p99(eval, nil)
		stop()
		if err != nil {
			return fmt.Errorf("an eval beside %s: %w", a.what, err)
		}
		t.times("p99 of an eval, quiet and beside "+a.what, quiet, beside, target{ratio: 2})
		start := time.Now()
		if err := hostile.eval(ctx, `return 1`, `1`); err != nil {
			return fmt.Errorf("the eval after %s: %w", a.what, err)
		}
		t.times("  its own next eval, after "+a.what, 0, time.Since(start), target{time: atOnceAfter})
	}
	return closeAll(list)
}

// busyFloor measures what the machine itself costs a session beside which others compute: a direct call, and an eval,
// while as many processes as an attack has workers use the processor and nothing of the bridge. It is no
// better for a session whose neighbour uses the bridge too.
func (m *machine) busyFloor(ctx context.Context, t *table, innocent *peer) (err error) {
	direct, err := m.startUpstream(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	call := func() error {
		_, err := direct.call(ctx, "noop", map[string]any{})
		return err
	}
	eval := func() error { return innocent.eval(ctx, `return 1`, `1`) }
	var quiet, beside [2]time.Duration
	measure := func(to *[2]time.Duration) (err error) {
		if to[0], err = p99(call, nil); err == nil {
			to[1], err = p99(eval, nil)
		}
		return err
	}
	if err := measure(&quiet); err != nil {
		return err
	}
	stop, err := compute(ctx, atOnce)
	if err != nil {
		return err
	}
	err = measure(&beside)
	stop()
	if err != nil {
		return err
	}
	for i, what := range []string{"a direct call", "an eval"} {
		t.times(fmt.Sprintf("floor: p99 of %s, beside %d loops", what, atOnce), quiet[i], beside[i], target{})
	}
	return nil
}

// compute starts n processes that use the processor until stop is called.
func compute(ctx context.Context, n int) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all []*exec.Cmd
	stop = func() {
		cancel()
		for _, c := range all {
			_ = c.Wait() // it was killed
		}
	}
	for range n {
		c := exec.CommandContext(ctx, os.Args[0], computeArg)
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		all = append(all, c)
	}
	return stop, nil
}

// computeArg, as the first argument, makes this program one that does nothing but compute.
const computeArg = "compute"

func serveCompute([]string) error {
	for n := new(atomic.Uint64); ; {
		n.Add(1)
	}
}

// attack runs the scripts of an attack again and again until stop is called, which
// waits for their ends.
func (p *peer) attack(ctx context.Context, a attack) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var began, all sync.WaitGroup
	began.Add(a.atOnce)
	for range a.atOnce {
		all.Go(func() {
			began.Done()
			for ctx.Err() == nil {
				// It ends at a limit or when the measurement is over: an error either way.
				_, _ = p.call(ctx, "eval", map[string]any{"code": a.code})
			}
		})
	}
	began.Wait()
	return func() { cancel(); all.Wait() }
}
