//go:build real

package bridge

import "testing"

// TestRealOrders is TestBoundaries with fifty times as many orders.
func TestRealOrders(t *testing.T) { playAll(t, 10_000) }
