package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codemode-bridge/sandbox/wire"
)

// A machine starts the processes that are measured.
type machine struct {
	bridge, scratch string
	rounds          int
	longRows        int // of a long audit log
	configs         int
	audit           bool           // bridges keep an audit log
	shared          bool           // windows share a bridge in the background
	more            map[string]any // further parts of a bridge's configuration

	// What is made once, for all rounds.
	long     string // the file of a long audit log
	replayed *replayed
}

// config is the configuration of the last bridge.
func (m *machine) config() string {
	return filepath.Join(m.scratch, fmt.Sprintf("config%d.json", m.configs))
}

// environ is the environment of a process, so that it keeps its files below scratch.
func (m *machine) environ() []string {
	return append(os.Environ(),
		"XDG_CONFIG_HOME="+m.scratch, "XDG_STATE_HOME="+filepath.Join(m.scratch, strconv.Itoa(m.configs)), "XDG_CACHE_HOME="+filepath.Join(m.scratch, strconv.Itoa(m.configs)))
}

// A peer is a started process with the client's session to it.
type peer struct {
	*mcp.ClientSession
	pid    int
	stderr *bytes.Buffer
}

// start runs a command and connects a client to its stdin and stdout.
func (m *machine) start(ctx context.Context, cmd *exec.Cmd) (*peer, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = m.environ()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	// Nearly all stdio clients speak a protocol with sessions.
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w\n%s", cmd, err, stderr.String())
	}
	return &peer{session, cmd.Process.Pid, &stderr}, nil
}

// startUpstream starts this program as the upstream, without a bridge.
func (m *machine) startUpstream(ctx context.Context, tools int) (*peer, error) {
	return m.start(ctx, exec.CommandContext(ctx, os.Args[0], upstreamArg, "-tools", strconv.Itoa(tools)))
}

// startBridge starts the bridge with such an upstream, or with none if tools is
// negative.
func (m *machine) startBridge(ctx context.Context, tools int) (*peer, error) {
	servers := make(map[string]any)
	if tools >= 0 {
		self, err := filepath.Abs(os.Args[0])
		if err != nil {
			return nil, err
		}
		servers["bench"] = map[string]any{"command": self, "args": []string{upstreamArg, "-tools", strconv.Itoa(tools)}}
	}
	parts := map[string]any{"servers": servers, "audit": map[string]any{"enabled": m.audit}}
	maps.Copy(parts, m.more)
	config, err := json.Marshal(parts)
	if err != nil {
		return nil, err
	}
	m.configs++
	path := m.config()
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return nil, err
	}
	args := []string{"run", "--config", path}
	if !m.shared {
		args = append(args, "--alone")
	}
	p, err := m.start(ctx, exec.CommandContext(ctx, m.bridge, args...))
	if err != nil || tools < 0 {
		return p, err
	}
	// The upstream needs a moment to list ten thousand tools.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := p.eval(ctx, `return await codemode.bench__noop({})`, `"ok"`)
		if err == nil {
			return p, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(err, p.Close())
		}
	}
}

// call calls a tool. A result with isError is returned as an error.
func (p *peer) call(ctx context.Context, tool string, args any) (*mcp.CallToolResult, error) {
	result, err := p.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w\n%s", tool, err, p.stderr.String())
	}
	if result.IsError {
		text, _ := json.Marshal(result.Content)
		return nil, fmt.Errorf("%s answered with an error: %s", tool, text)
	}
	return result, nil
}

