package main_test

// The configuration of a bridge that serves is edited, with and without mistakes.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

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

// `status` shows a `serve`, and why it does not follow the file on disk, as long as it
// does not.
func TestStatusOfServe(t *testing.T) {
	t.Parallel()
	s := serve(t, fmt.Sprintf(guarded, 1))
	home := filepath.Dir(s.file)
	status := func() string {
		t.Helper()
		cmd := exec.Command(filepath.Join(programs(t), "codemode-bridge"), "status", "--config", s.file, "--json")
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home)
		text, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := status(); !strings.Contains(text, `"endpoint":"`+s.endpoint+`"`) || strings.Contains(text, "refused") || strings.Contains(text, `"configuration"`) {
		t.Errorf("status says %s", text)
	}
	s.write(t, `{"servrs": {}}`)
	eventually(t, "status does not say that the file was refused", func() bool {
		text := status()
		return strings.Contains(text, `"refused":"`) && strings.Contains(text, `unknown key \"servrs\"`) && strings.Contains(text, `"configuration":"`)
	})
	s.write(t, fmt.Sprintf(guarded, 2))
	eventually(t, "status says that a good file was refused", func() bool { return !strings.Contains(status(), "refused") })
	s.stop()
	if text := status(); !strings.Contains(text, `"serving":[]`) {
		t.Errorf("once it has ended, status says %s", text)
	}
}
