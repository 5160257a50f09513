package main_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// badgeVariable makes this program a server that does what the token in BADGE lets it, and
// says whose it is: in a tool's answer, in a resource, and in what it writes to its stderr.
const badgeVariable = "FAKE_BADGE"

func serveBadge() error {
	token := os.Getenv("BADGE")
	if token == "" {
		return errors.New("BADGE is not set")
	}
	fmt.Fprintln(os.Stderr, "started with", token)
	who, calls := badgeOf(token), 0
	server := mcp.NewServer(&mcp.Implementation{Name: "badge", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "whoami", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		calls++
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s, call %d, of %d arguments", who, calls, len(os.Args)-1)}}}, nil
	})
	server.AddResource(&mcp.Resource{URI: "badge://me", Name: "me"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "badge://me", MIMEType: "text/plain", Text: who}}}, nil
	})
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// badgeOf is what the server calls the owner of a token.
func badgeOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "badge " + hex.EncodeToString(sum[:8])
}

// Two people paste tokens of their own for one program: each has a process of their own,
// nobody's reaches another, and no token is anywhere but there.
func TestTokensOfTwoPeople(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	token := func(name, text string) string {
		sum := sha256.Sum256([]byte(text))
		return fmt.Sprintf(`{"name": %q, "sha256": %q}`, name, hex.EncodeToString(sum[:]))
	}
	const annSigns, bobSigns = "ann-signs-in-with-this-0123456789", "bob-signs-in-with-this-0123456789"
	const ofAnn, ofBob, again = "badge-canary-of-ann-81c0", "badge-canary-of-bob-77d2", "badge-canary-of-ann-2-5e1f"
	c := newCommandLine(t, fmt.Sprintf(`{
  "servers": {"badge": {"command": %q, "env": {%q: "1"}, "auth": {"per": "principal", "env": "BADGE"}, "newTools": "allow"}},
  "evaluation": {"defaultProfile": "open", "profiles": {"open": {}}}, "log": {"level": "debug"},
  "http": {"tokens": [%s, %s]},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s, %s]},
}`, self, badgeVariable, token("ann", annsToken), token("bob", bobsToken), approverJSON("ann", "viewer", annSigns), approverJSON("bob", "approver", bobSigns)))
	s := serving{file: c.file}
	s.start(t, c.program("", "serve", "--listen", "127.0.0.1:0"))
	session := func(token string) *mcp.ClientSession {
		t.Helper()
		client, err := s.connect(t, token)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client
	}
	asAnn, asBob := session(annsToken), session(bobsToken)
	const script = `const all = []; for (const f of [() => codemode.badge__whoami({}), async () => JSON.stringify(await codemode.resources.read("badge", "badge://me"))]) { try { all.push(await f()) } catch (e) { all.push(String(e.message)) } } return all`
	says := func(what string, client *mcp.ClientSession, want string) {
		t.Helper()
		if got, err := eval(t.Context(), client, script); err != nil || strings.Count(got, want) != 2 || strings.Count(got, "badge ") > 2 && strings.HasPrefix(want, "badge ") {
			t.Errorf("%s: %s, %v, want twice %s", what, got, err, want)
		}
	}
	ann := signIn(t, s.page, annSigns)
	if _, text := request(t, ann.client, http.MethodGet, s.page+"/accounts", nil, nil); !strings.Contains(text, `type="password"`) || !strings.Contains(text, `data-do="connect"`) {
		t.Errorf("the page does not offer to paste a token: %s", text)
	}
	paste := func(who *visitor, token string) (int, string) {
		t.Helper()
		return who.do("/api/accounts/connect", map[string]string{"server": "badge", "token": token})
	}
	if status, text := (&visitor{t, ann.client, s.page, http.Header{"Origin": {"https://mallory.example"}}}).do("/api/accounts/connect", map[string]string{"server": "badge", "token": ofBob}); status != http.StatusForbidden {
		t.Errorf("from another site: %d %s", status, text)
	}
	for _, wrong := range []string{"two words", "a\nline", strings.Repeat("x", 9<<10)} {
		if status, text := paste(ann, wrong); status == http.StatusOK || !strings.Contains(text, "the token ") {
			t.Errorf("%.10q is taken as a token: %d %s", wrong, status, text)
		}
	}
	if status, text := ann.do("/api/accounts/connect", map[string]string{"server": "badge"}); status == http.StatusOK || !strings.Contains(text, "paste it") {
		t.Errorf("without a token: %d %s", status, text)
	}
	if status, text := paste(ann, ofAnn); status != http.StatusOK {
		t.Fatalf("pasting: %d %s", status, text)
	}
	eventually(t, "the server's tools are not listed", func() bool {
		got, err := eval(t.Context(), asAnn, `return await codemode.badge__whoami({})`)
		return err == nil && strings.Contains(got, badgeOf(ofAnn)+", call 1, of 0 arguments")
	})
	says("ann", asAnn, badgeOf(ofAnn))
	says("bob, who has none", asBob, "the server needs an account of your own: connect it at "+s.page+"/accounts")
	if out, talk, code := c.run(ofBob+"\n", "servers", "login", "badge", "--as", "bob"); code != 0 || !strings.Contains(out, "the token for badge is kept, and used as bob") {
		t.Fatalf("from a terminal: %d %s%s", code, out, talk)
	}
	says("bob", asBob, badgeOf(ofBob))
	says("ann, beside bob", asAnn, badgeOf(ofAnn))
	if got, err := eval(t.Context(), asBob, `return await codemode.badge__whoami({})`); err != nil || !strings.Contains(got, "call 2,") {
		t.Errorf("bob's process has other calls than his: %s, %v", got, err)
	}
	if status, text := paste(ann, again); status != http.StatusOK {
		t.Fatalf("pasting another: %d %s", status, text)
	}
	says("ann with another token", asAnn, badgeOf(again))
	if out, talk, _ := c.run("", "doctor"); !strings.Contains(out+talk, "2 people have connected their accounts") {
		t.Errorf("doctor does not count: %s%s", out, talk)
	}
	if status, text := ann.do("/api/accounts/disconnect", map[string]string{"server": "badge"}); status != http.StatusOK || !strings.Contains(text, `"revoked":false`) {
		t.Errorf("disconnecting: %d %s", status, text)
	}
	says("ann, who has disconnected", asAnn, "connect it at "+s.page+"/accounts")
	says("bob, beside that", asBob, badgeOf(ofBob))
	if out, talk, code := c.run("", "servers", "logout", "badge", "--as", "bob"); code != 0 || !strings.Contains(out, "good until it is deleted where it was made") {
		t.Errorf("logging out: %s%s", out, talk)
	}
	says("bob, who was disconnected", asBob, "connect it at "+s.page+"/accounts")
	out, talk, _ := c.run("", "audit", "query", "--json", "-n", "0")
	for _, secret := range []string{ofAnn, ofBob, again} {
		if strings.Contains(out+talk, secret) {
			t.Errorf("the audit log has %s", secret)
		}
	}
	if !strings.Contains(out, `"event":"account_connected"`) || !strings.Contains(out, `"principal":"bob"`) {
		t.Errorf("the audit log does not say who connected: %s", out)
	}
	nowhere(t, c.home, []string{ofAnn, ofBob, again})
}
