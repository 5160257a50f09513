package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An endpoint is a bridge that serves many sessions over HTTP.
type endpoint struct {
	cmd    *exec.Cmd
	url    string
	stderr bytes.Buffer
}

// serve starts a bridge with these servers, with a limit on CPU time that a hostile
// script soon meets.
func (m *machine) serve(ctx context.Context, servers map[string]any) (*endpoint, error) {
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	return m.serveConfig(ctx, addresses[0], map[string]any{
		"servers": servers, "http": map[string]any{"listen": addresses[0]}, "approvals": map[string]any{"listen": "off"}, "sandbox": map[string]any{"cpu": "1s"},
	})
}

// serveConfig starts a bridge that listens at an address.
func (m *machine) serveConfig(ctx context.Context, address string, config map[string]any) (*endpoint, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	m.configs++
	if err := os.WriteFile(m.config(), text, 0o600); err != nil {
		return nil, err
	}
	e := &endpoint{url: "http://" + address + "/mcp"}
	return e, m.restart(ctx, e)
}

// restart starts the bridge of the last configuration, and waits until it is
// ready.
func (m *machine) restart(ctx context.Context, e *endpoint) error {
	e.cmd = exec.CommandContext(ctx, m.bridge, "serve", "--config", m.config())
	e.cmd.Env, e.cmd.Stderr = m.environ(), &e.stderr
	if err := e.cmd.Start(); err != nil {
		return err
	}
	for range 200 {
		if answer, err := http.Get(strings.TrimSuffix(e.url, "/mcp") + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		time.Sleep(25 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("starting %s serve: not ready\n%s", m.bridge, e.stderr.String()), e.close())
}

// session opens a new session.
func (e *endpoint) session(ctx context.Context) (*peer, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: e.url}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w\n%s", e.url, err, e.stderr.String())
	}
	return &peer{s, e.cmd.Process.Pid, &e.stderr}, nil
}

// sessions opens n of them.
func (e *endpoint) sessions(ctx context.Context, n int) (list []*peer, err error) {
	for range n {
		p, err := e.session(ctx)
		if err != nil {
			return nil, errors.Join(err, closeAll(list))
		}
		list = append(list, p)
	}
	return list, nil
}

func closeAll(list []*peer) (err error) {
	for _, p := range list {
		err = errors.Join(err, p.Close())
	}
	return err
}

// close ends the bridge. With what status it ends does not matter.
func (e *endpoint) close() error {
	if err := e.cmd.Process.Signal(os.Interrupt); err != nil {
		_ = e.cmd.Process.Kill() // Windows has no interrupt
	}
	_ = e.cmd.Wait()
	return nil
}

// resident is the size of the bridge and all its workers.
func (e *endpoint) resident() (total int64, err error) {
	workers, err := children(e.cmd.Process.Pid, "codemode-worker")
	if err != nil {
		return 0, err
	}
	for _, pid := range append(workers, e.cmd.Process.Pid) {
		n, err := residentBytes(pid)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// sessions measures what sessions cost.
func (m *machine) sessions(ctx context.Context, t *table) (err error) {
	e, err := m.serve(ctx, map[string]any{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	for _, measure := range []func(context.Context, *table, *endpoint) error{
		m.firstAndHundredth, m.growth, m.throughput,
	} {
		if err := measure(ctx, t, e); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) firstAndHundredth(ctx context.Context, t *table, e *endpoint) error {
	var first, hundredth []time.Duration
	for range max(m.rounds/20, 5) {
		p, err := e.session(ctx)
		if err != nil {
			return err
		}
		for i := range 100 {
			start := time.Now()
			if err := p.eval(ctx, `return 1`, `1`); err != nil {
				return err
			}
			switch i {
			case 0:
				first = append(first, time.Since(start))
			case 99:
				hundredth = append(hundredth, time.Since(start))
			}
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	t.times("a session's hundredth eval, beside its first", median(first), median(hundredth), target{})
	return nil
}

// growth compares the memory after a hundred evals with that after a
// thousand more.
func (m *machine) growth(ctx context.Context, t *table, e *endpoint) error {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		fmt.Fprintln(t.w, "growth: not measured, there is no /proc here")
		return nil
	}
	p, err := e.session(ctx)
	if err != nil {
		return err
	}
	var sizes []int64
	for _, n := range []int{100, 1000} {
		for range n {
			if err := p.eval(ctx, `const a = Array.from({length: 1000}, (_, i) => ({i})); return a.length`, `1000`); err != nil {
				return err
			}
		}
		size, err := e.resident()
		if err != nil {
			return err
		}
		sizes = append(sizes, size)
	}
	t.bytes("resident, bridge and workers, 1,100 evals", sizes[1], target{})
	t.bytes("of that, more than after 100 evals", max(0, sizes[1]-sizes[0]), target{bytes: 8 << 20})
	return p.Close()
}

// throughput runs evals in one, two and eight sessions at once.
func (m *machine) throughput(ctx context.Context, t *table, e *endpoint) error {
	for _, n := range []int{1, 2, 8} {
		list, err := e.sessions(ctx, n)
		if err != nil {
			return err
		}
		each := max(4*m.rounds/n, 20)
		errs := make([]error, n)
		var all sync.WaitGroup
		start := time.Now()
		for i, p := range list {
			all.Go(func() {
				for range each {
					if errs[i] = p.eval(ctx, `return 1`, `1`); errs[i] != nil {
						return
					}
				}
			})
		}
		all.Wait()
		took := time.Since(start)
		if err := errors.Join(append(errs, closeAll(list))...); err != nil {
			return err
		}
		t.rate(fmt.Sprintf("evals a second, %d sessions at once", n), float64(n*each)/took.Seconds(), target{})
	}
	return nil
}
