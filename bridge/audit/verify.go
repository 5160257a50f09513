package audit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"codemode-bridge/bridge/ledger"
)

// Verify verifies the log by itself and against every checkpoint, not only the newest:
// somebody may have rolled the log back and gone on from there.
func Verify(ctx context.Context, store ledger.Store, checkpoints []ledger.Checkpoint) (ledger.Report, error) {
	if len(checkpoints) == 0 {
		return store.Verify(ctx, nil)
	}
	newest := checkpoints[len(checkpoints)-1]
	report, err := store.Verify(ctx, &newest)
	if err != nil || !report.Whole {
		return report, err
	}
	for _, c := range checkpoints[:len(checkpoints)-1] {
		if c.Seq < report.First {
			continue // its row was pruned; newer checkpoints cover it
		}
		for row, err := range store.Rows(ctx, ledger.Query{After: c.Seq - 1, Limit: 1}) {
			if err != nil {
				return report, err
			}
			if c.Store != newest.Store || row.Seq != c.Seq || row.Hash != c.Hash {
				return store.Verify(ctx, &c) // for the report that says how
			}
		}
	}
	return report, nil
}

// ReadCheckpoints reads a file with one checkpoint in each line, the oldest first.
// Lines that are no checkpoints, such as the torn one that a full disk leaves, are
// skipped; if there are no others, the error is an [InputError].
func ReadCheckpoints(name string, r io.Reader) ([]ledger.Checkpoint, error) {
	var all []ledger.Checkpoint
	var bad error // about the first line that is no checkpoint
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		c, err := ledger.ParseCheckpoint(line)
		if err == nil {
			all = append(all, c)
		} else if bad == nil {
			bad = inputf("%s:%d: %v", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading checkpoints: %w", err)
	}
	if len(all) == 0 && bad != nil {
		return nil, bad
	}
	if len(all) == 0 {
		return nil, inputf("%s holds no checkpoint", name)
	}
	return all, nil
}

// VerifiedJSON is the result of [Verify] against a number of checkpoints, for programs.
func VerifiedJSON(r ledger.Report, checkpoints int) any {
	return struct {
		Whole       bool        `json:"whole"`
		Rows        int64       `json:"rows"`
		First       int64       `json:"first"`
		Last        int64       `json:"last"`
		Hash        ledger.Hash `json:"hash"`
		Sealed      bool        `json:"sealed"`
		Checkpoints int         `json:"checkpoints"` // it was compared with
		Bad         int64       `json:"bad_row,omitempty"`
		Kind        ledger.Kind `json:"kind,omitempty"`
		Message     string      `json:"message,omitempty"`
	}{r.Whole, r.Rows, r.First, r.Last, r.Hash, r.Sealed, checkpoints, r.Bad, r.Kind, r.Message}
}

// Prunable counts what Prune would remove: all rows before the first that is
// not older.
func Prunable(ctx context.Context, store ledger.Reader, before time.Time) (n int64, err error) {
	for row, err := range store.Rows(ctx, ledger.Query{}) {
		if err != nil {
			return 0, err
		}
		if !row.Record.Time.Before(before) {
			break
		}
		n++
	}
	return n, nil
}

// Holds reports whether a record has a fingerprint anywhere.
func Holds(r ledger.Record, mark string) bool {
	return strings.Contains(string(r.Args), mark) || strings.Contains(r.Script, mark) || strings.Contains(string(r.Input), mark) ||
		strings.Contains(r.Error, mark) || strings.Contains(string(r.Preview), mark)
}
