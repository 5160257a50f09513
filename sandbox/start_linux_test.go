package sandbox

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// BenchmarkStartWorker is a session that runs one script: its worker's start, the script, and the
// worker's end. It reports the processor time of both processes, and what the worker uses of its
// own. WORKER is the program; without it, it is this one, which takes longer.
func BenchmarkStartWorker(b *testing.B) {
	o := Options{Warm: -1, Worker: os.Getenv("WORKER")}
	if o.Worker == "" {
		o.Command = again("worker")
	}
	pool, err := NewPool(o)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	used := func(who int) time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	parent, workers := used(syscall.RUSAGE_SELF), used(syscall.RUSAGE_CHILDREN)
	var own int64
	for b.Loop() {
		s := pool.Session()
		gives(b, s, "return 1", nil, "1")
		n, _ := s.idle.memory()
		own += n
		s.Close()
	}
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(b.N) }
	b.ReportMetric(each(used(syscall.RUSAGE_SELF)-parent), "ms-parent/op")
	b.ReportMetric(each(used(syscall.RUSAGE_CHILDREN)-workers), "ms-worker/op")
	b.ReportMetric(float64(own)/float64(b.N)/1e6, "MB-own/op")
}
