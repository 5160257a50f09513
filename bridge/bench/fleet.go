package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"codemode-bridge/bridge/pgtest"
)

// A noter is a server in this process, over HTTP, that notes when each key came with a
// call. Policy has people asked about its tool ask.
type noter struct {
	url  string
	stop func()

	mu sync.Mutex
	at map[string]time.Time
}

func newNoter() (*noter, error) {
	n := &noter{at: make(map[string]time.Time)}
	server := mcp.NewServer(&mcp.Implementation{Name: "noter", Version: "1.0.0"}, nil)
	for _, name := range []string{"note", "ask"} {
		tool := &mcp.Tool{Name: name, Description: "Notes a key", InputSchema: json.RawMessage(`{"type":"object","properties":{"key":{"type":"string"}}}`)}
		server.AddTool(tool, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			now := time.Now()
			var args struct{ Key string }
			if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
				return nil, err
			}
			if args.Key != "" {
				n.mu.Lock()
				n.at[args.Key] = now
				n.mu.Unlock()
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted"}}}, nil
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web := &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)}
	go web.Serve(l)
	n.url, n.stop = "http://"+l.Addr().String(), func() { web.Close() }
	return n, nil
}

// await returns when a key came, once it has.
func (n *noter) await(ctx context.Context, key string) (time.Time, error) {
	for {
		n.mu.Lock()
		at, ok := n.at[key]
		n.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return at, fmt.Errorf("the call %s is not made: %w", key, ctx.Err())
		}
	}
}

// A database is a PostgreSQL of the benchmark's own. Unlike one for tests it waits for
// the disk.
type database struct {
	*pgtest.Server
	sql *sql.DB
	pid int
}

func startDatabase() (*database, error) {
	server, err := pgtest.Start("fsync=on", "shared_buffers=128MB", "max_connections=200", "max_wal_size=4GB")
	if err != nil {
		return nil, err
	}
	d := &database{Server: server}
	if d.sql, err = sql.Open("pgx", server.URL("postgres", "public")); err != nil {
		return nil, errors.Join(err, d.close())
	}
	text, err := os.ReadFile(server.Data() + "/postmaster.pid")
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	d.pid, err = strconv.Atoi(string(first))
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) close() (err error) {
	if d.sql != nil {
		err = d.sql.Close()
	}
	d.Stop()
	return err
}

// number is what a query of one number returns.
func (d *database) number(ctx context.Context, query string) (n int64, err error) {
	err = d.sql.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// processor is the processor time of the server: of its children, and what it counts of
// those that have ended.
func (d *database) processor() (time.Duration, error) {
	backends, err := children(d.pid, "postgres")
	if err != nil {
		return 0, err
	}
	ticks, err := statTicks(d.pid, 4)
	if err != nil {
		return 0, err
	}
	for _, pid := range backends {
		if n, err := statTicks(pid, 2); err == nil { // else it has ended
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// commits is how long a commit of one row takes in this database, by itself.
func (d *database) commits(ctx context.Context, n int) ([]time.Duration, error) {
	if _, err := d.sql.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS floor (n bigint)"); err != nil {
		return nil, err
	}
	conn, err := d.sql.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	taken, err := interleave(n, func() error {
		_, err := conn.ExecContext(ctx, "INSERT INTO floor VALUES (1)")
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken[0], nil
}

// A site is a bridge with an approval page.
type site struct {
	*endpoint
	*person
	said *talk
}

// A talk is what a bridge says as it starts.
type talk struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *talk) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *talk) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// after is the address that a line has after a word; empty until there is one.
func (t *talk) after(word string) string {
	for line := range strings.Lines(t.String()) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == word {
			return words[1]
		}
	}
	return ""
}

const fleetKey = "the key of the benchmark's store"

// fleetConfig is the configuration of bridges that are measured: with a store in a schema
// of a database, or with more in its place.
func fleetConfig(n *noter, more map[string]any) map[string]any {
	sum := sha256.Sum256([]byte(token))
	config := map[string]any{
		"id":      "fleet",
		"servers": map[string]any{"n": map[string]any{"url": n.url}},
		"http":    map[string]any{"maxSessions": 100_000},
		"runs":    map[string]any{"keep": "1h"},
		"approvals": map[string]any{"listen": "127.0.0.1:0", "perBridge": 1000, "approvers": []any{
			map[string]any{"name": "bench", "role": "admin", "sha256": hex.EncodeToString(sum[:])}}},
		"evaluation": map[string]any{"defaultProfile": "p", "profiles": map[string]any{
			"p": map[string]any{"default": "allow", "asklist": []string{"n__ask"}, "elicitationFallback": "queue"}}},
	}
	for name, part := range more {
		config[name] = part
	}
	return config
}

// inDatabase are the parts of a configuration that keep the store in a schema.
func (d *database) inDatabase(schema string) map[string]any {
	return map[string]any{"store": strings.Replace(d.URL("postgres", schema), pgtest.Password, "${STORE_PASSWORD}", 1), "storeKey": "${STORE_KEY}"}
}

// site starts a bridge that serves, with a state folder of its own, and waits until it is
// ready.
func (m *machine) site(ctx context.Context, config map[string]any) (*site, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	m.configs++
	if err := os.WriteFile(m.config(), text, 0o600); err != nil {
		return nil, err
	}
	s := &site{endpoint: new(endpoint), said: new(talk)}
	s.cmd = exec.CommandContext(ctx, m.bridge, "serve", "--config", m.config(), "--listen", "127.0.0.1:0")
	s.cmd.Env = append(m.environ(), "STORE_PASSWORD="+pgtest.Password, "STORE_KEY="+fleetKey)
	s.cmd.Stderr = s.said
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(25 * time.Millisecond) {
		if s.endpoint.url = s.said.after("endpoint"); s.endpoint.url == "" || !s.ready() {
			continue
		}
		if page, _, _ := strings.Cut(s.said.after("approve"), "/login"); page != "" {
			s.person = &person{page}
			return s, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("starting %s serve: not ready\n%s", m.bridge, s.said), s.close())
}

// close ends the bridge at once: one that is told to end would wait for a load balancer.
func (s *site) close() error {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	return nil
}

// ready reports whether the bridge says that it is.
func (s *site) ready() bool {
	answer, err := http.Get(strings.TrimSuffix(s.endpoint.url, "/mcp") + "/readyz")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// sites starts n bridges with one store, one after the other.
func (m *machine) sites(ctx context.Context, n int, config map[string]any) (list []*site, err error) {
	for range n {
		s, err := m.site(ctx, config)
		if err != nil {
			return nil, errors.Join(err, closeSites(list))
		}
		list = append(list, s)
	}
	return list, nil
}

func closeSites(list []*site) (err error) {
	for _, s := range list {
		err = errors.Join(err, s.close())
	}
	return err
}

// A shown is a question that a bridge has shown on a stream of events.
type shown struct {
	run, id string
	at      time.Time
}

// questions follows the questions of all runs as an open page does, until ctx ends.
func (s *site) questions(ctx context.Context) (<-chan shown, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.person.url+"/api/events", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s/api/events answered %s", s.person.url, resp.Status)
	}
	all := make(chan shown, 1000)
	go func() {
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var e struct{ Type, ID, Run string }
			if json.Unmarshal([]byte(data), &e) == nil && e.Type == "pending" {
				all <- shown{e.Run, e.ID, time.Now()}
			}
		}
	}()
	return all, nil
}
