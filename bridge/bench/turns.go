package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// turnSessions take turns: so many that no bridge keeps a worker for each, so nearly
// every eval begins with a worker that is new.
const turnSessions = 1000

// turns measures many sessions that take turns: what each costs while it is idle, and how
// many evals a core serves. Cores are counted by the processor time of the bridge and of all
// its workers, so that neither the client nor what else the machine does counts.
func (m *machine) turns(ctx context.Context, t *table) (err error) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		fmt.Fprintln(t.w, "sessions taking turns: not measured, there is no /proc here")
		return nil
	}
	e, err := m.serve(ctx, map[string]any{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	before, err := residentBytes(e.cmd.Process.Pid)
	if err != nil {
		return err
	}
	list := make([]*plainSession, turnSessions)
	for i := range list {
		if list[i], err = e.plain(ctx); err != nil {
			return err
		}
	}
	after, err := residentBytes(e.cmd.Process.Pid)
	if err != nil {
		return err
	}
	t.bytes(fmt.Sprintf("resident, an idle session of %d", turnSessions), max(0, after-before)/turnSessions, target{bytes: 80 << 10})

	cpu, err := processorTime(e.cmd.Process.Pid)
	if err != nil {
		return err
	}
	const atOnce = 4
	taken := make([]time.Duration, len(list))
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for k := range atOnce {
		all.Go(func() {
			for i := k; i < len(list) && errs[k] == nil; i += atOnce {
				start := time.Now()
				errs[k] = list[i].eval(ctx)
				taken[i] = time.Since(start)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	used, err := processorTime(e.cmd.Process.Pid)
	if err != nil {
		return err
	}
	rate := float64(len(list)) / (used - cpu).Seconds()
	t.rate(fmt.Sprintf("evals a second a core, %d sessions in turn", turnSessions), rate, target{rate: 200})
	slices.Sort(taken)
	t.times("p99 of these, beside their p50", taken[len(taken)/2], taken[len(taken)*99/100], target{ratio: 3})
	return nil
}

// A plainSession is a session that costs its client little: plain requests, and no stream.
type plainSession struct {
	url, id string
}

// plain opens a session.
func (e *endpoint) plain(ctx context.Context) (*plainSession, error) {
	s := &plainSession{url: e.url}
	if _, err := s.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`); err != nil {
		return nil, err
	}
	_, err := s.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s, err
}

func (s *plainSession) eval(ctx context.Context) error {
	answer, err := s.post(ctx, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"return 1"}}}`)
	if err == nil && !bytes.Contains(answer, []byte(`"structuredContent"`)) {
		err = fmt.Errorf("eval answered %s", answer)
	}
	return err
}

// post posts a message and returns the answer's body.
func (s *plainSession) post(ctx context.Context, message string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 {
		return nil, fmt.Errorf("%s answered %s: %s", s.url, res.Status, body)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		s.id = id
	}
	return body, nil
}

// processorTime returns the processor time of a process and of its children, those that
// have ended and the workers that have not (Linux).
func processorTime(pid int) (time.Duration, error) {
	workers, err := children(pid, "codemode-worker")
	if err != nil {
		return 0, err
	}
	ticks, err := statTicks(pid, 4)
	if err != nil {
		return 0, err
	}
	for _, worker := range workers {
		n, err := statTicks(worker, 2)
		if err != nil {
			continue // it has ended: what it used is with its parent's next count
		}
		ticks += n
	}
	const tick = 10 * time.Millisecond // 100 Hz on every Linux that Go runs on
	return time.Duration(ticks) * tick, nil
}

// statTicks adds the first n of utime, stime, cutime and cstime in /proc/PID/stat.
func statTicks(pid, n int) (ticks int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses that may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const utime = 14 - 3
	if len(fields) < utime+4 {
		return 0, fmt.Errorf("/proc/%d/stat has only %d fields", pid, len(fields))
	}
	for _, field := range fields[utime : utime+n] {
		value, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += value
	}
	return ticks, nil
}
