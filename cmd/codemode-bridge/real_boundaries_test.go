//go:build real || long

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two configurations share a state folder. Their bridges are killed and restarted, their
// files edited meanwhile, and every bridge tries to resume every run. Whatever the order,
// a run calls only the server of its configuration; no call is made twice, none after a
// denial, and none without an approval if the policy asked for one when the run began.
func TestRealBoundaries(t *testing.T) { playReals(t, 80) }

// TestLongBoundaries is TestRealBoundaries in many more orders.
func TestLongBoundaries(t *testing.T) { playReals(t, 1000) }

// playReals plays the orders of n seeds.
func playReals(t *testing.T, n int64) {
	programs(t)
	seeds := make(chan int64)
	var wait sync.WaitGroup
	for range 24 {
		wait.Go(func() {
			for seed := range seeds {
				playReal(t, seed)
			}
		})
	}
	for seed := range n {
		seeds <- seed
	}
	close(seeds)
	wait.Wait()
}

// A street is two configurations of one user.
type street struct {
	t      *testing.T
	dir    string
	rand   *rand.Rand
	houses []*house
	steps  []string
	began  map[string]*realRun // by run
	runs   []string
	calls  int

	mu    sync.Mutex
	yeses map[string]bool // by call
	noes  map[string]bool
}

// A house is one of the two configurations of a street.
type house struct {
	*home
	name   string
	server int    // which of its two servers is db
	asks   string // what its policy says of db: asklist, denylist, or nothing
	client *client
}

// A realRun is a script that was sent to a bridge.
type realRun struct {
	house  *house
	asks   string
	secret string
}

// callWord is the argument by which a call is known.
var callWord = regexp.MustCompile(`call-\d+`)

func playReal(t *testing.T, seed int64) {
	dir, err := os.MkdirTemp("", "street")
	if err != nil {
		t.Error(err)
		return
	}
	defer os.RemoveAll(dir)
	s := &street{t: t, dir: dir, rand: rand.New(rand.NewSource(seed)), began: map[string]*realRun{}, yeses: map[string]bool{}, noes: map[string]bool{}}
	owner := map[string]*realRun{} // by call
	for _, name := range []string{"a", "b"} {
		h := &house{home: &home{t: t, dir: dir, config: filepath.Join(dir, name+".json")}, name: name, asks: "asklist"}
		h.write(s)
		s.houses = append(s.houses, h)
	}
	for range 7 {
		s.step(owner)
	}
	for _, h := range s.houses {
		h.kill()
	}
	if bad := s.wrong(owner); len(bad) > 0 {
		t.Errorf("seed %d:\n%s\nafter\n%s", seed, strings.Join(bad, "\n"), strings.Join(s.steps, "\n"))
	}
}

func (s *street) log(format string, args ...any) {
	s.steps = append(s.steps, fmt.Sprintf(format, args...))
}

// write writes the configuration.
func (h *house) write(s *street) {
	profile := map[string]any{"elicitationFallback": "queue"}
	if h.asks != "" {
		profile[h.asks] = []string{"db__*"}
	}
	self, err := os.Executable()
	if err != nil {
		h.t.Error(err)
	}
	text, err := json.Marshal(map[string]any{
		"servers":    map[string]any{"db": map[string]any{"command": self, "env": map[string]string{effectsVariable: h.effects(h.server)}}},
		"evaluation": map[string]any{"defaultProfile": "p", "clientPatience": "1s", "profiles": map[string]any{"p": profile}},
		"approvals":  map[string]any{"approvers": []any{json.RawMessage(approverJSON("ann", "admin", annsToken))}},
	})
	if err == nil {
		err = os.WriteFile(h.config, text, 0o600)
	}
	if err != nil {
		h.t.Error(err)
	}
}

func (h *house) effects(server int) string {
	return filepath.Join(h.dir, fmt.Sprintf("effects-%s-%d", h.name, server))
}

