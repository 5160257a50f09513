//go:build real && unix

package upstream

import (
	"flag"
	"testing"
	"time"
)

var chaosFor = flag.Duration("chaos", time.Minute, "how long TestRealChaos lasts")

// All at once for a minute, or longer with -chaos 5m. It logs the healthy
// server's latencies beside its quiet ones.
func TestRealChaos(t *testing.T) {
	chaos(t, Options{RetryMin: 200 * time.Millisecond, RetryMax: 5 * time.Second, Suspend: 2 * time.Second, Poll: 10 * time.Second}, *chaosFor, 100)
}
