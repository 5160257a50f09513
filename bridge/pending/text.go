package pending

import (
	"fmt"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
)

// A Shown is a pending configuration as programs read it.
type Shown struct {
	File     string                 `json:"file"`
	Digest   string                 `json:"digest"`
	Since    time.Time              `json:"since"`
	Why      []string               `json:"why"`
	Diff     []string               `json:"diff,omitempty"`
	Reason   bool                   `json:"reason_needed"`
	Rejected *approval.Confirmation `json:"rejected,omitempty"`
}

// Show returns a pending configuration for programs.
func Show(row *approval.PendingConfig) *Shown {
	return &Shown{row.File, row.Digest, row.Since, row.Why, row.Diff, row.NeedsReason, row.Rejected}
}

// Lines describes a pending configuration to people: its file, why it waits, how the
// profiles differ, and who has rejected it.
func Lines(row *approval.PendingConfig) []string {
	state := "waits for an approver"
	if row.Rejected != nil {
		state = "is held back"
	}
	lines := []string{fmt.Sprintf("%s %s since %s, because of:", row.File, state, row.Since.Local().Format("15:04:05"))}
	for _, why := range row.Why {
		lines = append(lines, "  "+canon.Escape(why))
	}
	if len(row.Diff) > 0 {
		lines = append(lines, "the profiles as they apply:")
	}
	for _, l := range row.Diff {
		lines = append(lines, "  "+canon.Escape(l))
	}
	if r := row.Rejected; r != nil {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s has rejected it: %s", canon.Escape(r.By), canon.Escape(canon.Redact(r.Text))), ": "))
	}
	if row.NeedsReason {
		lines = append(lines, "whoever confirms it says why: --reason")
	}
	return lines
}