// eval runs a script and checks what it returns.
func (p *peer) eval(ctx context.Context, code, want string) error {
	result, err := p.call(ctx, "eval", map[string]any{"code": code})
	if err != nil {
		return err
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return err
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(structured, &answer); err != nil || string(answer.Result) != want {
		return fmt.Errorf("script %q returned %s, want %s", code, structured, want)
	}
	return nil
}

// manyTools compares a bridge with 10,000 tools with one with 10, which is the "direct"
// column of its rows. Both list the same tools of their own: beside 10 tools there is
// nothing to search for, and a list of eval alone is sooner read by a client than one of
// three tools, however many tools are behind it.
func (m *machine) manyTools(ctx context.Context, t *table) (err error) {
	m.more = map[string]any{"surface": "full"}
	defer func() { m.more = nil }()
	few, err := m.startBridge(ctx, 10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.Close()) }()
	many, err := m.startBridge(ctx, 10_000)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, many.Close()) }()

	const rare = "ticket 9999"
	search := func(p *peer) func() error {
		return func() error {
			_, err := p.call(ctx, "search_tools", map[string]any{"query": rare})
			return err
		}
	}
	list := func(p *peer) func() error {
		return func() error { _, err := p.ListTools(ctx, nil); return err }
	}
	eval := func(p *peer) func() error {
		return func() error { return p.eval(ctx, `return await codemode.bench__get_issue_0({id: 1})`, `"ok"`) }
	}
	for _, row := range []struct {
		what      string
		few, many func() error
		rounds    int
		want      target
	}{
		{"10,000 tools: 1 call in 1 eval, beside 10 tools", eval(few), eval(many), m.rounds / 2, target{ratio: 1.25}},
		{"10,000 tools: tools/list, beside 10 tools", list(few), list(many), 5 * m.rounds, target{ratio: 1.25}},
		{"10,000 tools: search_tools, beside 10 tools", search(few), search(many), m.rounds / 2, target{time: 5 * time.Millisecond}},
	} {
		medians, err := alternate(max(row.rounds, 5), row.few, row.many)
		if err != nil {
			return fmt.Errorf("%s: %w", row.what, err)
		}
		t.times(row.what, medians[0], medians[1], row.want)
	}
	listed, err := many.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, tool := range listed.Tools {
		if tool.Name == "eval" {
			t.bytes("10,000 tools: description of eval", int64(len(tool.Description)), target{bytes: 2049})
		}
	}
	return nil
}

// workers measures how long a worker takes to be ready.
func (m *machine) workers(ctx context.Context, t *table) error {
	worker := filepath.Join(filepath.Dir(m.bridge), "codemode-worker"+filepath.Ext(m.bridge))
	medians, err := alternate(max(m.rounds/10, 5), func() error { return startWorker(ctx, worker) })
	if err == nil {
		t.times("worker start, until it is ready", 0, medians[0], target{})
	}
	return err
}

// starts measures how long a bridge takes to be ready, with an empty log and with a long
// one.
func (m *machine) starts(ctx context.Context, t *table) error {
	long, err := m.longLog(ctx)
	if err != nil {
		return err
	}
	m.audit = true // as it is by default
	defer func() { m.audit, m.more = false, nil }()
	for _, row := range []struct {
		what string
		more map[string]any
	}{
		{"start to ready, no upstreams", nil},
		{fmt.Sprintf("start to ready, a log of %d rows", m.longRows), map[string]any{"audit": map[string]any{"path": long}}},
	} {
		m.more = row.more
		// Until initialize is answered; ending the process does not count.
		var ready []time.Duration
		for range max(m.rounds/10, 5) {
			start := time.Now()
			p, err := m.startBridge(ctx, -1)
			if err != nil {
				return err
			}
			ready = append(ready, time.Since(start))
			if err := p.Close(); err != nil {
				return err
			}
		}
		t.times(row.what, 0, median(ready), target{time: 100 * time.Millisecond})
	}
	return nil
}

// startWorker starts a worker, waits until it is ready, and ends it.
func startWorker(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = []string{}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Process.Kill()
	conn := wire.New(stdout, stdin)
	if err := conn.Send(wire.KindHello, wire.Hello{Version: wire.Version, Heap: 256 << 20}); err != nil {
		return err
	}
	frame, err := conn.Read()
	if err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	if frame.Kind != wire.KindReady {
		return fmt.Errorf("starting %s: it answered with a %s frame", path, frame.Kind)
	}
	stdin.Close()
	cmd.Wait()
	return nil
}

// memory measures the resident sizes of a bridge that has just answered and of the
// workers that it keeps ready, which only Linux tells.
func (m *machine) memory(ctx context.Context, t *table) (err error) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		fmt.Fprintln(t.w, "memory: not measured, there is no /proc here")
		return nil
	}
	m.audit = true // as it is by default
	defer func() { m.audit = false }()
	p, err := m.startBridge(ctx, 10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.eval(ctx, `return await codemode.bench__noop({})`, `"ok"`); err != nil {
		return err
	}
	// The garbage collector returns memory a while after the last call.
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	resident, err := residentBytes(p.pid)
	if err != nil {
		return err
	}
	t.bytes("resident, idle bridge", resident, target{bytes: 40 << 20})

	workers, err := children(p.pid, "codemode-worker")
	if err != nil {
		return err
	}
	var largest int64
	for _, pid := range workers {
		n, err := residentBytes(pid)
		if err != nil {
			return err
		}
		largest = max(largest, n)
	}
	t.bytes("resident, the largest worker", largest, target{bytes: 12 << 20})
	return nil
}
