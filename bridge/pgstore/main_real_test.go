//go:build real

package pgstore

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the other process: this variable holds its part and its
// arguments.
const partVariable = "PGSTORE_TEST_PART"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(partVariable), "\x1f"); args[0] != "" {
		if err := parts[args[0]](args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	status := withServer(m)
	if err := goleak.Find(); status == 0 && err != nil {
		fmt.Println(err)
		status = 1
	}
	os.Exit(status)
}

var parts = map[string]func(args []string) error{}
