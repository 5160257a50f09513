// Package racing is what tests do differently under the race detector. It sees into no
// program that a test starts, and makes one several times slower: such programs are
// started without it, or the test is left to `make test`.
package racing

import (
	"os"
	"path/filepath"
	"testing"
)

// programs is the variable that names the folder of the tests' programs without the
// detector, which `make race` builds.
const programs = "UNRACED_TESTS"

// Program returns what a test starts as its child to play a part: itself.
func Program() string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if dir := os.Getenv(programs); On && dir != "" {
		return filepath.Join(dir, filepath.Base(self))
	}
	return self
}

// Skip skips a test of programs that it starts, and of nothing else.
func Skip(t testing.TB) {
	t.Helper()
	if On {
		t.Skip("the race detector does not see into the programs that this test starts")
	}
}

// Alone skips a long test in which no two goroutines meet.
func Alone(t testing.TB) {
	t.Helper()
	if On {
		t.Skip("no two goroutines meet in this test, so that the race detector finds nothing in it")
	}
}
