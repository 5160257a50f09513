package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/sqlstore"
)

// longRows is as long as a log can be made in seconds; -rows has a longer one made.
const longRows = 300_000

// longLog makes a log of that many rows, once, and returns its path.
func (m *machine) longLog(ctx context.Context) (path string, err error) {
	if m.long != "" {
		return m.long, nil
	}
	path = filepath.Join(m.scratch, "long", "audit.db")
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: path})
	if err != nil {
		return "", err
	}
	// Many rows in one transaction, from several callers, settle quickly.
	const callers, batch = 8, 500
	errs := make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c * batch; i < m.longRows && errs[c] == nil; i += callers * batch {
				errs[c] = db.Record(ctx, longRecords(i, min(batch, m.longRows-i))...)
			}
		})
	}
	all.Wait()
	if err := errors.Join(append(errs, db.Close())...); err != nil {
		return "", fmt.Errorf("making a long log: %w", err)
	}
	m.long = path
	return path, nil
}

// longRecords are n records of calls, from the i-th.
func longRecords(i, n int) []ledger.Record {
	list := make([]ledger.Record, n)
	for k := range list {
		call := (i + k) / 2
		list[k] = ledger.Record{
			Event: ledger.Intent, Time: time.Now(), Run: fmt.Sprintf("run-%d", call/20), Session: "stdio-1", Client: "bench", Profile: "p",
			Call: call%20 + 1, Server: "filesystem", Tool: "read_file", Disposition: "allow", Risk: "low",
			Args: json.RawMessage(`{"path":"/home/me/project/some/file.txt"}`), Reasons: []string{"allowlist filesystem__read_*"},
		}
		if k%2 == 1 {
			list[k].Event, list[k].Args, list[k].Outcome, list[k].Duration = ledger.Outcome, nil, ledger.Done, time.Millisecond
		}
	}
	return list
}

// A replayed is runs whose journals are kept.
type replayed struct {
	config      string
	env         []string
	short, long string // of one call and of replayCalls
}

const replayCalls = 5_000

// replays measures how many recorded answers `runs replay` plays in a second. What
// starting the program takes is known from a run of one call, and does not count.
func (m *machine) replays(ctx context.Context, t *table) error {
	if m.replayed == nil {
		if err := m.recordRuns(ctx); err != nil {
			return err
		}
	}
	replay := func(run string, calls int) func() error {
		return func() error {
			cmd := exec.CommandContext(ctx, m.bridge, "runs", "replay", run, "--json", "--config", m.replayed.config)
			cmd.Env = m.replayed.env
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("replaying run %s: %w", run, err)
			}
			var played struct{ Steps []json.RawMessage }
			if err := json.Unmarshal(out, &played); err != nil || len(played.Steps) != calls {
				return fmt.Errorf("replaying run %s: %d steps, want %d (%v)", run, len(played.Steps), calls, err)
			}
			return nil
		}
	}
	took, err := alternate(3, replay(m.replayed.short, 1), replay(m.replayed.long, replayCalls))
	if err != nil {
		return err
	}
	t.rate(fmt.Sprintf("recorded answers a second, runs replay, of %d", replayCalls), (replayCalls-1)/max(took[1]-took[0], 1).Seconds(), target{rate: 20_000})
	return nil
}

// recordRuns makes the runs that are replayed.
func (m *machine) recordRuns(ctx context.Context) (err error) {
	m.audit, m.more = true, map[string]any{"runs": map[string]any{"keep": "1h"}, "sandbox": map[string]any{"calls": 2 * replayCalls}}
	p, err := m.startBridge(ctx, 10)
	m.audit, m.more = false, nil
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	made := &replayed{config: m.config(), env: m.environ()}
	for _, run := range []struct {
		id    *string
		calls int
	}{{&made.short, 1}, {&made.long, replayCalls}} {
		code := fmt.Sprintf(`let n = 0; while (n < %d) n += (await Promise.all(Array.from({length: Math.min(100, %[1]d)}, (_, id) => codemode.bench__get_issue_0({id})))).length; return n`, run.calls)
		result, err := p.call(ctx, "eval", map[string]any{"code": code})
		if err != nil {
			return err
		}
		structured, err := json.Marshal(result.StructuredContent)
		if err != nil {
			return err
		}
		var answer struct {
			Result int
			Run    string
		}
		if err := json.Unmarshal(structured, &answer); err != nil || answer.Result != run.calls {
			return fmt.Errorf("a run of %d calls to replay returned %s", run.calls, structured)
		}
		*run.id = answer.Run
	}
	m.replayed = made
	return nil
}
