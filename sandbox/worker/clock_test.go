package worker

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
				c := newClock(func() { busy.Add(1) }, func() { ends.Add(1) })
				defer c.close()
				c.begin(limit, func() { stops.Add(1) })
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
