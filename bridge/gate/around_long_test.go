//go:build long

package gate

import (
	"math/rand/v2"
	"testing"
)

// A million calls, others each time.
func TestLongGrantsAgainstTheNaiveReader(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("with the seed %d", seed)
	dealAround(t, rand.New(rand.NewPCG(seed, 2)), 1_000_000)
}
