package sandbox

import (
	"io"
	"log/slog"
	"os/exec"
	"time"

	"codemode-bridge/sandbox/wire"
)

// Options configure a Pool.
type Options struct {
	// Worker is the path of the program codemode-worker.
	Worker string
	// Command, if set, takes the place of Worker: it returns a new command
	// that serves as a worker on its standard input and output. An Env it
	// sets is kept; without one the worker's environment is empty.
	Command func() *exec.Cmd
	// Serve, if set, replaces both, for tests: it serves one worker in this process,
	// without any confinement, until in ends. A script that it runs cannot be ended
	// before it pauses.
	Serve func(in io.Reader, out io.Writer) error
	// Limits bound every run.
	Limits Limits
	// Warm is how many workers are kept ready for sessions that have none.
	// Zero means 2, a negative number none.
	Warm int
	// MaxWorkers bounds the live workers, ready and idle ones included.
	// Further runs queue. Zero means 64.
	MaxWorkers int
	// Memory bounds what all workers use together, in bytes; see memory.go. Zero
	// means half of the machine's memory that this program may use.
	Memory int64
	// MemoryWait is how long a run waits for room in Memory before it ends. Zero
	// means 30 s.
	MemoryWait time.Duration
	// Crowded, if not nil, is called by each run that has to wait for a worker and
	// finds none to take over, so that the caller can end a dispensable run. It must
	// not wait until that has ended.
	Crowded func()
	// IdleTimeout is how long a session keeps its worker without a run. Zero
	// means 5 minutes.
	IdleTimeout time.Duration
	// Fresh gives every run a worker of its own.
	Fresh bool
	// Logger reports workers that could not be started or ended unexpectedly. Nil
	// discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Warm == 0 {
		o.Warm = 2
	}
	if o.MaxWorkers <= 0 {
		o.MaxWorkers = 64
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory()
	}
	if o.MemoryWait <= 0 {
		o.MemoryWait = 30 * time.Second
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

// Limits bound one run. A zero field means its default; nothing is
// unlimited.
type Limits struct {
	CPU      time.Duration // of running the script, without waiting for answers; 10 s. Wall time may be wire.WallFactor times that
	Waiting  time.Duration // in which the script waits for its timers alone, with no call open; 60 s
	Heap     int64         // bytes of the worker's heap; 256 MB
	Calls    int           // calls, without timers; 1,000. wire.MaxTimers bounds those
	Parallel int           // calls open at a time, without timers; 100. Further ones wait
	Source   int64         // bytes of the script; 256 KB
	Input    int64         // bytes of its input; 1 MB
	Logs     int64         // bytes of logs that are kept; 64 KB
	Result   int64         // bytes of the result's JSON; 16 MB
}

// DefaultLimits returns what zero fields of Limits mean.
func DefaultLimits() Limits {
	return Limits{
		CPU:      10 * time.Second,
		Waiting:  time.Minute,
		Heap:     256 << 20,
		Calls:    1000,
		Parallel: 100,
		Source:   256 << 10,
		Input:    1 << 20,
		Logs:     64 << 10,
		Result:   16 << 20,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		CPU:      or(l.CPU, d.CPU),
		Waiting:  or(l.Waiting, d.Waiting),
		Heap:     or(l.Heap, d.Heap),
		Calls:    or(l.Calls, d.Calls),
		Parallel: or(l.Parallel, d.Parallel),
		// Source and input travel in one frame, a result in another.
		Source: min(or(l.Source, d.Source), wire.MaxFrame/4),
		Input:  min(or(l.Input, d.Input), wire.MaxFrame/4),
		Logs:   or(l.Logs, d.Logs),
		Result: min(or(l.Result, d.Result), wire.MaxFrame/2),
	}
}

// Tighten returns the stricter of l and o, field by field. A zero field
// means its default in l, and is ignored in o.
func (l Limits) Tighten(o Limits) Limits {
	l = l.withDefaults()
	return Limits{
		CPU:      min(l.CPU, or(o.CPU, l.CPU)),
		Waiting:  min(l.Waiting, or(o.Waiting, l.Waiting)),
		Heap:     min(l.Heap, or(o.Heap, l.Heap)),
		Calls:    min(l.Calls, or(o.Calls, l.Calls)),
		Parallel: min(l.Parallel, or(o.Parallel, l.Parallel)),
		Source:   min(l.Source, or(o.Source, l.Source)),
		Input:    min(l.Input, or(o.Input, l.Input)),
		Logs:     min(l.Logs, or(o.Logs, l.Logs)),
		Result:   min(l.Result, or(o.Result, l.Result)),
	}
}

// text formats the limit of that name for LimitError.Value.
func (l Limits) text(limit string) string {
	switch limit {
	case wire.LimitCPU:
		return duration(l.CPU)
	case wire.LimitWall:
		return duration(wire.WallFactor * l.CPU)
	case wire.LimitMemory:
		return size(l.Heap)
	case wire.LimitCalls:
		return count(l.Calls)
	case wire.LimitTimers:
		return count(wire.MaxTimers)
	case wire.LimitArgs:
		return size(wire.MaxArgs)
	case wire.LimitResult:
		return size(l.Result)
	case wire.LimitSource:
		return size(l.Source)
	case wire.LimitInput:
		return size(l.Input)
	}
	return ""
}

// or returns v, or d if v is not positive.
func or[T ~int | ~int64](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}
