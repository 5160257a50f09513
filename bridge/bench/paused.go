package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	parkedRuns = 10
	token      = "cmb_the-benchmark's-own-token-0123456789"
	pausing    = `const [a] = await Promise.all([codemode.utils__base64_encode({text: "a"})]); return await codemode.utils__hash({text: "b" + Math.random()})`
)

// paused measures runs that wait for a person: what a waiting run costs, and how long
// after the approval it ends, in the worker that it kept and, if its bridge was killed
// meanwhile, in another bridge.
func (m *machine) paused(ctx context.Context, t *table) (err error) {
	ports, err := freeAddresses(2)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(token))
	e, err := m.serveConfig(ctx, ports[0], map[string]any{
		"servers": map[string]any{"utils": map[string]any{"type": "builtin", "builtin": "utils"}},
		"http":    map[string]any{"listen": ports[0]},
		"approvals": map[string]any{"listen": ports[1], "approvers": []any{
			map[string]any{"name": "bench", "role": "admin", "sha256": hex.EncodeToString(sum[:])}}},
		"evaluation": map[string]any{"defaultProfile": "p", "profiles": map[string]any{
			"p": map[string]any{"asklist": []string{"utils__hash"}, "elicitationFallback": "queue"}}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	p := &person{"http://" + ports[1]}

	asked, err := p.start(ctx, parkedRuns)
	if err != nil {
		return err
	}
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		fmt.Fprintln(t.w, "parked runs: not measured, there is no /proc/PID/smaps_rollup here")
	} else {
		workers, err := children(e.cmd.Process.Pid, "codemode-worker")
		if err != nil {
			return err
		}
		var all int64
		for _, pid := range workers {
			n, err := sharedBytes(pid)
			if err != nil {
				return err
			}
			all += n
		}
		t.bytes(fmt.Sprintf("a parked run, of %d, in its worker (PSS)", parkedRuns), all/int64(len(workers)), target{bytes: 10 << 20})
	}
	took, err := p.answer(ctx, asked)
	if err != nil {
		return err
	}
	t.times("from a yes to the end, parked", 0, median(took), target{})

	if asked, err = p.start(ctx, parkedRuns); err != nil {
		return err
	}
	if err := e.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = e.cmd.Wait() // it was killed
	if err := m.restart(ctx, e); err != nil {
		return err
	}
	if took, err = p.answer(ctx, asked); err != nil {
		return err
	}
	t.times("from a yes to the end, after a kill -9", 0, median(took), target{})
	return nil
}

// freeAddresses returns addresses on loopback on which nobody listens.
func freeAddresses(n int) (list []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list, nil
}

// A person starts runs and answers what they ask.
type person struct{ url string }

// start starts n runs that ask, and returns the requests by run.
func (p *person) start(ctx context.Context, n int) (map[string]string, error) {
	asked := make(map[string]string)
	for range n {
		var run struct {
			Run     string
			Pending []string
		}
		if err := p.do(ctx, "POST", "/api/runs?wait=20s", map[string]any{"code": pausing}, &run); err != nil {
			return nil, err
		}
		if len(run.Pending) != 1 {
			return nil, fmt.Errorf("run %s asks %d times", run.Run, len(run.Pending))
		}
		asked[run.Run] = run.Pending[0]
	}
	return asked, nil
}

// answer approves each request, and returns how long it took until its run ended.
func (p *person) answer(ctx context.Context, asked map[string]string) (took []time.Duration, err error) {
	for run, id := range asked {
		var request struct{ Digest string }
		if err := p.do(ctx, "GET", "/api/pending/"+id, nil, &request); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := p.do(ctx, "POST", "/api/decide/"+id, map[string]any{"decision": "approve", "digest": request.Digest}, nil); err != nil {
			return nil, err
		}
		var result struct{ State string }
		for result.State == "" || result.State == "paused" {
			if err := p.do(ctx, "GET", "/api/result/"+run+"?wait=20s", nil, &result); err != nil {
				return nil, err
			}
		}
		if took = append(took, time.Since(start)); result.State != "done" {
			return nil, fmt.Errorf("run %s is %s", run, result.State)
		}
	}
	return took, nil
}

// do sends a request and reads the answer.
func (p *person) do(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s\n%s", method, path, resp.Status, strings.TrimSpace(string(text)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
