package worker

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"codemode-bridge/sandbox/wire"
)

const (
	monitorTick = 2 * time.Millisecond
	// monitorRest is how many ticks the monitor goes on after a script
	// paused, so that a script that waits and runs in turns does not wake it
	// each time.
	monitorRest = 10
	// bigHeap is the heap after a run from which on memory is given back.
	bigHeap = 32 << 20
)

// A monitor ends the process when the heap exceeds its limit. It is a goroutine of its
// own because looping native code cannot check; it sleeps while no script runs.
type monitor struct {
	limit   uint64
	exit    func(int)
	flush   func() error
	started bool
	active  atomic.Bool // a script is running, not waiting
	judging sync.Mutex  // held while the monitor decides whether to end the process
	over    bool        // there is no run; guarded by judging
	asleep  atomic.Bool
	wake    chan struct{}
	quit    chan struct{}
	ended   sync.WaitGroup
}

// newMonitor makes the monitor of a worker with a heap of limit bytes. It does
// nothing before start; close ends it. exit must not return, except in tests.
func newMonitor(limit int64, exit func(int), flush func() error) *monitor {
	return &monitor{limit: uint64(max(limit, 16<<20)), exit: exit, flush: flush,
		wake: make(chan struct{}, 1), quit: make(chan struct{})}
}

// start has the monitor watch the memory of this process from now on.
func (m *monitor) start() {
	debug.SetMemoryLimit(int64(m.limit) / 8 * 7)
	m.started = true
	m.asleep.Store(true)
	m.ended.Add(1)
	go m.run()
}

func (m *monitor) close() { close(m.quit); m.ended.Wait() }

func (m *monitor) resume() {
	m.active.Store(true)
	if m.asleep.CompareAndSwap(true, false) {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

func (m *monitor) pause() { m.active.Store(false) }

// begin and finish enclose a run. After finish the process will not be ended for what
// the run has done: its result may be sent, and what it left behind does not count
// against the next run.
func (m *monitor) begin()  { m.set(false) }
func (m *monitor) finish() { m.set(true) }

func (m *monitor) set(over bool) {
	m.judging.Lock()
	defer m.judging.Unlock()
	m.over = over
}

// giveBack returns memory to the system after a run that used much of it.
func (m *monitor) giveBack() {
	if m.started && heap() > bigHeap {
		debug.FreeOSMemory()
	}
}

func (m *monitor) run() {
	defer m.ended.Done()
	tick := time.NewTicker(monitorTick)
	defer tick.Stop()
	for {
		tick.Stop()
		select {
		case <-m.wake:
		case <-m.quit:
			return
		}
		tick.Reset(monitorTick)
		for rest := 0; ; {
			select {
			case <-tick.C:
			case <-m.quit:
				return
			}
			m.look()
			if m.active.Load() {
				rest = 0
				continue
			}
			if rest++; rest < monitorRest {
				continue
			}
			m.asleep.Store(true)
			// A resume between the look above and here saw it awake.
			if m.active.Load() && m.asleep.CompareAndSwap(true, false) {
				rest = 0
				continue
			}
			break
		}
	}
}

// look ends the process if the heap of a run is over its limit. A small excess may be
// garbage that the collector, which has to share the processors, has not reached yet.
func (m *monitor) look() {
	m.judging.Lock()
	defer m.judging.Unlock()
	if m.over {
		return
	}
	n := heap()
	if n > m.limit && n < m.limit+m.limit/4 {
		runtime.GC()
		n = heap()
	}
	if n > m.limit {
		m.end(wire.ExitMemory, fmt.Sprintf("memory limit exceeded: heap %d MB, limit %d MB", n>>20, m.limit>>20))
	}
}

// end says why on stderr, gives the parent what the script logged, if the
// pipe takes it, and ends the process.
func (m *monitor) end(code int, why string) {
	fmt.Fprintln(os.Stderr, "codemode-worker:", why)
	sent := make(chan struct{})
	go func() { m.flush(); close(sent) }()
	select {
	case <-sent:
	case <-time.After(20 * time.Millisecond):
	}
	m.exit(code)
}

var heapMetric = []string{"/memory/classes/heap/objects:bytes"}

func heap() uint64 {
	s := []metrics.Sample{{Name: heapMetric[0]}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
