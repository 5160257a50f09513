package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// reloads measures edits of the configuration: how long it takes until an edit of one
// of 200 rules is in force, and what scripts that run meanwhile notice of it.
func (m *machine) reloads(ctx context.Context, t *table) (err error) {
	path := filepath.Join(m.scratch, "reload.json")
	edit := func(deny bool) error {
		rules := make([]map[string]any, 0, 200)
		for i := range 199 {
			rules = append(rules, map[string]any{"tools": []string{fmt.Sprintf("time__tool_%d_*", i)}, "when": fmt.Sprintf("args.path.startsWith('/srv/%d/')", i), "action": "deny"})
		}
		action := "allow"
		if deny {
			action = "deny"
		}
		rules = append(rules, map[string]any{"tools": []string{"time__now"}, "action": action})
		text, err := json.Marshal(map[string]any{
			"servers":    map[string]any{"time": map[string]any{"type": "builtin", "builtin": "time"}},
			"evaluation": map[string]any{"defaultProfile": "p", "profiles": map[string]any{"p": map[string]any{"rules": rules}}},
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".next", text, 0o600); err != nil {
			return err
		}
		return os.Rename(path+".next", path)
	}
	if err := edit(false); err != nil {
		return err
	}
	p, err := m.start(ctx, exec.CommandContext(ctx, m.bridge, "run", "--alone", "--config", path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()

	const script = `try { await codemode.time__now({}); return true } catch (e) { return e.reason !== "denied" }`
	await := func(want string) error {
		for {
			err := p.eval(ctx, script, want)
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	}
	if err := await("true"); err != nil {
		return err
	}
	var took []time.Duration
	for round := range max(m.rounds/20, 6) {
		deny := round%2 == 0
		want := fmt.Sprint(!deny)
		start := time.Now()
		if err := edit(deny); err != nil {
			return err
		}
		if err := await(want); err != nil {
			return fmt.Errorf("waiting for an edit to hold: %w", err)
		}
		took = append(took, time.Since(start))
	}
	t.times("an edit among 200 rules, until it holds", 0, median(took), target{})

	eval := func() error { return p.eval(ctx, `return 1`, `1`) }
	quiet, err := p99(eval, nil)
	if err != nil {
		return err
	}
	n := 0
	busy, err := p99(eval, func() error { n++; return edit(n%2 == 0) })
	if err != nil {
		return err
	}
	t.times("p99 of an eval, quiet and while it is edited", quiet, busy, target{})
	return nil
}

// samples are how many times a 99th percentile is taken of: the fifth of them from above.
const samples = 400

// p99 returns the 99th percentile of what f takes, with a call of between, if there is one, before every
// tenth time.
func p99(f, between func() error) (time.Duration, error) {
	took := make([]time.Duration, samples)
	for i := range took {
		if between != nil && i%10 == 0 {
			if err := between(); err != nil {
				return 0, err
			}
		}
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)*99/100], nil
}
