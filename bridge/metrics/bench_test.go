package metrics_test

import (
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/metrics"
	"codemode-bridge/bridge/recorder"
)

// BenchmarkRecord is what counting adds to the records of a call.
func BenchmarkRecord(b *testing.B) {
	call := []ledger.Record{
		{Event: ledger.Intent, Profile: "strict", Server: "files", Tool: "read", Disposition: "allow"},
		{Event: ledger.Outcome, Profile: "strict", Server: "files", Tool: "read", Disposition: "allow", Outcome: ledger.Done, Duration: time.Millisecond},
	}
	for _, counted := range []bool{false, true} {
		name := "off"
		if counted {
			name = "on"
		}
		b.Run(name, func(b *testing.B) {
			r := recorder.New(recorder.Options{Store: memstore.New(nil)})
			defer r.Close()
			if counted {
				r.Observe(counts(metrics.State{}, 10).Recorded)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Record(b.Context(), call...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
