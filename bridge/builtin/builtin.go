// Package builtin holds the MCP servers that are part of the bridge and run inside it.
// They need nothing but the binary, so that a first start has tools to show, and they
// give scripts what the sandbox lacks: time zones, YAML, CSV, hashes.
//
//	time   now, convert, add, diff, parse, format
//	utils  yaml_parse, yaml_stringify, csv_parse, csv_stringify,
//	       base64_encode, base64_decode, hash
//
// They are upstream servers like any other: the same code connects to them (through an
// in-memory transport), lists and calls their tools and decides on the calls. Apart from
// the clock of time, all tools are pure functions of their arguments: they read no
// files, environment or network, and say so in their annotations.
//
// Arguments come from scripts, that is, from a model. A tool's input and output are
// bounded (maxInput, maxOutput), and so is the work in between, in proportion: no alias,
// header or path makes a small argument costly. A call that cannot be answered returns
// isError and a sentence that says why.
package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"codemode-bridge/profiles/known"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxInput  = 2 << 20 // bytes of all arguments of one call
	maxOutput = 8 << 20 // bytes of one answer
	maxDepth  = 200     // nesting of values that are read or written
)

// New makes the built-in server with that name, and reports whether there is one. Each
// call makes a new server.
func New(name string) (*mcp.Server, bool) {
	s, ok := find(name)
	return s.Server, ok
}

func find(name string) (server, bool) {
	switch name {
	case "time":
		return *clock{now: time.Now}.server(), true
	case "utils":
		return *utils(), true
	}
	return server{}, false
}

// Known says what the calls of the built-in server with that name mean: they read, on
// this machine, and no argument names anything.
func Known(name string) (known.Server, bool) {
	s, ok := find(name)
	is := known.Server{Name: name, Title: "part of the bridge", Tools: map[string]known.Tool{}}
	for _, t := range s.tools {
		args := map[string]known.Role{}
		for _, p := range t.params {
			args[p.name] = known.Plain
		}
		is.Tools[t.name] = known.Tool{Effects: []known.Effect{known.Read}, Where: known.Local, Args: args, Repeatable: !t.volatile}
	}
	return is, ok
}

// Names are the names of the built-in servers, sorted.
func Names() []string { return []string{"time", "utils"} }

// A server is one built-in server with its tools.
type server struct {
	*mcp.Server
	tools []tool
}

func newServer(name, instructions string) *server {
	return &server{Server: mcp.NewServer(&mcp.Implementation{Name: "codemode-bridge-" + name, Version: "1"}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})}
}

// A tool is one tool of a built-in server. Its schema and the check of its arguments are
// both made from its params.
type tool struct {
	name, title, description string
	params                   []param
	output                   string // JSON Schema of the answer, an object
	volatile                 bool   // the same arguments may give another answer later
	run                      func(args) (any, error)
}

// A param is one argument of a tool.
type param struct {
	name     string
	kind     kind
	doc      string
	required bool
	enum     []string
	fallback any // the default, as the schema shows it; nil if there is none
}

// A kind is the JSON type of a param, as its schema has it.
type kind string

const (
	text    kind = `"string"`
	boolean kind = `"boolean"`
	whole   kind = `"integer"`
	list    kind = `"array"`
	instant kind = `["string","number"]` // a time, see clock.read
	value   kind = ``                    // anything
)

// schema is the JSON Schema of the params.
func schema(params []param) json.RawMessage {
	properties := map[string]any{}
	required := []string{}
	for _, p := range params {
		s := map[string]any{"description": p.doc}
		if p.kind != value {
			s["type"] = json.RawMessage(p.kind)
		}
		if p.enum != nil {
			s["enum"] = p.enum
		}
		if p.fallback != nil {
			s["default"] = p.fallback
		}
		properties[p.name] = s
		if p.required {
			required = append(required, p.name)
		}
	}
	raw, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	if err != nil {
		panic(err) // cannot happen: all of it is our own
	}
	return raw
}

// args are arguments that passed check.
type args map[string]json.RawMessage

