package ledger

import (
	"testing"
)

// The words of requests are read as they were written.
func TestWordsOfRequests(t *testing.T) {
	for wanted, want := range map[string]JournaledRun{
		"":           {},
		"give":       {HandoverRequestedBy: Unnamed},
		"give one":   {HandoverRequestedBy: "one"},
		"give  end ": {HandoverRequestedBy: " end "},
		"end bob":    {CancelRequestedBy: "bob"},
		"end give x": {CancelRequestedBy: "give x"},
	} {
		var got JournaledRun
		ReadLeaseRequest(&got, wanted)
		if got != want || LeaseRequest(&got) != wanted {
			t.Errorf("%q is read as %+v and written as %q", wanted, got, LeaseRequest(&got))
		}
	}
}
