//go:build real

package bridge

import "testing"

// TestRealRunsOutliveTheirBridges kills bridges at every entry of 50 scripts.
func TestRealRunsOutliveTheirBridges(t *testing.T) { outliveAll(t, 25, 1000) }
