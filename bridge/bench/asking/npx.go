package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// This program under the name npx is every server of a session: started as a client's
// configuration says, it lists the tools that the real server lists, gives the answers of
// the session, and logs each call that it receives. So a call that was sent is a fact.

// playbookName is the name of the file beside the program that says what to play.
const playbookName = "playbook.json"

// A playbook says what the program plays as npx.
type playbook struct {
	Log     string // the file to which each call is appended
	Servers []part
}

// A part is one server.
type part struct {
	Name    string
	Args    []string // by which it is known
	List    string   // the file with its tools
	Answers []answer
}

type answer struct {
	Tool       string
	Args       json.RawMessage
	Text       string
	Structured json.RawMessage `json:",omitempty"` // without this, none would be read back as "null"
}

// A received call is one line of the log.
type received struct {
	Server, Tool string
	Args         json.RawMessage
}

// asNpx reports whether the program was started as npx.
func asNpx() bool {
	return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "npx"
}

// serveNpx plays the server that the arguments name, on stdin and stdout.
func serveNpx() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(self), playbookName))
	if err != nil {
		return err
	}
	var book playbook
	if err := json.Unmarshal(text, &book); err != nil {
		return err
	}
	// Whoever pinned a version in the configuration starts the same server.
	i := slices.IndexFunc(book.Servers, func(p part) bool { return slices.Equal(unversioned(p.Args), unversioned(os.Args[1:])) })
	if i < 0 {
		return fmt.Errorf("no server is started by npx %q", os.Args[1:])
	}
	s, err := book.Servers[i].server(book.Log)
	if err != nil {
		return err
	}
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// unversioned returns arguments of npx without the versions of packages.
func unversioned(args []string) (all []string) {
	for _, a := range args {
		all = append(all, version.ReplaceAllString(a, ""))
	}
	return all
}

var version = regexp.MustCompile(`@(latest|[0-9][0-9A-Za-z.-]*)$`)

// server makes the MCP server of a part.
func (p part) server(log string) (*mcp.Server, error) {
	text, err := os.ReadFile(p.List)
	if err != nil {
		return nil, err
	}
	var l list
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	s := mcp.NewServer(&mcp.Implementation{Name: l.Package, Version: l.Version}, nil)
	for _, raw := range l.Tools {
		var tool mcp.Tool
		if err := json.Unmarshal(raw, &tool); err != nil {
			return nil, err
		}
		s.AddTool(&tool, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			args := canonical(r.Params.Arguments)
			if err := appendLine(log, received{p.Name, tool.Name, args}); err != nil {
				return nil, err
			}
			return p.answer(tool.Name, args), nil
		})
	}
	return s, nil
}

// answer finds the answer to a call; without one it is an empty text.
func (p part) answer(tool string, args json.RawMessage) *mcp.CallToolResult {
	i := slices.IndexFunc(p.Answers, func(a answer) bool { return a.Tool == tool && bytes.Equal(a.Args, args) })
	if i < 0 {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{}}}
	}
	a := p.Answers[i]
	if len(a.Structured) > 0 {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(a.Structured)}}, StructuredContent: a.Structured}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}
}

// canonical returns JSON in the one form in which the same arguments are the same bytes.
// Numbers keep their digits.
func canonical(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}

// playbook says how to play the servers of a session, whose folders are named already.
func (s session) playbook(log string, lists map[string]string) (playbook, error) {
	book := playbook{Log: log}
	for name, server := range s.Servers {
		file, ok := lists[server.List]
		if !ok {
			return book, fmt.Errorf("%s: what %s lists is not there", s.Name, server.List)
		}
		if server.Command != "npx" {
			return book, fmt.Errorf("%s: server %s is not started by npx", s.Name, name)
		}
		p := part{Name: name, Args: server.Args, List: file}
		for _, c := range s.allCalls() {
			if of, tool := c.split(); of == name && (c.Answer != "" || len(c.Structured) > 0) {
				p.Answers = append(p.Answers, answer{tool, canonical(c.Args), c.Answer, c.Structured})
			}
		}
		book.Servers = append(book.Servers, p)
	}
	return book, nil
}

// appendLine appends a line of JSON to a file, in one write.
func appendLine(file string, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// readLog reads the calls that were logged from an offset on, and how long the log is.
func readLog(file string, from int64) (all []received, size int64, err error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, 0, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var r received
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return all, from + int64(len(text)), nil
		} else if err != nil {
			return nil, 0, err
		}
		all = append(all, r)
	}
}
