package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/logintest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newTracker is a server that wants a login, with one tool.
func newTracker(t *testing.T) *logintest.Server {
	t.Helper()
	s := logintest.New(t)
	s.Lifetime = time.Hour
	server := mcp.NewServer(&mcp.Implementation{Name: "tracker", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "list_issues", Description: "Lists issues", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "two issues"}}}, nil
	})
	s.MCP = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	return s
}

// link matches the link to log in that `servers login` prints.
var link = regexp.MustCompile(`(?m)^  (http\S+)$`)

// logInByHand runs `servers login --no-browser` and pastes the address at which the
// browser ends, as changed by paste.
func (h *home) logInByHand(fake *logintest.Server, paste func(string) string, flags ...string) (out string, code int) {
	h.t.Helper()
	cmd := h.command(append([]string{"servers", "login", "tracker", "--no-browser"}, flags...)...)
	cmd.Stderr = nil
	talk, err := cmd.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewReader(talk)
	for {
		line, err := lines.ReadString('\n')
		_, _ = h.talk.Write([]byte(line)) // never fails
		if m := link.FindStringSubmatch(line); m != nil {
			if _, err := io.WriteString(in, "\nwhat?\n"+paste(fake.Browse(h.t, m[1]))+"\n"); err != nil {
				h.t.Error(err)
			}
		}
		if err != nil {
			break
		}
	}
	in.Close()
	_ = cmd.Wait() // the code says it
	return said.String(), cmd.ProcessState.ExitCode()
}

// A person who pastes the address although the browser has come back too does not
// interrupt the login.
func TestServersLoginTwice(t *testing.T) {
	t.Parallel()
	fake := newTracker(t)
	h := newHome(t, map[string]any{"servers": map[string]any{"tracker": map[string]any{"url": fake.URL}}}, "CODEMODE_LOGINS=file")
	asked, pasted := make(chan struct{}), make(chan struct{})
	slow := func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-pasted
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token": "canary-access", "token_type": "Bearer"}`) // the client may be gone
	}
	fake.Do(func() { fake.Instead["/token"] = slow })
	cmd := h.command("servers", "login", "tracker", "--no-browser")
	cmd.Stderr = nil
	talk, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	page := make(chan string, 1)
	finish := sync.OnceFunc(func() { close(pasted) })
	for lines := bufio.NewScanner(talk); lines.Scan(); {
		if m := link.FindStringSubmatch(lines.Text()); m != nil {
			back := fake.Browse(t, m[1])
			go func() {
				var text []byte
				if resp, err := http.Get(back); err == nil {
					text, _ = io.ReadAll(resp.Body) // what it says is looked at
					resp.Body.Close()
				}
				page <- string(text)
			}()
			<-asked
			if _, err := io.WriteString(in, back+"\n"); err != nil {
				t.Error(err)
			}
		}
		if strings.Contains(lines.Text(), "the browser has come back already") {
			finish()
		}
	}
	finish() // the program has ended
	in.Close()
	_ = cmd.Wait() // the code says it
	if text := <-page; cmd.ProcessState.ExitCode() != 0 || !strings.HasPrefix(said.String(), "logged in to tracker (") || !strings.Contains(text, "Logged in to tracker") {
		t.Errorf("it ends with %d and says %q, the page %s", cmd.ProcessState.ExitCode(), said.String(), text)
	}
}

