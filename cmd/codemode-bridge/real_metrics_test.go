//go:build real

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// prometheusProgram finds one of the programs of Debian's package prometheus.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	if bin := os.Getenv("PROMETHEUS_BIN"); bin != "" {
		return filepath.Join(bin, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("no Prometheus is installed (package prometheus; PROMETHEUS_BIN names another folder of its programs): %v", err)
	}
	return path
}

// A prometheus is a real one, which scrapes a bridge and knows our alerts, with seconds
// in the place of minutes.
type prometheus struct{ address string }

func startPrometheus(t *testing.T, target, token string) prometheus {
	t.Helper()
	dir, deploy := t.TempDir(), filepath.Join(moduleRoot(t), "docs", "deploy", "metrics")
	rules, err := os.ReadFile(filepath.Join(deploy, "codemode.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	scrape, err := os.ReadFile(filepath.Join(deploy, "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	soon := strings.NewReplacer("15 * 60", "2").Replace(string(rules))
	soon = regexp.MustCompile(`for: \d+m`).ReplaceAllString(soon, "for: 1s")
	soon = regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(soon, "[10s]")
	soon = regexp.MustCompile(`offset \d+m`).ReplaceAllString(soon, "offset 10s")
	config := strings.NewReplacer("15s", "1s", "/etc/prometheus/codemode.token", filepath.Join(dir, "token"), "127.0.0.1:7422", target).Replace(string(scrape))
	config = "global: {evaluation_interval: 1s}\n" + config
	for name, text := range map[string]string{"codemode.rules.yml": soon, "prometheus.yml": config, "token": token + "\n"} {
		mustWrite(t, filepath.Join(dir, name), text)
	}
	p := prometheus{freeAddress(t)}
	cmd := exec.Command(prometheusProgram(t, "prometheus"), "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", p.address)
	var said talk
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it keeps nothing
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("[prometheus]\n%s", said.String())
		}
	})
	return p
}

// firing returns the names of the alerts that fire.
func (p prometheus) firing() (names []string) {
	answer, err := http.Get("http://" + p.address + "/api/v1/alerts")
	if err != nil {
		return nil // it is starting
	}
	defer answer.Body.Close()
	var says struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if json.NewDecoder(answer.Body).Decode(&says) != nil {
		return nil
	}
	for _, a := range says.Data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"])
		}
	}
	return names
}

// await waits until each of the alerts has fired.
func (p prometheus) await(t *testing.T, alerts ...string) {
	t.Helper()
	fired := map[string]bool{}
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		for _, name := range p.firing() {
			fired[name] = true
		}
		missing := slices.DeleteFunc(slices.Clone(alerts), func(name string) bool { return fired[name] })
		if len(missing) == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%q do not fire, only %q", missing, slices.Sorted(maps.Keys(fired)))
		}
	}
}

// faultyUpstream serves a tool that fails and one that never answers.
func faultyUpstream(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "faulty", Version: "1"}, nil)
	add := func(name string, do func(context.Context) string) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: do(ctx)}}}, nil
		})
	}
	add("fail", func(context.Context) string { return "no" })
	add("hang", func(ctx context.Context) string { <-ctx.Done(); return "" })
	site := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	return site.URL
}

// A real Prometheus scrapes the bridge with its token, and every alert that comes with it
// fires by its fault.
func TestRealMetrics(t *testing.T) {
	t.Parallel()
	promtool, deploy := prometheusProgram(t, "promtool"), filepath.Join(moduleRoot(t), "docs", "deploy", "metrics")
	for _, args := range [][]string{{"check", "rules", "codemode.rules.yml"}, {"test", "rules", "codemode.test.yml"}, {"check", "config", "--syntax-only", "prometheus.yml"}} {
		check := exec.Command(promtool, args...)
		check.Dir = deploy
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}

	const token = "s3cret-of-the-metrics"
	at, faulty, hook := freeAddress(t), faultyUpstream(t), newReceiver(t)
	hook.is(true, false)
	push, err := json.Marshal(hook.push())
	if err != nil {
		t.Fatal(err)
	}
	config := func(level string) string {
		return fmt.Sprintf(`{"servers": {"down": {"command": "false"}, "faulty": {"url": %q}, "lost": {"url": %q, "timeout": "200ms"}},
			"evaluation": {"defaultProfile": "work", "profiles": {"work": {"asklist": ["lost__fail"]}}},
			"sandbox": {"workers": 2, "warm": 0, "cpu": "50ms"}, "approvals": {"listen": "off"}, "log": {"level": %q},
			"metrics": {"listen": %q, "token": %q, "tools": 10}, "audit": {"push": %s}}`, faulty, faulty, level, at, token, push)
	}
	bridge := serve(t, config("info"))
	p := startPrometheus(t, at, token)
	client := func() *mcp.ClientSession {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "person", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				<-ctx.Done() // nobody answers
				return nil, ctx.Err()
			},
		}).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: bridge.endpoint, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	run := func(c *mcp.ClientSession, code string) {
		_, _ = c.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": code}}) // it fails, or ends with the test
	}
	go run(client(), `await codemode.lost__fail({})`) // asks
	faults, over := client(), make(chan struct{})
	faulting, enough := context.WithCancel(ctx)
	go func() {
		defer close(over)
		for faulting.Err() == nil {
			run(faults, `for (;;) {}`)
			run(faults, `for (let i = 0; i < 5; i++) { try { await codemode.faulty__fail({}) } catch {} }`)
			run(faults, `await codemode.lost__hang({})`)
		}
	}()
	p.await(t, "CodemodeServerDown", "CodemodeCallsFailing", "CodemodeCallsUnknown", "CodemodeQuestionsWaiting", "CodemodeWorkersKilled", "CodemodePushStalled")
	enough()
	<-over

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	check := exec.Command(promtool, "check", "metrics")
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(text), `codemode_push_waiting_records{to="webhook"} `) {
		t.Errorf("nothing waits to be pushed: %v\n%s", err, text)
	}
	check.Stdin = bytes.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}

	for range 2 { // there is room for one
		go run(client(), `await codemode.faulty__hang({})`)
	}
	p.await(t, "CodemodeRunsQueued")

	// The file of the log is gone, and somebody edits the configuration.
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(bridge.file), "codemode-bridge", "state", "audit.db"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("the logs are %q: %v", logs, err)
	}
	if err := os.Rename(logs[0], logs[0]+".gone"); err != nil {
		t.Fatal(err)
	}
	bridge.write(t, config("warn"))
	p.await(t, "CodemodeStoreUnwritable", "CodemodeAuditBacklog")
	stop()
	bridge.kill()
	p.await(t, "CodemodeBridgeDown")
}