// open starts the bridge, if it is not running. Its person says yes, no, or nothing.
func (h *house) open(s *street) *client {
	if h.client != nil {
		return h.client
	}
	c := &client{process: h.command("run", "--alone")}
	person := func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		text, err := json.Marshal(r.Params)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		said := []string{"once", "no", "", ""}[s.rand.Intn(4)]
		for _, call := range callWord.FindAllString(string(text), -1) {
			s.yeses[call] = s.yeses[call] || said == "once"
			s.noes[call] = s.noes[call] || said == "no"
		}
		s.steps = append(s.steps, fmt.Sprintf("the person at %s says %q to %v", h.name, said, callWord.FindAllString(string(text), -1)))
		s.mu.Unlock()
		if said == "" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": said}}, nil
	}
	var err error
	c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: person}).
		Connect(h.t.Context(), &mcp.CommandTransport{Command: c.process}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		h.t.Errorf("%v\n%s", err, h.talk.String())
		return nil
	}
	h.client = c
	return c
}

// kill kills the bridge, if it is running.
func (h *house) kill() {
	if h.client != nil {
		h.client.process.Process.Kill()
		h.client.Close()
		h.client = nil
	}
}

// tell has a house's client call a tool, and returns the answer.
func (s *street) tell(h *house, tool string, args map[string]any) string {
	c := h.open(s)
	if c == nil {
		return ""
	}
	res, err := c.CallTool(s.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || len(res.Content) == 0 {
		s.t.Errorf("%s at %s: %v\n%s", tool, h.name, err, h.talk.String())
		return ""
	}
	return res.Content[0].(*mcp.TextContent).Text
}

func (s *street) step(owner map[string]*realRun) {
	s.mu.Lock()
	h, what := s.houses[s.rand.Intn(2)], s.rand.Intn(10)
	kill, again, secret := s.rand.Intn(2) == 0, s.rand.Intn(2), s.rand.Intn(2) == 0
	var run string
	if len(s.runs) > 0 {
		run = s.runs[s.rand.Intn(len(s.runs))]
	}
	s.mu.Unlock()
	if run == "" && what > 3 {
		what = 0
	}
	switch {
	case what <= 2: // a script of two calls
		first, second := fmt.Sprintf("call-%d", s.calls+1), fmt.Sprintf("call-%d", s.calls+2)
		s.calls += 2
		r := &realRun{house: h, asks: h.asks}
		owner[first], owner[second] = r, r
		s.log("%s is sent %s and %s, policy %q, server %d", h.name, first, second, h.asks, h.server)
		text := s.tell(h, "eval", map[string]any{"code": fmt.Sprintf(`try { await codemode.db__write({is: %q}) } catch {} await codemode.db__write({is: %q})`, first, second)})
		var paused struct{ Status, Run, Resume string }
		if json.Unmarshal([]byte(text), &paused) == nil && paused.Status == "paused" {
			r.secret = paused.Resume
			s.began[paused.Run] = r
			s.runs = append(s.runs, paused.Run)
		}
	case what == 3: // the bridge is killed, and its file edited
		h.kill()
		if kill {
			h.server = again
		}
		h.asks = []string{"asklist", "", "denylist", "asklist"}[again*2+len(s.steps)%2]
		h.write(s)
		confirm := h.command("config", "confirm", "--token-stdin", "--reason", "the test edits it")
		confirm.Stdin = strings.NewReader(annsToken + "\n")
		_ = confirm.Run() // nothing waits where the edit loosens nothing, or the file was never used
		s.log("%s is killed, and has policy %q and server %d", h.name, h.asks, h.server)
	case what <= 6: // a client goes on
		r, args := s.began[run], map[string]any{"run": run}
		if secret {
			args["resume"] = r.secret
		}
		text := s.tell(h, "eval_resume", args)
		s.log("%s's client goes on with %s of %s (secret %v): %.200s", h.name, run, r.house.name, secret, text)
		if r.house != h && !strings.Contains(text, "there is no run") {
			s.t.Errorf("%s went on with a run of %s: %s", h.name, r.house.name, text)
		}
	case what == 7: // the command line does
		if kill {
			s.began[run].house.kill()
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Second)
		defer cancel()
		cmd := h.command("runs", "resume", run)
		limited := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
		limited.Env = cmd.Env
		out, err := limited.CombinedOutput()
		s.log("%s's command line goes on with %s of %s: %v %.300s", h.name, run, s.began[run].house.name, err, out)
		if s.began[run].house != h && err == nil {
			s.t.Errorf("%s's command line went on with a run of %s: %s", h.name, s.began[run].house.name, out)
		}
	default: // an approver answers, where the run is
		s.approve(s.began[run].house, again == 0)
	}
}

// approve answers the open requests of a configuration on the command line: with yes,
// with yes to one of the calls that a request shows, or with no.
func (s *street) approve(h *house, yes bool) {
	list, err := h.command("approvals", "list", "--json").Output()
	var open []struct {
		ID, Run string
		Calls   []json.RawMessage // that it shows; the preview's are elsewhere
	}
	if err == nil {
		err = json.Unmarshal(list, &open)
	}
	if err != nil {
		s.t.Errorf("listing what is asked: %v: %s", err, list)
	}
	for _, q := range open {
		if r := s.began[q.Run]; r == nil || r.house != h {
			continue
		}
		s.mu.Lock()
		only := -1
		if len(q.Calls) > 1 && s.rand.Intn(3) == 0 {
			only = s.rand.Intn(len(q.Calls))
		}
		s.mu.Unlock()
		args := []string{"approvals", map[bool]string{true: "approve", false: "deny"}[yes], q.ID, "--token-stdin"}
		var allowed, refused []string
		for i, text := range q.Calls {
			var one struct{ Number int }
			if err := json.Unmarshal(text, &one); err != nil {
				s.t.Error(err)
			}
			call := callWord.FindString(string(text))
			switch {
			case !yes || only >= 0 && i != only:
				refused = append(refused, call)
				continue
			case i == only:
				args = append(args, "--rows", fmt.Sprint(one.Number))
			}
			allowed = append(allowed, call)
		}
		s.mu.Lock()
		for _, call := range allowed {
			s.yeses[call] = true
		}
		s.mu.Unlock()
		cmd := h.command(args...)
		cmd.Stdin = strings.NewReader(annsToken + "\n")
		err := cmd.Run()
		s.log("%s's approver says yes to %v and no to %v: %v", h.name, allowed, refused, err)
		if err != nil {
			continue
		}
		s.mu.Lock()
		for _, call := range refused {
			s.noes[call] = true
		}
		s.mu.Unlock()
	}
}

// wrong says what is wrong with the calls that reached servers.
func (s *street) wrong(owner map[string]*realRun) (bad []string) {
	reached := map[string]bool{}
	of := map[*realRun]string{}
	for _, h := range s.houses {
		for server := range 2 {
			text, err := os.ReadFile(h.effects(server))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.t.Error(err)
			}
			for line := range bytes.Lines(text) {
				call, at := callWord.FindString(string(line)), fmt.Sprint(h.name, server)
				r := owner[call]
				switch {
				case r.house != h:
					bad = append(bad, call+" reached a server of the other configuration")
				case of[r] != "" && of[r] != at:
					bad = append(bad, call+" reached another server than its run's other call")
				case reached[call]:
					bad = append(bad, call+" was sent twice")
				case s.noes[call]:
					bad = append(bad, call+" was sent although somebody said no")
				case r.asks == "denylist":
					bad = append(bad, call+" was sent although its run began under a policy that denies it")
				case r.asks == "asklist" && !s.yeses[call]:
					bad = append(bad, call+" was sent although nobody said yes")
				}
				reached[call], of[r] = true, at
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}