// An admin logs in from the page: the browser comes back to the bridge.
func TestLoginFromThePage(t *testing.T) {
	fake := newTracker(t)
	t.Setenv("CODEMODE_LOGINS", "file")
	b := serves(t, fmt.Sprintf(`{"surface": "full", "servers": {"tracker": {"url": %q}}, "approvals": {"listen": "127.0.0.1:0", "approvers": [%s]}}`,
		fake.URL, approverJSON("ann", "admin", annsToken)))
	var begun struct{ Link string }
	for range 2 { // the first is given up
		status, text := b.api(annsToken, "POST", "/api/servers/login", map[string]any{"server": "tracker"})
		if err := json.Unmarshal([]byte(text), &begun); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, text, err)
		}
	}
	back, err := http.Get(fake.Browse(t, begun.Link))
	if err != nil {
		t.Fatal(err)
	}
	defer back.Body.Close()
	if page, err := io.ReadAll(back.Body); err != nil || !strings.Contains(string(page), "Logged in to tracker") {
		t.Errorf("the browser ends at %s, %v", page, err)
	}
	eventually(t, "the bridge is not logged in", func() bool { return strings.Contains(b.status(), `"connected"`) })
	if status, text := b.api(annsToken, "POST", "/api/servers/login", map[string]any{"server": "nobody"}); status != http.StatusNotFound {
		t.Errorf("a login at no server: %d %s", status, text)
	}
}

// From a server that wants a login to a call of its tool, in a bridge that was already
// running; and back, by a logout.
func TestServersLogin(t *testing.T) {
	t.Parallel()
	fake := newTracker(t)
	config := map[string]any{"surface": "full", "servers": map[string]any{"tracker": map[string]any{"url": fake.URL}}, "log": map[string]any{"level": "debug"}}
	h := newHome(t, config, "CODEMODE_LOGINS=file")
	const hint = "the server needs a login: run codemode-bridge servers login tracker"
	bridge := h.connect()
	script := map[string]any{"code": "return await codemode.tracker__list_issues({})"}
	if got := bridge.call(t, "eval", script); !strings.Contains(got, hint) {
		t.Errorf("without a login, a call says %s", got)
	}
	if got := bridge.call(t, "codemode_status", map[string]any{}); !strings.Contains(got, hint) || !strings.Contains(got, `needs-login`) {
		t.Errorf("without a login, the status says %s", got)
	}
	if got := h.says([]int{0}, "servers", "list"); !strings.Contains(got, hint) || !strings.Contains(got, "needs-login") {
		t.Errorf("without a login, servers list says %s", got)
	}

	out, code := h.logInByHand(fake, func(back string) string { return back })
	if code != 0 || !regexp.MustCompile(`^logged in to tracker \(expires [-0-9: ]+, renews itself, scopes read\)\n$`).MatchString(out) {
		t.Fatalf("the login ends with %d and says %q\n%s", code, out, h.talk.String())
	}
	eventually(t, "the bridge has not noticed the login", func() bool {
		return strings.Contains(bridge.call(t, "codemode_status", map[string]any{}), `"connected"`)
	})
	eventually(t, "the tool cannot be called", func() bool { return strings.Contains(bridge.call(t, "eval", script), "two issues") })
	if got := h.says([]int{0}, "servers", "list"); !strings.Contains(got, "connected") {
		t.Errorf("with a login, servers list says %s", got)
	}

	// The server wants more rights for calls, and a new login grants them.
	fake.Do(func() { fake.Needs = "write" })
	if got := bridge.call(t, "eval", script); !strings.Contains(got, "the server needs a login with more rights (write): run codemode-bridge servers login tracker") {
		t.Errorf("without the rights, a call says %s", got)
	}
	out, code = h.logInByHand(fake, func(back string) string { return back[strings.Index(back, "?"):] }, "--json")
	var shown struct {
		Scopes []string
		Renews bool
	}
	if err := json.Unmarshal([]byte(out), &shown); code != 0 || err != nil || strings.Join(shown.Scopes, " ") != "read write" || !shown.Renews {
		t.Errorf("the login ends with %d and says %q", code, out)
	}
	if got := bridge.call(t, "eval", script); !strings.Contains(got, "two issues") {
		t.Errorf("with the rights, a call says %s", got)
	}

	// The token expires, and is renewed without a person.
	fake.Expired()
	if got := bridge.call(t, "eval", script); !strings.Contains(got, "two issues") {
		t.Errorf("after the token ended, a call says %s", got)
	}

	if got := h.says([]int{0}, "servers", "logout", "tracker"); got != "logged out of tracker\n" {
		t.Errorf("the logout says %q", got)
	}
	if got := bridge.call(t, "eval", script); !strings.Contains(got, "the server needs a login") {
		t.Errorf("after the logout, a call says %s", got)
	}
	h.says([]int{1}, "servers", "logout", "tracker")
	h.says([]int{1}, "servers", "login", "nobody")
	out, code = h.logInByHand(fake, func(back string) string {
		return regexp.MustCompile(`code=[^&]*`).ReplaceAllString(back, "code=guessed")
	})
	if code != 1 || out != "" {
		t.Errorf("with another code, the login ends with %d and says %q", code, out)
	}

	bridge.Close()
	shownEverywhere := map[string]string{"what is said": h.talk.String(), "audit": h.says([]int{0}, "audit", "query", "--json", "-n", "0")}
	for name, text := range files(t, filepath.Join(h.dir, "state")) {
		shownEverywhere[name] = text
	}
	for name, text := range shownEverywhere {
		for _, secret := range fake.Secrets() {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s", name, secret)
			}
		}
	}
}

