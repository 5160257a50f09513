package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// slowConfig is eleven servers: eight answer, one never does, one needs two seconds to
// start and one twenty.
func slowConfig(self string) ([]byte, error) {
	servers := make(map[string]any)
	add := func(name, after string) {
		servers[name] = map[string]any{"command": self, "args": []string{upstreamArg, "-after", after}}
	}
	for i := range 8 {
		add(fmt.Sprintf("s%d", i), "0s")
	}
	add("hangs", "-1s")
	add("two", "2s")
	add("twenty", "20s")
	return json.Marshal(map[string]any{"servers": servers, "audit": map[string]bool{"enabled": false}})
}

// slowServers measures what a client waits for, right after it has connected, when some
// of the servers are slow: without the tools of an earlier run, and with them.
func (m *machine) slowServers(ctx context.Context, t *table) error {
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		return err
	}
	config, err := slowConfig(self)
	if err != nil {
		return err
	}
	call := func(p *peer) error { return p.eval(ctx, `return await codemode.s3__noop({})`, `"ok"`) }
	list := func(p *peer) error { _, err := p.ListTools(ctx, nil); return err }
	for _, row := range []struct {
		what   string
		first  func(*peer) error
		cached bool
		want   time.Duration
	}{
		{"11 servers, 3 slow: first call, no cache", call, false, 300 * time.Millisecond},
		{"11 servers, 3 slow: first call", call, true, 300 * time.Millisecond},
		{"11 servers, 3 slow: tools/list, no cache", list, false, 2500 * time.Millisecond},
		{"11 servers, 3 slow: tools/list", list, true, 300 * time.Millisecond},
	} {
		var took []time.Duration
		for range max(m.rounds/40, 3) {
			if !row.cached { // a place of its own, without a cache
				m.configs++
				if err := os.WriteFile(m.config(), config, 0o600); err != nil {
					return err
				}
			}
			d, err := m.first(ctx, row.first)
			if err != nil {
				return fmt.Errorf("%s: %w", row.what, err)
			}
			took = append(took, d)
		}
		t.times(row.what, 0, median(took), target{time: row.want})
	}
	return nil
}

// first starts a bridge with the last configuration, and returns how long its first
// request takes.
func (m *machine) first(ctx context.Context, request func(*peer) error) (took time.Duration, err error) {
	p, err := m.start(ctx, exec.CommandContext(ctx, m.bridge, "run", "--alone", "--config", m.config()))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	start := time.Now()
	if err := request(p); err != nil {
		return 0, err
	}
	took = time.Since(start)
	for i := range 8 { // their tools are kept for the next start
		if err := p.eval(ctx, fmt.Sprintf(`return await codemode.s%d__noop({})`, i), `"ok"`); err != nil {
			return 0, err
		}
	}
	return took, nil
}
