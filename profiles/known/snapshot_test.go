package known_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var snapshot = flag.String("snapshot", "", "write what the server that the other arguments start lists into testdata/lists/`NAME`.json")

// A snapshotFile is what testdata/lists has of a server: what it says of itself and of
// its tools, without what changes from one start to the next.
type snapshotFile struct {
	Package string         `json:"package"`
	Version string         `json:"version"`
	Tools   []snapshotTool `json:"tools"`
}

type snapshotTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// released takes the exact version from what is started: without one, the next person
// lists something else.
var released = regexp.MustCompile(`^(@?[a-z0-9._/-]+)(?:@|==)(\d+(?:\.\d+)+(?:-[0-9A-Za-z.-]+)?)$`)

// TestSnapshot writes the snapshot of a server that a person starts:
//
//	go test ./profiles/known -run TestSnapshot -args -snapshot airtable npx -y airtable-mcp-server@1.14.0
//
// Without that it takes one of a server that is part of this test.
func TestSnapshot(t *testing.T) {
	if *snapshot != "" {
		is, err := takeSnapshot(t.Context(), flag.Args(), os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if err := e.Encode(is); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "lists", filepath.Base(*snapshot)+".json")
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s has the %d tools of %s %s", file, len(is.Tools), is.Package, is.Version)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), fakeServer+"=1")
	got, err := takeSnapshot(t.Context(), []string{self, "fake-mcp@1.2.3"}, env)
	if err != nil {
		t.Fatal(err)
	}
	want := snapshotFile{"fake-mcp", "1.2.3", []snapshotTool{
		{Name: "first", Description: "One.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "second", Title: "Second", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`)},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, command := range [][]string{nil, {self, "fake-mcp"}, {self, "fake-mcp@latest"}, {self, "fake-mcp@1.2.3", "ends"}} {
		if is, err := takeSnapshot(t.Context(), command, env); err == nil {
			t.Errorf("%q gives a snapshot: %+v", command, is)
		}
	}
}

// takeSnapshot starts a server and lists its tools.
func takeSnapshot(ctx context.Context, command, env []string) (is snapshotFile, err error) {
	for _, arg := range command {
		if m := released.FindStringSubmatch(arg); m != nil && is.Package == "" {
			is.Package, is.Version = m[1], m[2]
		}
	}
	if is.Package == "" {
		return is, fmt.Errorf("no argument of %q is a package with its version, as PACKAGE@1.2.3", command)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // it may have to be fetched
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	var said bytes.Buffer
	c.Env, c.Stderr, c.WaitDelay = env, &said, 5*time.Second
	in, err := c.StdinPipe()
	if err != nil {
		return is, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return is, err
	}
	if err := c.Start(); err != nil {
		return is, err
	}
	is.Tools, err = listTools(&conversation{in: in, out: bufio.NewReader(out)})
	_ = in.Close() // so that it ends; what it says of its end is of no interest
	cancel()
	_ = c.Wait()
	if err != nil {
		return is, fmt.Errorf("listing the tools of %s: %w\n%s", is.Package, err, said.String())
	}
	return is, nil
}

func listTools(c *conversation) (all []snapshotTool, err error) {
	err = c.ask("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "snapshot", "version": "1"},
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := c.send(message{Method: "notifications/initialized"}); err != nil {
		return nil, err
	}
	for cursor := ""; ; {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var page struct {
			Tools      []snapshotTool `json:"tools"`
			NextCursor string         `json:"nextCursor"`
		}
		if err := c.ask("tools/list", params, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// A conversation is with a server, a message on each line.
type conversation struct {
	in   io.Writer
	out  *bufio.Reader
	last int
}

func (c *conversation) send(m message) error {
	m.JSONRPC = "2.0"
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(text, '\n'))
	return err
}

// ask sends a request and waits for its answer. What is no message, such as a line that
// a program prints by mistake, is passed over; requests of the server are refused.
func (c *conversation) ask(method string, params, result any) error {
	c.last++
	id := fmt.Sprint(c.last)
	if err := c.send(message{ID: json.RawMessage(id), Method: method, Params: params}); err != nil {
		return err
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			return err
		}
		var m message
		switch {
		case json.Unmarshal(line, &m) != nil:
		case m.Method != "" && m.ID != nil:
			refusal := message{ID: m.ID, Error: &struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			}{-32601, "not here"}}
			if err := c.send(refusal); err != nil {
				return err
			}
		case m.Method != "" || string(m.ID) != id:
		case m.Error != nil:
			return errors.New(m.Error.Message)
		case result != nil:
			return json.Unmarshal(m.Result, result)
		default:
			return nil
		}
	}
}

// fakeServer is the variable by which this test's program is a server.
const fakeServer = "KNOWN_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(fakeServer) != "" {
		serveFake()
		return
	}
	os.Exit(m.Run())
}

// serveFake lists two tools on two pages, after a line that is no message and a request
// of its own.
func serveFake() {
	fmt.Println("starting")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && os.Args[len(os.Args)-1] != "ends" {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Cursor string `json:"cursor"`
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := `{}`
		switch {
		case m.Method == "initialize":
			fmt.Println(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
		case m.Method == "tools/list" && m.Params.Cursor == "":
			result = `{"tools":[{"name":"first","description":"One.","inputSchema":{"type":"object"}}],"nextCursor":"2"}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"second","title":"Second","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{}}]}`
		default: // our answer to its request
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}
