package worker

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/sandbox/wire"
)

func TestClock(t *testing.T) {
	const limit = time.Second
	for name, row := range map[string]struct {
		run         func(*clock)
		stops, ends int32
		busy        bool
	}{
		"waiting does not count": {run: func(c *clock) {
			for range 100 {
				c.resume()
				time.Sleep(5 * time.Millisecond)
				c.pause()
				time.Sleep(time.Minute)
			}
		}},
		"turns add up to the limit": {run: func(c *clock) {
			for range 100 {
				c.resume()
				time.Sleep(15 * time.Millisecond)
				c.pause()
			}
		}, stops: 1},
		"up to the limit": {run: func(c *clock) {
			c.resume()
			time.Sleep(limit - 1)
			c.pause()
		}, busy: true},
		"stopped at the limit": {run: func(c *clock) {
			c.resume()
			time.Sleep(limit + 1)
			c.pause()
			time.Sleep(time.Hour)
		}, stops: 1, busy: true},
		"ended when it does not stop": {run: func(c *clock) {
			c.resume()
			time.Sleep(limit + stopGrace + 1)
			c.pause()
		}, stops: 1, ends: 1, busy: true},
		"who pauses in time has a new grace": {run: func(c *clock) {
			c.resume()
			time.Sleep(limit + stopGrace - 1)
			c.pause()
			c.resume()
			time.Sleep(stopGrace - 1)
			c.pause()
		}, stops: 1, busy: true},
		"a new run begins anew": {run: func(c *clock) {
			stop := c.stop
			for range 5 {
				c.begin(limit, stop)
				c.resume()
				time.Sleep(limit * 2 / 3)
				c.pause()
			}
		}, busy: true},
		"a shorter limit than a look": {run: func(c *clock) {
			c.begin(lookEvery/4, c.stop)
			c.resume()
			time.Sleep(lookEvery / 2)
			c.pause()
		}, stops: 1},
		"a new run with a shorter limit": {run: func(c *clock) {
			c.resume()
			c.pause()
			c.begin(lookEvery/4, c.stop)
			c.resume()
			time.Sleep(lookEvery / 2)
			c.pause()
		}, stops: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var stops, ends, busy atomic.Int32
				c := newClock(func() { busy.Add(1) }, func(string) { ends.Add(1) })
				defer c.close()
				c.begin(limit, func(string) { stops.Add(1) })
				row.run(c)
				synctest.Wait()
				if stops.Load() != row.stops || min(ends.Load(), 1) != row.ends || (busy.Load() > 0) != row.busy {
					t.Errorf("stopped %d times, ended %d times, busy %d times; want %d, %d, %v",
						stops.Load(), ends.Load(), busy.Load(), row.stops, row.ends, row.busy)
				}
			})
		})
	}
}

// A script is charged for the processor time that it had. One that had too little
// of it is stopped too, by the limit of wall time.
func TestClockOfABusyMachine(t *testing.T) {
	const limit = time.Second
	for name, row := range map[string]struct {
		share   float64 // of a processor, that the process has
		runs    time.Duration
		stopped string // the limit
		at      time.Duration
		ended   string // if it does not heed that
		used    time.Duration
	}{
		"a third, for what it is allowed":      {share: 1. / 3, runs: 2999 * time.Millisecond, used: limit},
		"a third, for too long":                {share: 1. / 3, runs: 3500 * time.Millisecond, stopped: wire.LimitCPU, at: 3 * time.Second, used: 3500 * time.Millisecond / 3},
		"a third, and it does not stop":        {share: 1. / 3, runs: 3 * (limit + 2*stopGrace), stopped: wire.LimitCPU, at: 3 * time.Second, ended: wire.LimitCPU, used: limit + 2*stopGrace},
		"a tenth":                              {share: .1, runs: 4100 * time.Millisecond, stopped: wire.LimitWall, at: 4 * time.Second, used: 410 * time.Millisecond},
		"a tenth, and it does not stop":        {share: .1, runs: 6 * time.Second, stopped: wire.LimitWall, at: 4 * time.Second, ended: wire.LimitWall, used: 600 * time.Millisecond},
		"three, of which two collect garbage":  {share: 3, runs: 999 * time.Millisecond, used: 999 * time.Millisecond},
		"three, and it runs for too long also": {share: 3, runs: 1100 * time.Millisecond, stopped: wire.LimitCPU, at: time.Second, used: 1100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stopped, ended := make(chan string, 1), make(chan string, 100)
				var at time.Duration
				began := time.Now()
				c := newClock(func() {}, func(limit string) { ended <- limit })
				c.cpu = func() time.Duration { return time.Hour + time.Duration(float64(time.Since(began))*row.share) }
				defer c.close()
				time.Sleep(time.Hour) // what the worker did before this run does not count
				c.begin(limit, func(limit string) { at = time.Since(began) - time.Hour; stopped <- limit })
				c.resume()
				time.Sleep(row.runs)
				c.pause()
				synctest.Wait()
				close(stopped)
				if got := <-stopped; got != row.stopped || (at-row.at).Abs() > time.Millisecond {
					t.Errorf("stopped by %q after %v, want %q after %v", got, at, row.stopped, row.at)
				}
				close(ended)
				if got := <-ended; got != row.ended {
					t.Errorf("ended by %q, want %q", got, row.ended)
				}
				if got := c.used(); (got - row.used).Abs() > time.Millisecond {
					t.Errorf("used %v, want %v", got, row.used)
				}
			})
		})
	}
}

// A run that exceeded a limit is known to have done so even if the timer never had its turn.
func TestClockThatComesTooLate(t *testing.T) {
	for name, row := range map[string]struct {
		share float64 // of a processor, that the process has
		runs  time.Duration
		want  string
	}{
		"in time":           {1, 999 * time.Millisecond, ""},
		"too much CPU time": {1, time.Second, wire.LimitCPU},
		"starved":           {.1, wire.WallFactor * time.Second, wire.LimitWall},
		"starved, in time":  {.1, wire.WallFactor*time.Second - time.Millisecond, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			c := newClock(func() {}, func(string) {})
			c.cpu = func() time.Duration { return time.Duration(float64(time.Since(began)) * row.share) }
			defer c.close()
			c.begin(time.Second, func(string) { t.Errorf("%s: the timer had its turn", name) })
			c.resume()
			c.timer.Stop()
			time.Sleep(row.runs)
			c.pause()
			if got := c.over(); got != row.want {
				t.Errorf("%s: over %q, want %q", name, got, row.want)
			}
		})
	}
}
