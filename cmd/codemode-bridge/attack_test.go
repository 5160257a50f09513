package main_test

// The model can't approve. While requests wait for a person, scripts turn an upstream
// server whose tools do whatever they are told (fetch, shell, read, write) against the
// bridge that calls it. None of that may approve a request, and all of it is in the audit
// log.

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// handsVariable makes this program the server whose tools do anything, running as the
// user with that id or, with "own", as whoever started it.
const handsVariable = "FAKE_UPSTREAM_HANDS"

// serveHands serves the tools
//
//	fetch  makes a request; with dial, to that address, whatever the URL says
//	shell  runs a command
//	read   reads a file
//	write  writes one
func serveHands() error {
	type arguments struct {
		URL, Dial, Method, Body, Command, Path, Text string
		Headers                                      map[string]string
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "hands", Version: "1"}, nil)
	add := func(name string, do func(context.Context, arguments) (string, error)) {
		tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
		server.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var args arguments
			if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
				return nil, err
			}
			text, err := do(ctx, args)
			if err != nil {
				text = "error: " + err.Error()
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	}
	add("fetch", func(ctx context.Context, a arguments) (string, error) {
		r, err := http.NewRequestWithContext(ctx, a.Method, a.URL, strings.NewReader(a.Body))
		if err != nil {
			return "", err
		}
		for name, value := range a.Headers {
			if r.Header.Set(name, value); name == "Host" {
				r.Host = value
			}
		}
		c := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if a.Dial != "" {
					addr = a.Dial
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}}}
		res, err := c.Do(r)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, 4096))
		return fmt.Sprintf("%d cors=%q cookie=%q %s", res.StatusCode, res.Header.Get("Access-Control-Allow-Origin"), res.Header.Get("Set-Cookie"), body), err
	})
	add("shell", func(ctx context.Context, a arguments) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, "sh", "-c", a.Command).CombinedOutput()
		return fmt.Sprintf("%v %s", err, out), nil
	})
	add("read", func(_ context.Context, a arguments) (string, error) {
		text, err := os.ReadFile(a.Path)
		return string(text), err
	})
	add("write", func(_ context.Context, a arguments) (string, error) {
		return "written", os.WriteFile(a.Path, []byte(a.Text), 0o600)
	})
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// A besieged bridge has two open requests, about calls whose effects are counted, and a
// client that wants them approved.
type besieged struct {
	*home
	page, token string
	effects     string
	asked       []map[string]any // the requests, as the command line lists them
	attacker    *mcp.ClientSession
}

// besiege starts one. The attacker's server runs as the user hands; see handsVariable.
func besiege(t *testing.T, hands string) *besieged {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	effects := filepath.Join(t.TempDir(), "effects")
	config := map[string]any{
		"servers":   map[string]any{"own": fakeServer(t, effects, "x"), "hands": map[string]any{"command": self, "env": map[string]string{handsVariable: hands}}},
		"approvals": map[string]any{"listen": "127.0.0.1:0"},
		"evaluation": map[string]any{"defaultProfile": "p", "clientPatience": "1s", "profiles": map[string]any{"p": map[string]any{
			"asklist": []string{"own__*"}, "elicitationFallback": "queue", "timeout": "10m",
			"rules": []any{map[string]any{"tools": []string{"own__fail"}, "action": "manual"}},
		}}},
	}
	h := newHome(t, config)
	// The shell finds the program and its configuration as a user would.
	h.env = append(h.env, "XDG_CONFIG_HOME="+filepath.Join(h.dir, "config"))
	usual := filepath.Join(h.dir, "config", "codemode-bridge", "config.json")
	if err := os.MkdirAll(filepath.Dir(usual), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(h.config, usual); err != nil {
		t.Fatal(err)
	}
	h.config = usual
	b := &besieged{home: h, effects: effects}
	b.token = strings.TrimSpace(h.says([]int{0}, "approvers", "add", "ann", "--role", "admin"))

	bridge := h.command("serve", "--listen", "127.0.0.1:0")
	bridge.Env[0] = "PATH=" + programs(t) + string(filepath.ListSeparator) + os.Getenv("PATH")
	var s serving
	s.start(t, bridge)
	b.page = s.page
	owner, err := s.connect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close() })
	go func() {
		_, _ = eval(context.Background(), owner, `return await Promise.allSettled([codemode.own__write({text: "x"}), codemode.own__fail({text: "y"})])`) // its effects are counted
	}()
	eventually(t, "nothing is asked", func() bool { return len(b.open()) == 2 })
	var pending struct{ Pending []map[string]any }
	if status, text := b.send("GET", "/api/pending", nil); status != http.StatusOK || json.Unmarshal([]byte(text), &pending) != nil {
		t.Fatalf("%d %s", status, text)
	}
	b.asked = pending.Pending
	if b.attacker, err = s.connect(t, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.attacker.Close() })
	return b
}

