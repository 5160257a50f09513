//go:build long && unix

package upstream

import (
	"os"
	"testing"
	"time"
)

// All at once for half a minute, or for as long as UPSTREAM_CHAOS says, such as
// 5m. It logs the healthy server's latencies beside its quiet ones.
func TestLongChaos(t *testing.T) {
	d := 30 * time.Second
	if text := os.Getenv("UPSTREAM_CHAOS"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	chaos(t, Options{RetryMin: 200 * time.Millisecond, RetryMax: 5 * time.Second, Suspend: 2 * time.Second, Poll: 10 * time.Second}, d, 100)
}
