package main_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/logintest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newMirror is a server that wants a login and says who asks: in a tool's answer, in a
// resource, and in names that look like those of fields.
func newMirror(t *testing.T) *logintest.Server {
	t.Helper()
	s := logintest.New(t)
	s.Lifetime = time.Hour
	s.MCP = mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		who := s.Whose(r)
		server := mcp.NewServer(&mcp.Implementation{Name: "mirror", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "whoami", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: who}}}, nil
		})
		server.AddTool(&mcp.Tool{Name: "projects", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text := fmt.Sprintf(`{"plans_of_%s": {"open": true}, "by_mail": {"%s@example.com": 1}}`, strings.SplitN(who, "-", 2)[0], who)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
		server.AddResource(&mcp.Resource{URI: "mirror://me", Name: "me"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mirror://me", MIMEType: "text/plain", Text: who}}}, nil
		})
		return server
	}, &mcp.StreamableHTTPOptions{Stateless: true})
	return s
}

// A visitor is somebody's at the page.
type visitor struct {
	t      *testing.T
	client *http.Client
	page   string
	header http.Header
}

// signIn signs somebody in with an approver's token.
func signIn(t *testing.T, page, token string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &visitor{t, &http.Client{Jar: jar}, page, http.Header{"Origin": {page}}}
	var answer struct{ Secret string }
	if status, text := b.do("/api/login", map[string]string{"token": token}); status != http.StatusOK || json.Unmarshal([]byte(text), &answer) != nil {
		t.Fatalf("signing in: %d %s", status, text)
	}
	b.header.Set("X-Codemode-Secret", answer.Secret)
	return b
}

func (b *visitor) do(path string, body any) (status int, text string) {
	b.t.Helper()
	res, text := request(b.t, b.client, http.MethodPost, b.page+path, b.header, body)
	return res.StatusCode, text
}

// begin begins to connect an account, and returns what the login comes back with.
func (b *visitor) begin(fake *logintest.Server, account string) string {
	b.t.Helper()
	var answer struct{ Link string }
	if status, text := b.do("/api/accounts/connect", map[string]string{"server": "mirror"}); status != http.StatusOK || json.Unmarshal([]byte(text), &answer) != nil {
		b.t.Fatalf("connecting: %d %s", status, text)
	}
	fake.Do(func() { fake.Person = account })
	back, ok := strings.CutPrefix(fake.Browse(b.t, answer.Link), b.page+"/accounts/done?")
	if !ok {
		b.t.Fatalf("the login comes back to %s", back)
	}
	return back
}

func (b *visitor) finish(returned string) (status int, text string) {
	b.t.Helper()
	return b.do("/api/accounts/finish", map[string]string{"returned": returned})
}

func (b *visitor) connect(fake *logintest.Server, account string) {
	b.t.Helper()
	if status, text := b.finish(b.begin(fake, account)); status != http.StatusOK {
		b.t.Fatalf("connecting: %d %s", status, text)
	}
}

