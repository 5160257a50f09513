package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles/known"
	"codemode-bridge/sandbox"
	"codemode-bridge/sandbox/worker"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A result is what became of a scenario under a setting.
type result struct {
	scenario scenario
	setting  setting
	arrived  bool // the attack succeeded
	asked    int  // questions about the attack
	twin     int  // questions about the twin
	failed   string
}

func (r result) String() string {
	arrived := "stopped"
	if r.arrived {
		arrived = "ARRIVED"
	}
	return fmt.Sprintf("%-10s %-40s %s after %d questions; the twin asks %d %s", r.setting.name, r.scenario.name, arrived, r.asked, r.twin, r.failed)
}

// playAll plays every scenario under every setting.
func playAll(ctx context.Context, all []scenario, with []setting, lists string) ([]result, error) {
	pool, err := sandbox.NewPool(sandbox.Options{Serve: worker.Serve, Warm: -1})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	folder, err := os.MkdirTemp("", "flows")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return nil, err
	}
	results := make([]result, len(all)*len(with))
	errs := make([]error, len(results))
	var playing sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0)+1)
	for i := range results {
		playing.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			results[i], errs[i] = play(ctx, pool, all[i/len(with)], with[i%len(with)], lists, folder)
		})
	}
	playing.Wait()
	return results, errors.Join(errs...)
}

// play plays a scenario under a setting: the attack and the twin, each in a session of its own.
func play(ctx context.Context, pool *sandbox.Pool, s scenario, with setting, lists, folder string) (result, error) {
	r := result{scenario: s, setting: with}
	cfg, err := with.policy()
	if err != nil {
		return r, fmt.Errorf("%s: %w", with.name, err)
	}
	fake := &servers{scenario: s, folder: folder}
	view, err := fake.view(cfg, lists)
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.name, err)
	}
	ws, err := workspace.New([]string{folder}, nil)
	if err != nil {
		return r, err
	}
	g := gate.New(view, gate.Options{Caller: fake, Recorder: ledger.Log{Handler: slog.DiscardHandler}})
	b := bridge.New(bridge.Options{Gate: g, Pool: pool, Upstreams: fake, Version: "bench", Logger: slog.New(slog.DiscardHandler),
		Where: bridge.Where{Workspace: func(context.Context, *mcp.ServerSession, bool) workspace.Workspace { return ws }}})
	defer b.Close(0)
	if r.asked, _, err = evaluate(ctx, b, s.Attack, folder); err != nil {
		return r, fmt.Errorf("%s: %w", s.name, err)
	}
	r.arrived = fake.arrived()
	if r.twin, r.failed, err = evaluate(ctx, b, s.Twin, folder); err != nil {
		return r, fmt.Errorf("%s: %w", s.name, err)
	}
	return r, nil
}

// evaluate runs scripts in a session, with a person who says no, and counts the questions. It says how the
// last of them failed that did.
func evaluate(ctx context.Context, b *bridge.Server, scripts []string, folder string) (asked int, failed string, err error) {
	var mu sync.Mutex
	client := mcp.NewClient(&mcp.Implementation{Name: "flows", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return &mcp.ElicitResult{Action: "decline"}, nil
		}})
	ours, theirs := mcp.NewInMemoryTransports()
	ctx, stop := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		b.Serve(ctx, ours)
	}()
	defer func() { stop(); <-served }()
	session, err := client.Connect(ctx, theirs, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return 0, "", err
	}
	for _, script := range scripts {
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": strings.ReplaceAll(script, "${WORKSPACE}", folder)}})
		if err != nil {
			return asked, failed, err
		}
		if text, ok := res.Content[0].(*mcp.TextContent); ok && res.IsError {
			failed, _, _ = strings.Cut(text.Text, "\n")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return asked, failed, nil
}

// servers are those of a scenario. They note what they are sent.
type servers struct {
	scenario scenario
	folder   string

	mu   sync.Mutex
	sent []sent
}

type sent struct {
	tool string
	args any
}

// Call answers as the scenario says.
func (f *servers) Call(_ context.Context, server, _, tool string, args json.RawMessage) (json.RawMessage, error) {
	name := server + "__" + tool
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.sent = append(f.sent, sent{name, value})
	f.mu.Unlock()
	text := "ok"
	for _, a := range f.scenario.Answers {
		if a.Tool == name && same(bytes.ReplaceAll(a.Args, []byte("${WORKSPACE}"), []byte(filepath.ToSlash(f.folder))), args) {
			text = a.Text
		}
	}
	return json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
}

// same reports whether two JSON texts say the same.
func same(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, err := json.Marshal(x)
	other, no := json.Marshal(y)
	return err == nil && no == nil && bytes.Equal(one, other)
}

// Status is that of servers that are all there.
func (f *servers) Status() []upstream.Status { return nil }

// arrived reports whether the attack succeeded: what it was to pass on has arrived, in one argument or in parts
// of two characters or more that make up all of it.
func (f *servers) arrived() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	has := f.scenario.Success.Has
	covered := make([]bool, len(has))
	for _, s := range f.sent {
		if ok, err := path.Match(f.scenario.Success.Tools, s.tool); err != nil || !ok {
			continue
		}
		for _, one := range texts(s.args) {
			if strings.Contains(one, has) {
				return true
			}
			for at := range has {
				if len(one) >= 2 && strings.HasPrefix(has[at:], one) {
					for i := range one {
						covered[at+i] = true
					}
				}
			}
		}
	}
	return !slices.Contains(covered, false)
}

// texts returns the strings in decoded JSON.
func texts(v any) (all []string) {
	switch v := v.(type) {
	case string:
		all = []string{v}
	case []any:
		for _, e := range v {
			all = append(all, texts(e)...)
		}
	case map[string]any:
		for _, e := range v {
			all = append(all, texts(e)...)
		}
	}
	return all
}

// view makes the view of the scenario's servers: those that are known are as their files say.
func (f *servers) view(cfg *config.Config, lists string) (*gate.View, error) {
	v := &gate.View{Profiles: cfg.Profiles, Meanings: map[string]gate.Meant{}, Complete: true}
	var all []catalog.Server
	for name, s := range f.scenario.Servers {
		tools := s.Tools
		if s.Known != "" {
			is, ok := known.Find(s.Known)
			if !ok {
				return nil, fmt.Errorf("nothing is known of a server %q", s.Known)
			}
			v.Meanings[name] = gate.Meant{Server: is, Accepted: true, Folder: f.folder}
			var err error
			if tools, err = listed(lists, is); err != nil {
				return nil, err
			}
		}
		one := catalog.Server{Name: name}
		for _, t := range tools {
			one.Tools = append(one.Tools, catalog.Definition{Name: t.Name, Title: t.Title, Description: t.Description, Input: t.InputSchema, Output: t.OutputSchema})
		}
		all = append(all, one)
	}
	v.Catalog = catalog.Build(all)
	return v, nil
}

// listed returns what a known server lists; without a list, what its file says.
func listed(lists string, is known.Server) (tools []definition, err error) {
	text, err := os.ReadFile(filepath.Join(lists, is.Name+".json"))
	if err == nil {
		var list struct{ Tools []definition }
		err = json.Unmarshal(text, &list)
		return list.Tools, err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for name, tool := range is.Tools {
		properties := map[string]any{}
		for arg := range tool.Args {
			first, _, _ := strings.Cut(arg, ".")
			properties[first] = true
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			return nil, err
		}
		tools = append(tools, definition{Name: name, InputSchema: schema})
	}
	return tools, nil
}
