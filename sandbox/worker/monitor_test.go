package worker

import (
	"runtime"
	"runtime/debug"
	"testing"

	"codemode-bridge/sandbox/wire"
)

// Garbage ends no script; what it holds does.
func TestMonitorCollectsFirst(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const much = 32 << 20
	var exits []int
	m := newMonitor(0, func(code int) { exits = append(exits, code) }, func() error { return nil })
	runtime.GC()
	m.limit = 2*much + much/2 + heap()
	m.begin()
	var held [3][]byte
	for i := range held {
		held[i] = make([]byte, much)
		held[i] = nil
	}
	if n := heap(); n <= m.limit {
		t.Fatalf("a heap of %d bytes, want more than %d", n, m.limit)
	}
	m.look()
	if len(exits) > 0 {
		t.Errorf("ended with %v for garbage", exits)
	}
	for i := range held {
		held[i] = make([]byte, much)
	}
	m.look()
	if len(exits) != 1 || exits[0] != wire.ExitMemory {
		t.Errorf("ended with %v, want %d", exits, wire.ExitMemory)
	}
	runtime.KeepAlive(held)
}