// check reads the arguments of one call strictly.
func check(params []param, raw json.RawMessage) (args, error) {
	if len(raw) > maxInput {
		return nil, fmt.Errorf("the arguments have %d bytes, at most %d are taken", len(raw), maxInput)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	var a args
	if err := json.Unmarshal(raw, &a); err != nil || a == nil {
		return nil, errors.New("the arguments must be an object")
	}
	var names []string
	for _, p := range params {
		names = append(names, p.name)
		v, ok := a[p.name]
		if !ok || string(v) == "null" && p.kind != value {
			if p.required {
				return nil, fmt.Errorf("%s is required", p.name)
			}
			delete(a, p.name)
			continue
		}
		if err := p.check(v); err != nil {
			return nil, fmt.Errorf("%s must be %w", p.name, err)
		}
	}
	var unknown []string
	for name := range a {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Errorf("there is no argument %q: it takes %s", unknown[0], strings.Join(names, ", "))
	}
	return a, nil
}

// check returns an error whose text continues "... must be".
func (p param) check(v json.RawMessage) error {
	switch p.kind {
	case text:
		var s string
		if json.Unmarshal(v, &s) != nil {
			return errors.New("a string")
		}
		if p.enum != nil && !slices.Contains(p.enum, s) {
			return fmt.Errorf("one of %s", strings.Join(p.enum, ", "))
		}
	case boolean:
		var b bool
		if json.Unmarshal(v, &b) != nil {
			return errors.New("true or false")
		}
	case whole:
		var n float64
		if json.Unmarshal(v, &n) != nil || n != float64(int(n)) {
			return errors.New("a whole number")
		}
	case list:
		var l []json.RawMessage
		if json.Unmarshal(v, &l) != nil {
			return errors.New("an array")
		}
	case instant:
		var s string
		var n float64
		if json.Unmarshal(v, &s) != nil && json.Unmarshal(v, &n) != nil {
			return errors.New("a time as a string, or seconds since 1970 as a number")
		}
	}
	return nil
}

// text is a string argument, or fallback if it is absent. The other readers work the
// same way.
func (a args) text(name, fallback string) string {
	v, ok := a[name]
	if !ok {
		return fallback
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return fallback // cannot happen after check
	}
	return s
}

func (a args) flag(name string, fallback bool) bool {
	v, ok := a[name]
	if !ok {
		return fallback
	}
	return string(v) == "true"
}

func (a args) whole(name string, fallback int) int {
	var n float64
	if v, ok := a[name]; !ok || json.Unmarshal(v, &n) != nil {
		return fallback
	}
	return int(n)
}

// add adds a tool to the server.
func add(s *server, t tool) {
	s.tools = append(s.tools, t)
	no := false
	s.AddTool(&mcp.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		InputSchema: schema(t.params), OutputSchema: json.RawMessage(t.output),
		Annotations: &mcp.ToolAnnotations{
			Title: t.title, ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: !t.volatile, OpenWorldHint: &no,
		},
	}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := t.call(req.Params.Arguments)
		if err != nil {
			return &mcp.CallToolResult{
				IsError: true,
				Content: []mcp.Content{&mcp.TextContent{Text: t.name + ": " + err.Error()}},
			}, nil
		}
		return &mcp.CallToolResult{
			StructuredContent: answer,
			Content:           []mcp.Content{&mcp.TextContent{Text: string(answer)}},
		}, nil
	})
}

// call answers one call with a JSON object.
func (t tool) call(raw json.RawMessage) (answer json.RawMessage, err error) {
	// The readers of YAML and JSONPath are not ours. Should they panic on some input,
	// that must not end the bridge.
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, fmt.Errorf("these arguments can't be read: %v", p)
		}
	}()
	a, err := check(t.params, raw)
	if err != nil {
		return nil, err
	}
	v, err := t.run(a)
	if err != nil {
		return nil, err
	}
	return encode(v)
}

// encode writes v as JSON within maxOutput.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("writing the answer: %w", err)
	}
	if b.Len() > maxOutput {
		return nil, fmt.Errorf("the answer has %d bytes, at most %d are given", b.Len(), maxOutput)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// decode reads a JSON value, keeps its numbers as they are written, and refuses a value
// that is nested too deeply.
func decode(raw []byte) (any, error) {
	if depth(raw) > maxDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxDepth)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("something follows the value")
	}
	return v, inRange(v)
}

// inRange refuses numbers beyond 1.8e308, which most readers of JSON cannot represent.
func inRange(v any) error {
	switch v := v.(type) {
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return fmt.Errorf("the number %s is out of range", cut(v.String()))
		}
	case []any:
		for _, e := range v {
			if err := inRange(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := inRange(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// depth is the deepest nesting of brackets in a JSON text.
func depth(raw []byte) (deepest int) {
	now, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// cut shortens a text for quoting in an error.
func cut(s string) string {
	if utf8.RuneCountInString(s) <= 60 {
		return s
	}
	return string([]rune(s)[:60]) + "…"
}
