package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A callRow is calls of the upstream, made directly and by a script.
type callRow struct {
	what    string
	rounds  int
	per     time.Duration // calls in one round
	direct  func() error
	writes  string // a script whose tool may write: what it is to do is on the disk before it is sent
	reads   string // the same with a tool that only reads; empty if no tool is called
	want    string // what both return
	target  target
	records bool // the same without records is a row too
}

// calls measures calls of the upstream, directly and from a script, with all records
// kept, and what the records cost.
func (m *machine) calls(ctx context.Context, t *table) (err error) {
	direct, err := m.startUpstream(ctx, 10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	off, err := m.startBridge(ctx, 10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, off.Close()) }()
	m.audit = true
	kept, err := m.startBridge(ctx, 10)
	m.audit = false
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()

	for _, row := range m.callRows(ctx, direct) {
		eval := func(p *peer, code string) func() error {
			return func() error { return p.eval(ctx, code, row.want) }
		}
		functions := []func() error{row.direct, eval(kept, row.writes)}
		if row.records {
			functions = append(functions, eval(off, row.writes))
		}
		if row.reads != "" {
			functions = append(functions, eval(kept, row.reads))
		}
		if row.reads != "" && row.records {
			functions = append(functions, eval(off, row.reads))
		}
		took, err := alternate(max(row.rounds, 5), functions...)
		if err != nil {
			return fmt.Errorf("%s: %w", row.what, err)
		}
		for i := range took {
			took[i] /= row.per
		}
		switch {
		case !row.records:
			t.calls(row.what, took[0], took[1], took[2], row.target)
		case row.reads == "":
			t.times(row.what, took[0], took[1], row.target)
			t.times("  its records, beside records off", took[2], took[1], target{})
		default:
			t.calls(row.what, took[0], took[1], took[3], row.target)
			t.times("  its records, beside off: a tool that writes"+row.suffix(), took[2], took[1], target{})
			t.times("  its records, beside off: one that reads"+row.suffix(), took[4], took[3], target{})
		}
	}
	return nil
}

// suffix tells the rows of one call from those of many.
func (r callRow) suffix() string {
	if r.per > 1 {
		return ", of 100"
	}
	return ""
}

func (m *machine) callRows(ctx context.Context, direct *peer) []callRow {
	noop := func() error { _, err := direct.call(ctx, "noop", map[string]any{"id": 1}); return err }
	hundred := func() error {
		for range 100 {
			if err := noop(); err != nil {
				return err
			}
		}
		return nil
	}
	parallel := func() error {
		var all sync.WaitGroup
		errs := make([]error, 100)
		for i := range errs {
			all.Go(func() { _, errs[i] = direct.call(ctx, "sleep", map[string]any{"id": i}) })
		}
		all.Wait()
		return errors.Join(errs...)
	}
	big := func() error {
		result, err := direct.call(ctx, "big", map[string]any{})
		if err != nil {
			return err
		}
		var value any
		return json.Unmarshal([]byte(result.Content[0].(*mcp.TextContent).Text), &value)
	}
	one := func(tool string) string { return `return await codemode.bench__` + tool + `({id: 1})` }
	sequence := func(tool string) string {
		return `let n = 0; for (let i = 0; i < 100; i++) if (await codemode.bench__` + tool + `({id: i}) === "ok") n++; return n`
	}
	together := func(tool string) string {
		return `const all = await Promise.all(Array.from({length: 100}, (_, id) => codemode.bench__` + tool + `({id}))); return all.length`
	}
	parsed := func(tool string) string {
		return `return json(await codemode.bench__` + tool + `({})).length > 10000`
	}
	return []callRow{
		{"trivial eval, beside one direct call", m.rounds, 1, noop, `return 1`, "", `1`, target{ratio: 2.5}, true},
		{"1 call in 1 eval", m.rounds, 1, noop, one("noop"), one("get_issue_0"), `"ok"`, target{ratio: 6}, true},
		{"a call, of 100 in sequence in 1 eval", m.rounds / 10, 100, hundred, sequence("noop"), sequence("get_issue_0"), `100`, target{ratio: 2.5}, true},
		{"100 parallel calls of 10 ms, beside 100 at once", m.rounds / 10, 1, parallel, together("sleep"), together("get_late"), `100`, target{ratio: 1.5}, false},
		{"1 MB reply, parsed, beside one that is decoded", m.rounds / 10, 1, big, parsed("big"), parsed("get_big"), `true`, target{ratio: 1.1}, false},
	}
}

// windows measures what it costs a client's window to go through a shared bridge in the
// background.
func (m *machine) windows(ctx context.Context, t *table) (err error) {
	alone, err := m.startBridge(ctx, 10)
	if err != nil {
		return err
	}
	m.shared = true
	defer func() { m.shared = false }()
	window, err := m.startBridge(ctx, 10)
	if err != nil {
		return errors.Join(err, alone.Close())
	}
	defer func() { err = errors.Join(err, alone.Close(), window.Close()) }()
	medians, err := alternate(m.rounds,
		func() error { return alone.eval(ctx, `return 1`, `1`) },
		func() error { return window.eval(ctx, `return 1`, `1`) })
	if err == nil {
		t.times("trivial eval in a window, beside run --alone", medians[0], medians[1], target{})
	}
	return err
}
