package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/catalog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A definition is a tool as a model gets it.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input_schema"`
}

// A stage has some of the servers, each directly and all behind a bridge.
type stage struct {
	dir       string
	servers   []server
	workspace string
	direct    map[string]*mcp.ClientSession
	through   *mcp.ClientSession
	ways      map[way][]definition
	catalog   *catalog.Catalog // of the direct definitions
	said      map[way]string
}

// A way is one of the three.
type way string

const (
	direct way = "direct"
	found  way = "found by search"
	bridge way = "bridge"
)

var ways = []way{direct, found, bridge}

// searchTool is the tool by which a client that defers definitions has its model find them.
var searchTool = definition{Name: "tool_search", Description: "Finds tools by keywords and returns the definitions of the best five. A tool can be called once its definition was returned.",
	Input: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)}

// open starts the servers and the bridge, and lists what each way shows.
func open(ctx context.Context, o options, take []server) (s *stage, err error) {
	dir, err := os.MkdirTemp("", "context")
	if err != nil {
		return nil, err
	}
	s = &stage{dir: dir, servers: take, workspace: filepath.Join(dir, "shop"), direct: map[string]*mcp.ClientSession{}, ways: map[way][]definition{}, said: map[way]string{}}
	started := s
	defer func() {
		if err != nil {
			err = errors.Join(err, started.close())
		}
	}()
	if err := s.renew(); err != nil {
		return nil, err
	}
	config := map[string]any{"id": "context", "evaluation": map[string]any{
		"defaultProfile": "all", "profiles": map[string]any{"all": map[string]any{"default": "allow"}}}}
	behind := map[string]any{}
	for _, one := range take {
		args, env := []string{filepath.Join(o.packages, "node_modules", one.program)}, map[string]string{}
		for _, a := range one.args {
			args = append(args, s.real(a))
		}
		for _, e := range one.env {
			name, value, _ := strings.Cut(e, "=")
			env[name] = s.real(value)
		}
		behind[one.name] = map[string]any{"command": "node", "args": args, "env": env}
		run := exec.CommandContext(ctx, "node", args...)
		run.Dir, run.Env = s.workspace, os.Environ()
		for name, value := range env {
			run.Env = append(run.Env, name+"="+value)
		}
		if s.direct[one.name], err = connect(ctx, run); err != nil {
			return nil, fmt.Errorf("starting %s: %w", one.name, err)
		}
	}
	config["servers"] = behind
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	run := exec.CommandContext(ctx, o.bridge, "run", "--config", path)
	run.Dir = s.workspace
	run.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	if s.through, err = connect(ctx, run); err != nil {
		return nil, fmt.Errorf("starting the bridge: %w", err)
	}
	return s, s.list(ctx)
}

func connect(ctx context.Context, run *exec.Cmd) (*mcp.ClientSession, error) {
	var stderr bytes.Buffer
	run.Stderr = &stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "context", Version: "1.0.0"}, nil)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: run}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return session, nil
}

// close ends the servers and the bridge.
func (s *stage) close() error {
	var errs []error
	if s.through != nil {
		errs = append(errs, s.through.Close())
	}
	for _, session := range s.direct {
		// Several of the real servers end with a status of their own.
		_ = session.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// renew makes the workspace anew. The servers keep running in it.
func (s *stage) renew() error {
	if err := os.MkdirAll(s.workspace, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.workspace)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(s.workspace, e.Name())); err != nil {
			return err
		}
	}
	return furnish(s.workspace)
}

// real puts the real folder into a text; shown takes it out again.
func (s *stage) real(text string) string { return strings.ReplaceAll(text, workspaceMark, s.workspace) }
func (s *stage) shown(text string) string {
	return strings.ReplaceAll(text, s.workspace, workspaceMark)
}

