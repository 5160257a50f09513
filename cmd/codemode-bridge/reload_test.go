package main_test

// The configuration of a bridge that serves is edited, with and without mistakes.

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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

// A serving is the real binary, serving a configuration file.
type serving struct {
	file     string
	endpoint string
}

// serve starts the bridge, which ends with the test.
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
	talk, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	ended, found := make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(talk); lines.Scan(); {
			log.WriteString(lines.Text() + "\n")
			if _, at, ok := strings.Cut(lines.Text(), "endpoint"); ok && len(found) == 0 {
				found <- strings.TrimSpace(at)
			}
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			cmd.Process.Kill() // Windows knows no interrupt
		}
		<-ended
		cmd.Wait()
		if t.Failed() {
			t.Logf("[stderr]\n%s", log.String())
		}
	})
	select {
	case s.endpoint = <-found:
	case <-ended:
		t.Fatal("it did not start")
	}
	return s
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

const guarded = `{
  "servers": {"time": {"type": "builtin", "builtin": "time"}, "utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "guarded", "profiles": {"guarded": {"denylist": ["utils__*"], "timeout": "%ds"}}},
}
`

// The file is saved a thousand times, whole, torn or empty, while scripts run. No script
// fails, and no call is made that every whole version denies.
func TestThousandSavesUnderLoad(t *testing.T) {
	t.Parallel()
	s := serve(t, fmt.Sprintf(guarded, 1))
	const saves = 1000
	saving := make(chan struct{})
	go func() {
		defer close(saving)
		for i := range saves {
			whole := fmt.Sprintf(guarded, 1+i%50)
			switch {
			case i%2 == 0:
				s.write(t, whole)
			default: // half a file, in place
				if err := os.WriteFile(s.file, []byte(whole[:i*37%len(whole)]), 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	const script = `
		let refused = "not at all";
		try { await codemode.utils__hash({text: "x"}) } catch (e) { refused = e.reason }
		return [typeof await codemode.time__now({}), refused]`
	var clients sync.WaitGroup
	for range 3 {
		c, err := s.connect(t, "")
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			defer c.Close()
			for evals, over := 0, false; !over || evals < 20; evals++ {
				select {
				case <-saving:
					over = true
				default:
				}
				got, err := eval(t.Context(), c, script)
				if err != nil || got != `["object","denied"]` && got != `["string","denied"]` {
					t.Errorf("eval %d: %s, %v", evals, got, err)
					return
				}
			}
		})
	}
	clients.Wait()
	<-saving

	// After all that, a good file is still taken over.
	s.write(t, strings.Replace(fmt.Sprintf(guarded, 9), `"utils__*"`, `"time__*"`, 1))
	c, err := s.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	eventually(t, "the last file does not hold", func() bool {
		got, err := eval(t.Context(), c, `try { await codemode.time__now({}) } catch (e) { return e.reason }`)
		return err == nil && got == `"denied"`
	})
}

// A token that is removed from the file no longer lets anybody in, neither anew nor through
// a session that it opened.
func TestTokensFollowTheFile(t *testing.T) {
	t.Parallel()
	config := func(token string) string {
		sum := sha256.Sum256([]byte(token))
		return fmt.Sprintf(`{"servers": {"time": {"type": "builtin", "builtin": "time"}}, "http": {"tokens": [{"name": "t", "sha256": %q}]}}`, hex.EncodeToString(sum[:]))
	}
	s := serve(t, config("old-token-long-enough"))
	old, err := s.connect(t, "old-token-long-enough")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if _, err := eval(t.Context(), old, "return 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.connect(t, "new-token-long-enough"); err == nil {
		t.Fatal("a token that is not in the file lets in")
	}
	s.write(t, config("new-token-long-enough"))
	eventually(t, "the new token does not let in", func() bool {
		c, err := s.connect(t, "new-token-long-enough")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if _, err := s.connect(t, "old-token-long-enough"); err == nil {
		t.Error("the old token lets in")
	}
	if got, err := eval(t.Context(), old, "return 1"); err == nil {
		t.Errorf("a session of the old token goes on: %s", got)
	}
}

// eventually waits until ok, for what another process does in its own time.
func eventually(t *testing.T, otherwise string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}