// A login by client credentials needs no person, and the secret is shown to nobody.
func TestServersLoginByCredentials(t *testing.T) {
	t.Parallel()
	const secret = "canary-client-5c1e77aa"
	for _, row := range []struct{ secret, want string }{{secret, "two issues"}, {"canary-wrong-0b9d", "invalid_client"}} {
		fake := newTracker(t)
		fake.Clients = map[string]string{"robot": secret}
		h := newHome(t, map[string]any{"surface": "full", "log": map[string]any{"level": "debug"}, "servers": map[string]any{"tracker": map[string]any{"url": fake.URL,
			"auth": map[string]any{"type": "clientCredentials", "clientId": "robot", "clientSecret": "${TRACKER_SECRET}", "scopes": []string{"read"}}}}},
			"CODEMODE_LOGINS=file", "TRACKER_SECRET="+row.secret)
		bridge := h.connect()
		got := bridge.call(t, "eval", map[string]any{"code": "return await codemode.tracker__list_issues({})"})
		if status := bridge.call(t, "codemode_status", map[string]any{}); !strings.Contains(got+status, row.want) {
			t.Errorf("a call says %s\nand the status %s", got, status)
		}
		h.says([]int{1}, "servers", "login", "tracker") // there is nothing for a person to do
		bridge.Close()
		said := map[string]string{"what is said": h.talk.String() + got, "audit": h.says([]int{0}, "audit", "query", "--json", "-n", "0")}
		for name, text := range files(t, filepath.Join(h.dir, "state")) {
			said[name] = text
		}
		for name, text := range said {
			if strings.Contains(text, row.secret) {
				t.Errorf("%s has the secret", name)
			}
		}
	}
}

// The browser is started without a shell, and waited for.
func TestServersLoginOpensTheBrowser(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no shell to write a browser in")
	}
	fake := newTracker(t)
	h := newHome(t, map[string]any{"servers": map[string]any{"tracker": map[string]any{"url": fake.URL}}}, "CODEMODE_LOGINS=file")
	bin, opened := filepath.Join(h.dir, "bin"), filepath.Join(h.dir, "opened")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nprintf '%s %s' \"$#\" \"$1\" > '"+opened+".new'\nmv '"+opened+".new' '"+opened+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.env = append(h.env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	done := make(chan string)
	cmd := h.command("servers", "login", "tracker")
	go func() {
		out, _ := cmd.Output() // what it says is looked at
		done <- string(out)
	}()
	var text []byte
	eventually(t, "the browser was not opened", func() bool {
		var err error
		text, err = os.ReadFile(opened)
		return err == nil
	})
	count, address, _ := strings.Cut(string(text), " ")
	if count != "1" || !strings.HasPrefix(address, fake.Issuer+"/authorize?") {
		t.Fatalf("the browser was opened with %s", text)
	}
	resp, err := http.Get(fake.Browse(t, address))
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(page), "Logged in to tracker") || strings.Contains(string(page), "canary") {
		t.Errorf("the page says %s", page)
	}
	if out := <-done; !strings.HasPrefix(out, "logged in to tracker (") {
		t.Errorf("it says %q", out)
	}
}
