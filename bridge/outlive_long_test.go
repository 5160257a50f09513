//go:build long

package bridge

import "testing"

// TestLongRunsOutliveTheirBridges is TestRunsOutliveTheirBridges with every
// entry of 50 scripts.
func TestLongRunsOutliveTheirBridges(t *testing.T) { outliveAll(t, 25, 1000) }
