package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// audits measures what the audit log costs many callers at once. The "direct" column of its rows is a bridge
// with audit.enabled false, before the same upstream. When a call that only reads is
// sent, its record is in the log; of a call that may change something, it is on the
// disk.
func (m *machine) audits(ctx context.Context, t *table) (err error) {
	off, err := m.startBridge(ctx, 10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, off.Close()) }()
	m.audit = true
	on, err := m.startBridge(ctx, 10)
	m.audit = false
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()

	const callers, each = 32, 25
	many := func(tool string) string {
		return fmt.Sprintf(`await Promise.all(Array.from({length: %d}, async () => { for (let i = 0; i < %d; i++) await codemode.bench__%s({id: i}) })); return 1`, callers, each, tool)
	}
	for _, row := range []struct {
		what, script string
		calls        int
		want         target
	}{
		{"audit: 32 callers, a read, beside audit off", many("get_issue_0"), callers * each, target{ratio: 1.11}},
		{"audit: 32 callers, a change, beside audit off", many("noop"), callers * each, target{ratio: 1.11}},
	} {
		script := func(p *peer) func() error { return func() error { return p.eval(ctx, row.script, `1`) } }
		medians, err := alternate(max(m.rounds/10, 5), script(off), script(on))
		if err != nil {
			return fmt.Errorf("%s: %w", row.what, err)
		}
		per := time.Duration(row.calls)
		t.times(row.what, medians[0]/per, medians[1]/per, row.want)
	}
	return m.verify(ctx, t)
}

// verify measures `audit verify` on a long log.
func (m *machine) verify(ctx context.Context, t *table) error {
	long, err := m.longLog(ctx)
	if err != nil {
		return err
	}
	var took []time.Duration
	var found struct {
		Whole bool  `json:"whole"`
		Rows  int64 `json:"rows"`
	}
	for range 3 {
		cmd := exec.CommandContext(ctx, m.bridge, "audit", "verify", "--json", "--config", m.config(), "--log", long)
		cmd.Env = m.environ()
		start := time.Now()
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("verifying the audit log: %w", err)
		}
		took = append(took, time.Since(start))
		if err := json.Unmarshal(out, &found); err != nil || !found.Whole || found.Rows == 0 {
			return fmt.Errorf("verifying the audit log: it says %s", out)
		}
	}
	per := float64(median(took)) / float64(found.Rows)
	t.times(fmt.Sprintf("audit verify: a million rows, from %d", found.Rows), 0, time.Duration(per*1e6), target{time: 5 * time.Second})
	return nil
}