// Two people with tokens connect their accounts on the page: their calls use their own,
// and a call without one says where to connect.
func TestAccountsOfTwoPeople(t *testing.T) {
	t.Parallel()
	fake := newMirror(t)
	token := func(name, text string) string {
		sum := sha256.Sum256([]byte(text))
		return fmt.Sprintf(`{"name": %q, "sha256": %q}`, name, hex.EncodeToString(sum[:]))
	}
	const annSigns, bobSigns = "ann-signs-in-with-this-0123456789", "bob-signs-in-with-this-0123456789"
	c := newCommandLine(t, fmt.Sprintf(`{
  "servers": {"mirror": {"url": %q, "auth": {"per": "principal"}, "newTools": "allow"}},
  "evaluation": {"defaultProfile": "open", "profiles": {"open": {}}},
  "http": {"tokens": [%s, %s]},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s, %s]},
}`, fake.URL, token("ann", annsToken), token("bob", bobsToken), approverJSON("ann", "viewer", annSigns), approverJSON("bob", "approver", bobSigns)))
	c.env = append(c.env, "CODEMODE_LOGINS=file")
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
	const script = `const all = []; for (const f of [() => codemode.mirror__whoami({}), async () => JSON.stringify(await codemode.resources.read("mirror", "mirror://me"))]) { try { all.push(await f()) } catch (e) { all.push(String(e.message)) } } return all`
	says := func(what string, client *mcp.ClientSession, want string) {
		t.Helper()
		if got, err := eval(t.Context(), client, script); err != nil || strings.Count(got, want) != 2 || strings.Count(got, "at-mirror") > 2 {
			t.Errorf("%s: %s, %v, want twice %s", what, got, err, want)
		}
	}

	ann, bob := signIn(t, s.page, annSigns), signIn(t, s.page, bobSigns)
	if _, text := request(t, ann.client, http.MethodGet, s.page+"/accounts", nil, nil); !strings.Contains(text, "not connected") || !strings.Contains(text, `data-do="connect"`) {
		t.Errorf("the page does not offer to connect: %s", text)
	}
	ann.connect(fake, "ann-at-mirror")
	eventually(t, "the server's tools are not listed", func() bool {
		got, err := eval(t.Context(), asAnn, `return await codemode.mirror__whoami({})`)
		return err == nil && got == `"ann-at-mirror"`
	})
	says("ann", asAnn, "ann-at-mirror")
	nothingLearned(t, "ann", asAnn, asBob)
	says("bob, who has none", asBob, "the server needs an account of your own: connect it at "+s.page+"/accounts")

	// Nobody finishes what somebody else has begun, whose account would become theirs.
	begun := bob.begin(fake, "mallory-at-mirror")
	if status, text := ann.finish(begun); status != http.StatusForbidden || !strings.Contains(text, "not begun by ann") {
		t.Errorf("ann finishes what bob began: %d %s", status, text)
	}
	if status, text := (&visitor{t, bob.client, s.page, http.Header{"Origin": {s.page}}}).finish(begun); status != http.StatusForbidden {
		t.Errorf("without the page's secret: %d %s", status, text)
	}
	if status, text := (&visitor{t, bob.client, s.page, http.Header{"Origin": {"https://mallory.example"}}}).finish(begun); status != http.StatusForbidden {
		t.Errorf("from another site: %d %s", status, text)
	}
	says("ann, still", asAnn, "ann-at-mirror")
	if status, text := bob.finish(begun); status != http.StatusOK {
		t.Errorf("bob finishes what he began: %d %s", status, text)
	}
	if status, _ := bob.finish(begun); status != http.StatusForbidden {
		t.Errorf("twice: %d", status)
	}
	says("bob with the account that he took", asBob, "mallory-at-mirror")
	bob.connect(fake, "bob-at-mirror")
	says("bob with another", asBob, "bob-at-mirror")
	says("ann, beside bob", asAnn, "ann-at-mirror")

	if out, talk, code := c.run("", "doctor"); !strings.Contains(out+talk, "2 people have connected their accounts") {
		t.Errorf("doctor ends with %d and does not count: %s%s", code, out, talk)
	}
	if status, text := ann.do("/api/accounts/disconnect", map[string]string{"server": "mirror"}); status != http.StatusOK || !strings.Contains(text, `"revoked":true`) {
		t.Errorf("disconnecting: %d %s", status, text)
	}
	says("ann, who has disconnected", asAnn, "connect it at "+s.page+"/accounts")
	says("bob, beside that", asBob, "bob-at-mirror")

	// The operator disconnects bob, from a terminal.
	if out, talk, code := c.run("", "servers", "logout", "mirror", "--as", "bob"); code != 0 || !strings.Contains(out, "logged out of mirror") {
		t.Errorf("logging out: %s%s", out, talk)
	}
	says("bob, who was disconnected", asBob, "connect it at "+s.page+"/accounts")

	out, _, _ := c.run("", "audit", "query", "--json", "--event-type", "account_connected", "--event-type", "account_disconnected")
	for _, want := range []string{`"event":"account_connected"`, `"event":"account_disconnected"`, `"server":"mirror"`, `"principal":"ann"`, `"principal":"bob"`, `"channel":"terminal"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the audit log has no %s: %s", want, out)
		}
	}
	nowhere(t, c.home, append(fake.Secrets(), "plans_of_ann"))
}

// nothingLearned has somebody read what they have at the mirror, and checks that nobody is
// shown its names, them included.
func nothingLearned(t *testing.T, who string, reads *mcp.ClientSession, others ...*mcp.ClientSession) {
	t.Helper()
	name := "plans_of_" + who
	for range 2 {
		if got, err := eval(t.Context(), reads, `return await codemode.mirror__projects({})`); err != nil || !strings.Contains(got, name) {
			t.Fatalf("%s reads %s, %v", who, got, err)
		}
	}
	for _, client := range append(others, reads) {
		for tool, args := range map[string]map[string]any{"get_tools": {}, "search_tools": {"query": "projects"}} {
			res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
			text, err2 := json.Marshal(res)
			if err != nil || err2 != nil || !strings.Contains(string(text), "mirror__projects") {
				t.Fatalf("%s: %s, %v, %v", tool, text, err, err2)
			}
			if strings.Contains(string(text), name) || strings.Contains(string(text), "observed") || strings.Contains(string(text), "example.com") {
				t.Errorf("%s shows what %s read: %s", tool, who, text)
			}
		}
	}
}

// nowhere reports secrets that stand in a file below a folder.
func nowhere(t *testing.T, folder string, secrets []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range secrets {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s holds a secret of the server", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
