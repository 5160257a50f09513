package pending

import (
	"testing"
	"time"

	"codemode-bridge/bridge/approval"

	"github.com/google/go-cmp/cmp"
)

// What somebody has rejected does not wait for anybody.
func TestLines(t *testing.T) {
	t.Parallel()
	row := &approval.PendingConfig{File: "config.json", Since: time.Date(2026, 3, 1, 9, 12, 44, 0, time.Local), Why: []string{"it is looser"}}
	want := []string{"config.json waits for an approver since 09:12:44, because of:", "  it is looser"}
	if diff := cmp.Diff(want, Lines(row)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	row.Rejected = &approval.Confirmation{By: "ann", Text: "no"}
	want = []string{"config.json is held back since 09:12:44, because of:", "  it is looser", "ann has rejected it: no"}
	if diff := cmp.Diff(want, Lines(row)); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
}
