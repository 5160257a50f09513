package main_test

// What the tests of `serve` share: the real binary as a process that serves, sessions with
// it, and requests of its page.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A serving is a bridge that serves, as a process of the real binary.
type serving struct {
	file     string // of its configuration
	endpoint string
	link     string                // to the approval page, as it was printed; "" if there is none
	page     string                // the page's address
	launch   func(*exec.Cmd) error // starts it; nil is Start
	kill     func()                // ends it at once
	stop     func()                // ends it in order
	wait     func()                // until it has ended
}

// serve starts a bridge with a configuration.
func serve(t *testing.T, config string) serving {
	t.Helper()
	return serveOverlaid(t, config, "")
}

// serveOverlaid is serve with an overlay, unless it is empty.
func serveOverlaid(t *testing.T, config, overlay string) serving {
	t.Helper()
	home := t.TempDir()
	s := serving{file: filepath.Join(home, "config.json")}
	s.write(t, config)
	cmd := exec.Command(filepath.Join(programs(t), "codemode-bridge"), "serve", "--config", s.file, "--listen", "127.0.0.1:0")
	if overlay != "" {
		serving{file: filepath.Join(home, "config.prod.json")}.write(t, overlay)
		cmd.Args = append(cmd.Args, "--env", "prod")
	}
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home)
	s.start(t, cmd)
	return s
}

// start starts a command of `serve`, which ends with the test, and waits until it has
// said where it is. What it says is logged if the test fails.
func (s *serving) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	said, ok := cmd.Stderr.(*talk)
	if !ok {
		said = new(talk)
	}
	cmd.Stderr = nil
	lines, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	launch := (*exec.Cmd).Start
	if s.launch != nil {
		launch = s.launch
	}
	if err := launch(cmd); err != nil {
		t.Fatal(err)
	}
	greeted, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewReader(lines); ; {
			line, err := in.ReadString('\n')
			_, _ = said.Write([]byte(line)) // never fails
			switch words := strings.Fields(line); {
			case err != nil:
				return
			case len(words) == 2 && words[0] == "endpoint":
				s.endpoint = words[1]
			case len(words) == 2 && words[0] == "approve":
				s.link = words[1]
				s.page, _, _ = strings.Cut(s.link, "/login")
			case strings.HasPrefix(line, "Ctrl-C ends it."):
				close(greeted)
			}
		}
	}()
	end := sync.OnceFunc(func() {
		<-ended
		cmd.Wait()
		if t.Failed() {
			t.Logf("[stderr]\n%s", said)
		}
	})
	s.wait = end
	s.kill = func() { cmd.Process.Kill(); end() }
	s.stop = func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			cmd.Process.Kill() // Windows knows no interrupt
		}
		end()
	}
	t.Cleanup(s.stop)
	select {
	case <-greeted:
	case <-ended:
		t.Fatal("it did not start")
	}
}

// write replaces the file in one step, as editors do.
func (s serving) write(t *testing.T, config string) {
	t.Helper()
	next := s.file + ".next"
	if err := os.WriteFile(next, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, s.file); err != nil {
		t.Fatal(err)
	}
}

// connect opens a session, with a token unless it is empty.
func (s serving) connect(t *testing.T, token string) (*mcp.ClientSession, error) {
	t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: s.endpoint, MaxRetries: -1}
	if token != "" {
		transport.HTTPClient = &http.Client{Transport: bearer(token)}
	}
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// eval runs a script and returns its result as JSON.
func eval(ctx context.Context, c *mcp.ClientSession, code string) (string, error) {
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": code}})
	if err != nil {
		return "", err
	}
	text := ""
	for _, part := range res.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	if res.IsError {
		return "", fmt.Errorf("the script failed: %s", text)
	}
	var out struct{ Result json.RawMessage }
	err = json.Unmarshal([]byte(text), &out)
	return string(out.Result), err
}

// request sends a request to a page, with body as JSON, and returns the answer and its
// text.
func request(t *testing.T, client *http.Client, method, url string, header http.Header, body any) (*http.Response, string) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(answer)
}

// eventually waits until ok, for what another process does in its own time.
func eventually(t *testing.T, otherwise string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}
