package sandbox

import (
	"testing"

	"codemode-bridge/sandbox/wire"
)

// What the worker says of the place where a limit ended the script goes before what is said
// of the limit in general.
func TestAdvice(t *testing.T) {
	r := &run{}
	general := r.limitError(&wire.Failure{Name: wire.LimitCPU}).Hint()
	if general == "" {
		t.Error("the CPU limit has no hint")
	}
	const advice = "collect the parts in an array, and join it"
	if got := r.limitError(&wire.Failure{Name: wire.LimitCPU, Hint: advice}).Hint(); got != advice {
		t.Errorf("the hint is %q, want %q", got, advice)
	}
}