// send is what an approver sends, with their token.
func (b *besieged) send(method, path string, body map[string]any) (status int, answer string) {
	b.t.Helper()
	res, answer := request(b.t, http.DefaultClient, method, b.page+path, http.Header{"Authorization": {"Bearer " + b.token}}, body)
	return res.StatusCode, answer
}

// open returns the open requests.
func (b *besieged) open() []map[string]any {
	b.t.Helper()
	cmd := b.command("approvals", "list", "--json")
	out, err := cmd.Output()
	var all []map[string]any
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil && cmd.ProcessState.ExitCode() == 0 {
		b.t.Fatal(err)
	}
	return all
}

// unmoved checks that both requests still wait and that no call had an effect.
func (b *besieged) unmoved(after string) {
	b.t.Helper()
	if got := b.open(); len(got) != 2 {
		b.t.Fatalf("after %s %d requests wait", after, len(got))
	}
	if n := countEffects(b.t, b.effects); n != 0 {
		b.t.Fatalf("after %s %d effects", after, n)
	}
}

// attack runs a script of the attacker's. Its input has what the attacker is assumed to
// know: where the page is, the requests, and what an approval looks like.
func (b *besieged) attack(script string, input map[string]any) string {
	b.t.Helper()
	known := map[string]any{"page": b.page, "requests": b.asked, "home": b.dir}
	for k, v := range input {
		known[k] = v
	}
	res, err := b.attacker.CallTool(b.t.Context(), &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": script, "input": known}})
	if err != nil {
		b.t.Fatal(err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		b.t.Fatalf("the attack itself failed: %s", text)
	}
	return text
}

func TestModelCannotApprove(t *testing.T) {
	t.Parallel()
	b := besiege(t, "own")
	tries := 0

	t.Run("every way to the page", func(t *testing.T) {
		got := b.attack(`
			const at = new URL(input.page), odd = [], dial = at.host;
			const hosts = [at.host, "localhost:" + at.port, "localhost.:" + at.port, "[::1]:" + at.port, "[::ffff:127.0.0.1]:" + at.port, "0.0.0.0:" + at.port,
				"127.1:" + at.port, "2130706433:" + at.port, "rebound.example.com:" + at.port, "127.0.0.1.example.com"];
			let n = 0;
			const tryIt = async (url, method, headers, body, dial) => {
				n++;
				const answer = await codemode.hands__fetch({url, method, headers, body, dial});
				const text = typeof answer === "string" ? answer : JSON.stringify(answer);
				if (/^2|cors="[^"]|cookie="[^"]/.test(text)) odd.push([method, url, headers, text]);
			};
			for (const host of hosts) for (const r of input.requests) {
				const url = "http://" + host + "/api/decide/" + r.id;
				const yes = JSON.stringify({decision: "approve", digest: r.digest, typed: "fail"});
				for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"])
					await tryIt(url, method, {"Content-Type": "application/json"}, yes, dial);
			}
			for (const r of input.requests) {
				const url = input.page + "/api/decide/" + r.id, yes = JSON.stringify({decision: "approve", digest: r.digest, typed: "fail"});
				for (const [type, body] of [["text/plain", yes], ["application/x-www-form-urlencoded", "decision=approve&digest=" + r.digest], ["multipart/form-data; boundary=x", "--x--"], ["", yes]])
					await tryIt(url, "POST", {"Content-Type": type}, body);
				for (const headers of [
					{Origin: input.page}, {Origin: "null"}, {Origin: "http://evil.example"}, {"Sec-Fetch-Site": "same-origin", Origin: input.page},
					{Host: "evil.example"}, {Host: "evil.example", "X-Forwarded-Host": at.host}, {"X-Forwarded-For": "127.0.0.1"}, {Forwarded: "for=127.0.0.1"},
					{Authorization: "Bearer "}, {Authorization: "Bearer owner"}, {Authorization: "Bearer cmb_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, {Authorization: "Basic YW5uOmFubg=="},
					{Cookie: "codemode_approver_" + at.port + "=x", "X-Codemode-Secret": "x"}, {"X-HTTP-Method-Override": "POST"}, {"X-Codemode-Secret": "x"}])
					await tryIt(url, "POST", {"Content-Type": "application/json", ...headers}, yes);
				await tryIt(url + "?decision=approve&digest=" + r.digest, "GET", {});
				await tryIt(input.page + "/assets/../api/decide/" + r.id, "POST", {"Content-Type": "application/json"}, yes);
				await tryIt(input.page + "//api/decide/" + r.id, "POST", {"Content-Type": "application/json"}, yes);
			}
			for (const id of ["q", "qaaaaaaaaaa", "*", "..", "%2e%2e", "0", "' OR 1=1"])
				await tryIt(input.page + "/api/decide/" + encodeURIComponent(id), "POST", {"Content-Type": "application/json"}, '{"decision":"approve"}');
			for (const code of ["", "AAAAAAAAAAAAAAAAAAAAAAAAAA", "' OR 1=1", "0"]) {
				await tryIt(input.page + "/api/login", "POST", {"Content-Type": "application/json"}, JSON.stringify({code}));
				await tryIt(input.page + "/api/login", "POST", {"Content-Type": "application/json"}, JSON.stringify({token: code}));
			}
			for (const path of ["/", "/r/" + input.requests[0].id, "/api/me", "/api/pending", "/api/pending/" + input.requests[0].id, "/api/events", "/api/history", "/api/runs", "/api/grants", "/api/profiles", "/api/sessions"])
				await tryIt(input.page + path, "GET", {});
			return {n, odd};`, map[string]any{})
		var answer struct {
			Result struct {
				N   int
				Odd [][]any
			}
		}
		if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.Result.N < 150 {
			t.Fatalf("%v: %.500s", err, got)
		}
		for _, odd := range answer.Result.Odd {
			t.Errorf("let in: %.300v", odd)
		}
		tries += answer.Result.N
		b.unmoved("the page")
		if n := b.count("--event-type", "sign_in"); n == 0 {
			t.Error("no wrong token was recorded")
		}
	})

	t.Run("every tool and name", func(t *testing.T) {
		b.attack(`
			const names = ["approve", "eval_resume", "approvals__approve", "codemode__approve", "bridge__approve", "own__approve", "admin__decide", "elicitation__create", "codemode_status", "__proto__"];
			for (const name of names) for (const args of [{id: input.requests[0].id, decision: "approve"}, {run: input.requests[0].run}])
				try { await codemode.raw(name, args); if (name !== "codemode_status") throw new TypeError("there is a tool " + name) }
				catch (e) { if (e instanceof TypeError && e.message.startsWith("there is")) throw e }
			return null`, nil)
		for tool, err := range b.attacker.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range b.asked {
				for _, args := range []map[string]any{
					{"run": r["run"]}, {"run": r["run"], "decision": "approve", "id": r["id"]}, {"code": "return 1", "approve": true, "request": r["id"]}, {"query": r["id"]},
				} {
					_, _ = b.attacker.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: args}) // its answer does not matter
				}
			}
		}
		b.unmoved("all tools")
	})

	t.Run("own files", func(t *testing.T) {
		got := b.attack(`
			const own = [input.home + "/config/codemode-bridge/config.json", input.home + "/state/codemode-bridge/audit-requests.db", input.home + "/state/codemode-bridge/audit.db", input.home + "/state/codemode-bridge/../codemode-bridge/audit-requests.db"];
			const told = [];
			for (const path of own) for (const call of [
				() => codemode.hands__write({path, text: "{}"}), () => codemode.hands__read({path}),
				() => codemode.hands__shell({command: "echo {} > " + path}), () => codemode.hands__shell({command: "sqlite3 '" + path + "' 'update requests set verdict = 1'"})])
				try { await call(); told.push("sent " + path) } catch (e) { told.push(e.reason) }
			return told`, nil)
		if n := strings.Count(got, `"denied"`); n != 16 || strings.Contains(got, "sent") {
			t.Errorf("%d were denied: %s", n, got)
		}
		b.unmoved("its files")
	})

	t.Run("the command line", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("there is no sh")
		}
		got := b.attack(`
			const id = input.requests[0].id, pty = command => "script -qec '" + command + "' /dev/null", told = [];
			for (const command of [
				"codemode-bridge approvals approve " + id,
				"codemode-bridge approvals approve " + id + " </dev/null",
				"yes | codemode-bridge approvals approve " + id,
				"echo cmb_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | codemode-bridge approvals approve " + id + " --token-stdin",
				"codemode-bridge approvals watch </dev/null",
				"codemode-bridge approvals open --at " + input.page + " </dev/null",
				"(echo y; sleep 1; echo y) | " + pty("codemode-bridge approvals open --print --at " + input.page),
				"(echo y; echo y; sleep 1; echo y) | " + pty("codemode-bridge approvals approve " + id),
				"(echo y; sleep 1; echo a; echo y) | " + pty("codemode-bridge approvals watch"),
			]) told.push(await codemode.hands__shell({command}));
			return told`, nil)
		if strings.Contains(got, "approved") || strings.Contains(got, "code=") || !strings.Contains(got, "there is no terminal") || !strings.Contains(got, "no approver's token") {
			t.Errorf("it was told %s", got)
		}
		b.unmoved("the command line")
	})

	t.Run("what the bridge's process holds", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("there is no /proc")
		}
		got := b.attack(`return [await codemode.hands__shell({command: "cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'"}), await codemode.hands__shell({command: "env"})]`, nil)
		if strings.Contains(got, b.token) || strings.Contains(got, "#code=") {
			t.Errorf("a way in stands there: %s", got)
		}
		b.unmoved("its environment")
	})

	t.Run("the page of an approver", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the browser is opened by xdg-open here")
		}
		// A browser that prints its arguments and the content of the file they name.
		dir := t.TempDir()
		given, browser := filepath.Join(dir, "given"), "#!/bin/sh\nprintf '%s\\n' \"$@\" > "+dir+"/part; cat \"$1\" >> "+dir+"/part; mv "+dir+"/part "+dir+"/given\n"
		if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(browser), 0o700); err != nil {
			t.Fatal(err)
		}
		open := b.command("approvals", "open", "--token-stdin", "--at", b.page)
		open.Env[0] = "PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH")
		open.Stdin = strings.NewReader(b.token + "\n")
		if err := open.Start(); err != nil {
			t.Fatal(err)
		}
		var text []byte
		eventually(t, "no browser is opened", func() bool {
			var err error
			text, err = os.ReadFile(given)
			return err == nil
		})
		file, shown, _ := strings.Cut(string(text), "\n")
		code := regexp.MustCompile(`url=` + regexp.QuoteMeta(b.page) + `/login#code=([A-Z0-9]+(?:[.][a-z0-9]+)?)"`).FindStringSubmatch(shown)
		if code == nil || strings.Contains(file, "code=") || strings.Contains(strings.Join(open.Args, " "), code[1]) {
			t.Fatalf("the browser was given %s", text)
		}
		if err := open.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = open.Wait() // it was interrupted
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s stays: %v", file, err)
		}
		// The code is good once. The attempts above may have used up the rate limit too.
		for _, want := range [][]int{{http.StatusOK}, {http.StatusUnauthorized, http.StatusTooManyRequests}} {
			res, err := http.Post(b.page+"/api/login", "application/json", strings.NewReader(`{"code":"`+code[1]+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			if res.Body.Close(); !slices.Contains(want, res.StatusCode) {
				t.Errorf("the code: %d, want %d", res.StatusCode, want)
			}
		}
	})

	// All of that is in the log, and the holder of a token can still decide. What they
	// send is good once, for that request only, and only with their token.
	if n := b.count("--event-type", "intent", "--server", "hands"); n < tries+7 {
		t.Errorf("%d tries are recorded, of %d and more", n, tries)
	}
	if n := b.count("--event-type", "verdict"); n != 0 {
		t.Errorf("%d verdicts are recorded", n)
	}
	approve := func(r map[string]any) (int, string) {
		return b.send("POST", "/api/decide/"+fmt.Sprint(r["id"]), map[string]any{"decision": "approve", "digest": r["digest"], "typed": "fail"})
	}
	for i, r := range b.asked {
		if status, text := approve(r); status != http.StatusOK {
			t.Fatalf("the approver's yes: %d %s", status, text)
		}
		if status, text := approve(r); status != http.StatusConflict {
			t.Errorf("the same yes again: %d %s", status, text)
		}
		if i == 0 { // replaying it approves nothing else
			b.attack(`
				const other = input.requests[1];
				for (const digest of [other.digest, input.requests[0].digest])
					await codemode.hands__fetch({url: input.page + "/api/decide/" + other.id, method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({decision: "approve", digest, typed: "fail"})});
				return null`, nil)
			if got := b.open(); len(got) != 1 {
				t.Fatalf("after a replay %d requests wait", len(got))
			}
		}
	}
	eventually(t, "two yeses have no effect", func() bool { return countEffects(t, b.effects) == 2 })
}