// list asks the servers and the bridge for their tools.
func (s *stage) list(ctx context.Context) error {
	var all []catalog.Server
	for _, one := range s.servers {
		defs, said, err := listed(ctx, s.direct[one.name], one.name+"__")
		if err != nil {
			return fmt.Errorf("listing the tools of %s: %w", one.name, err)
		}
		s.ways[direct], s.said[direct] = append(s.ways[direct], defs...), s.said[direct]+said
		known := catalog.Server{Name: one.name}
		for _, d := range defs {
			known.Tools = append(known.Tools, catalog.Definition{Name: strings.TrimPrefix(d.Name, one.name+"__"), Description: d.Description, Input: d.Input})
		}
		all = append(all, known)
	}
	s.catalog = catalog.Build(all)
	s.ways[found] = []definition{searchTool}
	// A server may still be connecting when the bridge is asked first.
	for range 120 {
		defs, said, err := listed(ctx, s.through, "")
		if err != nil {
			return fmt.Errorf("listing the tools of the bridge: %w", err)
		}
		s.ways[bridge], s.said[bridge] = defs, said
		if s.complete(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
	return errors.New("the bridge does not list the tools of all servers")
}

// complete reports whether the bridge has the tools of every server.
func (s *stage) complete(ctx context.Context) bool {
	answer, err := s.through.CallTool(ctx, &mcp.CallToolParams{Name: "get_tools", Arguments: map[string]any{"limit": 1}})
	if err != nil {
		return false
	}
	var page struct{ Servers []struct{} }
	return json.Unmarshal([]byte(answer.Content[0].(*mcp.TextContent).Text), &page) == nil && len(page.Servers) == len(s.servers) && len(answer.Content) == 1
}

func listed(ctx context.Context, session *mcp.ClientSession, prefix string) (defs []definition, said string, err error) {
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, "", err
		}
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil {
			return nil, "", err
		}
		defs = append(defs, definition{prefix + tool.Name, tool.Description, schema})
	}
	return defs, session.InitializeResult().Instructions, nil
}

// A turn is what a model sends in one message, and what it gets.
type turn struct{ sent, got []string }

// A played task is a conversation: what is in the prompt from the beginning, and the turns.
type played struct {
	prompt []string
	turns  []turn
	answer string
}

// play does one task in one way, as it is written down.
func (s *stage) play(ctx context.Context, t task, w way) (p played, err error) {
	if err := s.renew(); err != nil {
		return p, err
	}
	for _, d := range s.ways[w] {
		p.prompt = append(p.prompt, written(d))
	}
	p.prompt, p.answer = append(p.prompt, s.said[w], t.ask), t.answer
	if w != direct && (w != bridge || !s.tells(t)) {
		p.turns = append(p.turns, turn{})
		for _, query := range t.find {
			c := call{searchTool.Name, map[string]any{"query": query}}
			if w == bridge { // whose eval tool names the servers
				c.Tool, c.Args["server"] = "search_tools", t.server()
			}
			got, err := s.search(ctx, w, c)
			if err != nil {
				return p, err
			}
			p.turns[0].sent = append(p.turns[0].sent, written(c))
			p.turns[0].got = append(p.turns[0].got, got)
		}
		if w == bridge {
			if err := declares(t, strings.Join(p.turns[0].got, "")); err != nil {
				return p, err
			}
		}
	}
	if w == bridge {
		err = s.scripts(ctx, t, &p)
	} else {
		err = s.calls(ctx, t, w, &p)
	}
	return p, err
}

// tells reports whether the description of eval has all that the scripts of a task write:
// each tool that they call, with every argument and every key within an argument.
func (s *stage) tells(t task) bool {
	i := slices.IndexFunc(s.ways[bridge], func(d definition) bool { return d.Name == "eval" })
	if i < 0 {
		return false
	}
	for _, script := range t.scripts {
		for _, c := range callsOf(script) {
			has := signature(s.ways[bridge][i].Description, c.tool)
			if has == "" || slices.ContainsFunc(c.keys, func(key string) bool { return !slices.Contains(word.FindAllString(has, -1), key) }) {
				return false
			}
		}
	}
	return true
}

// declares says which tool of a task's scripts a search has not declared.
func declares(t task, got string) error {
	for _, script := range t.scripts {
		for _, c := range callsOf(script) {
			if !strings.Contains(got, "codemode."+c.tool+"(") {
				return fmt.Errorf("the search for %q does not declare %s", t.find, c.tool)
			}
		}
	}
	return nil
}

// search finds tools, in one of the two ways that search.
func (s *stage) search(ctx context.Context, w way, c call) (string, error) {
	if w == bridge {
		return s.call(ctx, s.through, c.Tool, c.Args)
	}
	var defs []string
	for _, d := range s.best(fmt.Sprint(c.Args["query"])) {
		defs = append(defs, written(d))
	}
	return strings.Join(defs, "\n"), nil
}

