package main_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A wire is a server over HTTP that keeps every byte which it is sent.
type wire struct {
	*httptest.Server
	mu   sync.Mutex
	sent bytes.Buffer
}

func newWire(t *testing.T) *wire {
	w := &wire{}
	server := mcp.NewServer(&mcp.Implementation{Name: "wire", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "write", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "written"}}}, nil
	})
	server.AddResource(&mcp.Resource{URI: "wire://r", Name: "r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "wire://r", Text: "read"}}}, nil
	})
	speaks := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	w.Server = httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what could not be read is refused below
		w.mu.Lock()
		fmt.Fprintln(&w.sent, r.Method, r.URL)
		r.Header.Write(&w.sent)
		w.sent.Write(append(body, '\n'))
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		speaks.ServeHTTP(to, r)
	}))
	t.Cleanup(func() { w.CloseClientConnections(); w.Close() })
	return w
}

func (w *wire) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent.String()
}

// The token with which a client comes is for the bridge alone: it reaches no server, by a
// header, a variable, an argument of a program, or anything in a message.
func TestNoTokenIsPassedOn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program that listens in is a shell's")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	web, own := newWire(t), newMirror(t)
	heard := t.TempDir()
	const listens = `env > "$1/env"; echo "$0" "$@" > "$1/args"; tee "$1/messages" | "$2"`
	server, err := json.Marshal(map[string]any{"command": "sh", "args": []string{"-c", listens, "sh", heard, self}, "env": map[string]string{effectsVariable: filepath.Join(heard, "effects"), "FAKE_TOKEN": "the program's own"}})
	if err != nil {
		t.Fatal(err)
	}
	const annSigns = "ann-signs-in-with-this-0123456789"
	c := newCommandLine(t, fmt.Sprintf(`{
  "servers": {"web": {"url": %q, "newTools": "allow"}, "mirror": {"url": %q, "auth": {"per": "principal"}, "newTools": "allow"}, "fake": %s},
  "newTools": "allow", "evaluation": {"defaultProfile": "open", "profiles": {"open": {}}},
  "http": {"tokens": [{"name": "ann", "sha256": "%x"}]},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s]},
}`, web.URL, own.URL, server, sha256.Sum256([]byte(annsToken)), approverJSON("ann", "viewer", annSigns)))
	c.env = append(c.env, "CODEMODE_LOGINS=file")
	s := serving{file: c.file}
	s.start(t, c.program("", "serve", "--listen", "127.0.0.1:0"))
	signIn(t, s.page, annSigns).connect(own, "ann-at-mirror")
	client, err := s.connect(t, annsToken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	const script = `const text = "a-marker-of-the-call";
return [await codemode.web__write({text}), await codemode.fake__write({text}), await codemode.mirror__whoami({text}), JSON.stringify(await codemode.resources.read("web", "wire://r"))].join(" ")`
	eventually(t, "the calls are not made", func() bool {
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": script},
			Meta: mcp.Meta{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "example.com/note": "a-note-of-the-client"}})
		text, _ := json.Marshal(res)
		return err == nil && strings.Contains(string(text), "ann-at-mirror")
	})
	at := map[string]string{"web": web.all()}
	for _, r := range own.Requests("") {
		at["mirror"] += fmt.Sprintln(r.Method, r.Path, r.Header, r.Form, r.Body)
	}
	for _, name := range []string{"env", "args", "messages", "effects"} {
		text, err := os.ReadFile(filepath.Join(heard, name))
		if err != nil {
			t.Fatal(err)
		}
		at["fake"] += string(text)
	}
	for name, heard := range at {
		if !strings.Contains(heard, "a-marker-of-the-call") {
			t.Errorf("%s was not listened to: %s", name, heard)
		}
		for what, secret := range map[string]string{"the client's token": annsToken, "its hash": fmt.Sprintf("%x", sha256.Sum256([]byte(annsToken))), "the approver's token": annSigns} {
			if strings.Contains(heard, secret) {
				t.Errorf("%s is sent %s", name, what)
			}
		}
	}
}