// best are the definitions that a client's own search returns.
func (s *stage) best(query string) (defs []definition) {
	for _, item := range s.catalog.View(nil).Search(catalog.SearchQuery{Query: query, Limit: 5}).Tools {
		tool, ok := s.catalog.Lookup(item.Name)
		if i := slices.IndexFunc(s.ways[direct], func(d definition) bool { return ok && d.Name == tool.Path() }); i >= 0 {
			defs = append(defs, s.ways[direct][i])
		}
	}
	return defs
}

func (s *stage) scripts(ctx context.Context, t task, p *played) error {
	last := ""
	for _, script := range t.scripts {
		got, err := s.call(ctx, s.through, "eval", map[string]any{"code": s.real(script)})
		if err != nil {
			return err
		}
		last = got
		p.turns = append(p.turns, turn{[]string{written(call{"eval", map[string]any{"code": script}})}, []string{got}})
	}
	for _, want := range t.want {
		if !strings.Contains(last, want) {
			return fmt.Errorf("the script returns %s, which lacks %s", last, want)
		}
	}
	return nil
}

// A written call is one that stands in a script.
type writtenCall struct {
	tool string
	keys []string // of its arguments, and of the objects within them
}

var (
	word   = regexp.MustCompile(`\w+`)
	quoted = regexp.MustCompile(`"[^"]*"`)
	key    = regexp.MustCompile(`[{,]\s*(\w+)\s*[:,}]`)
)

// callsOf are the calls that a script makes.
func callsOf(script string) (all []writtenCall) {
	for _, part := range strings.Split(quoted.ReplaceAllString(script, `""`), "codemode.")[1:] {
		name, rest, _ := strings.Cut(part, "(")
		c := writtenCall{tool: name}
		for _, m := range key.FindAllStringSubmatch(closed(rest), -1) {
			c.keys = append(c.keys, m[1])
		}
		all = append(all, c)
	}
	return all
}

// signature is what a description says of the arguments of a tool, in one of the two ways
// that it has: as server__tool(...), or as tool(...) in the line of the server.
func signature(description, tool string) string {
	server, name, _ := strings.Cut(tool, "__")
	for line := range strings.Lines(description) {
		declared := strings.HasPrefix(line, "codemode."+tool+"(")
		if !declared && !strings.HasPrefix(line, server+":") && !strings.HasPrefix(line, server+" => ") {
			continue
		}
		if declared {
			name = tool
		}
		for i := range line {
			if strings.HasPrefix(line[i:], name+"(") && (i == 0 || line[i-1] == ' ' || line[i-1] == '.') {
				return "(" + closed(line[i+len(name)+1:]) + ")"
			}
		}
	}
	return ""
}

// closed is a text up to the parenthesis that closes what was open before it.
func closed(text string) string {
	open := 1
	for i, r := range text {
		switch r {
		case '(':
			open++
		case ')':
			open--
		}
		if open == 0 {
			return text[:i]
		}
	}
	return text
}

func (s *stage) calls(ctx context.Context, t task, w way, p *played) error {
	for _, together := range t.direct {
		var now turn
		for _, c := range together {
			if w == found && !strings.Contains(strings.Join(p.turns[0].got, ""), `"name":"`+c.Tool+`"`) {
				return fmt.Errorf("the search for %q does not find %s", t.find, c.Tool)
			}
			server, tool, _ := strings.Cut(c.Tool, "__")
			text, err := json.Marshal(c.Args)
			if err != nil {
				return err
			}
			got, err := s.call(ctx, s.direct[server], tool, json.RawMessage(s.real(string(text))))
			if err != nil {
				return err
			}
			now.sent, now.got = append(now.sent, written(c)), append(now.got, got)
		}
		p.turns = append(p.turns, now)
	}
	return nil
}

// call makes one call and returns the text that a client shows its model.
func (s *stage) call(ctx context.Context, session *mcp.ClientSession, tool string, args any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", fmt.Errorf("calling %s: %w", tool, err)
	}
	var texts []string
	for _, c := range answer.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	got := s.shown(strings.Join(texts, "\n"))
	if answer.IsError {
		return "", fmt.Errorf("%s: %s", tool, got)
	}
	return got, nil
}

// written is v as JSON, as it stands in a prompt.
func written(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // plain data
	}
	return strings.TrimRight(b.String(), "\n")
}
