package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/strict"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func mustParse(tb testing.TB, name, text string) *Config {
	tb.Helper()
	c, err := Parse(name, []byte(text), goodEnv)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func mustLoad(tb testing.TB, path string) *Config {
	tb.Helper()
	c, err := Load(path, goodEnv)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// A configuration with every key of an earlier time is still one.
func TestFrozenConfigurations(t *testing.T) {
	all, err := filepath.Glob("../../cmd/codemode-bridge/testdata/frozen/*/everything.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("there are %d frozen configurations: %v", len(all), err)
	}
	for _, file := range all {
		if c := mustLoad(t, file); len(c.Servers) == 0 {
			t.Errorf("%s has no servers", file)
		}
	}
}

func TestEveryKeyArrives(t *testing.T) {
	c := mustLoad(t, "testdata/good/everything.json")
	folder, err := filepath.Abs("testdata/good")
	if err != nil {
		t.Fatal(err)
	}
	auth := c.HTTP.Auth
	fs, remote, off := c.Servers["fs"], c.Servers["remote"], c.Servers["off"]
	rows := []struct {
		what      string
		got, want any
	}{
		{"file", c.File, filepath.Join(folder, "everything.json")},
		{"names", c.ServerNames(), []string{"api", "batch", "boxed", "clock", "fs", "off", "old", "remote", "tokens"}},
		{"type", fs.Type, KindStdio},
		{"name", fs.Name, "fs"},
		{"command", fs.Command.Reveal(), "npx"},
		{"args", Reveal(fs.Args), []string{"-y", "server", "--api-key", "canary-literal-argument", "--token=canary-in-a-variable-0", "$HOME $5 a default empty"}},
		{"env", RevealMap(fs.Env), map[string]string{"KEY": "canary-literal-env", "OTHER": "canary-in-a-variable-0", "http_proxy": "a", "HTTP_PROXY": "b"}},
		{"passEnv", fs.PassEnv, []string{"LANG"}},
		{"cwd", fs.Cwd.Reveal(), filepath.Join(folder, "data")},
		{"confine", fs.Confine, &Confine{
			Write: Folders{WorkspaceWord, filepath.Join("/home/me", "scratch"), filepath.Join(folder, "data")},
			Read:  Folders{filepath.Join("/home/me", "scratch", "fixed")},
			Net: Net{Hosts: []NetHost{
				{"api.example.com", 443}, {"*.example.com", 8443}, {"10.1.2.3", 5432}, {"2001:db8::1", 80}, {"localhost", 5432},
			}},
			Run:     Programs{filepath.Join(folder, "bin", "tool"), "git"},
			Require: true,
		}},
		{"a box that starts nothing", c.Servers["boxed"].Confine, &Confine{Net: Net{Any: true}, Run: Programs{}}},
		{"timeout", time.Duration(fs.Timeout), 5 * time.Second},
		{"connectTimeout", time.Duration(fs.ConnectTimeout), time.Minute},
		{"concurrency", fs.Concurrency, 4},
		{"rate", fs.Rate, Rate("60/m")},
		{"idleStop", time.Duration(fs.IdleStop), 10 * time.Minute},
		{"perSession", fs.PerSession, true},
		{"maxReply", fs.MaxReply, Size(1 << 20)},
		{"the sandbox's reply", remote.MaxReply, c.Sandbox.Reply},
		{"protocol", fs.Protocol, ProtocolLegacy},
		{"allow", fs.Tools.Allow, []string{"read_*", "{a,b}"}},
		{"deny", fs.Tools.Deny, []string{"*_delete"}},
		{"elicitation", []any{fs.Elicitation, remote.Elicitation}, []any{ElicitationDeny, ElicitationAsk}},
		{"sampling", []any{fs.Sampling, remote.Sampling}, []any{SamplingAsk, SamplingDeny}},
		{"roots", fs.Roots, []string{"file:///work"}},
		{"trustAnnotations", fs.TrustAnnotations, true},
		{"trace", []*bool{fs.Trace, remote.Trace}, []*bool{new(false), nil}},
		{"quarantine", fs.Quarantine, true},
		{"http", remote.Type, KindHTTP},
		{"url", remote.URL.Reveal(), "https://user:canary-password@canary.example.com/mcp?api_key=canary-query&v=canary-in-a-variable-0"},
		{"headers", remote.Headers["Authorization"].Reveal(), "Bearer canary-in-a-variable-0"},
		{"the sandbox's time-out", time.Duration(remote.Timeout), 30 * time.Second},
		{"sse", c.Servers["old"].Type, KindSSE},
		{"login by a person", c.Servers["old"].Auth, Auth{Type: AuthPerson, Per: AuthPrincipal, Scopes: []string{"read"}, RedirectPort: 8085}},
		{"login by a secret", c.Servers["batch"].Auth.Type, AuthCredentials},
		{"client's id", c.Servers["batch"].Auth.ClientID.Reveal(), "bridge"},
		{"client's secret", c.Servers["batch"].Auth.ClientSecret.Reveal(), "canary-in-a-variable-0"},
		{"issuer", c.Servers["batch"].Auth.Issuer.Reveal(), "https://auth.example"},
		{"no login beside a header", remote.Auth.Type, AuthNone},
		{"openapi", c.Servers["api"].Type, KindOpenAPI},
		{"document", c.Servers["api"].OpenAPI.Reveal(), filepath.Join(folder, "api", "petstore.yaml")},
		{"builtin", c.Servers["clock"].Builtin, "time"},
		{"disabled", off.Disabled, true},
		{"unset in a disabled server", Reveal(off.Args), []string{""}},
		{"sandbox", c.Sandbox, Sandbox{
			CPU: duration("5s"), Heap: 128 << 20, Calls: 10, Parallel: 5, Source: 128 << 10, Logs: 32 << 10, Result: 32 << 10,
			Reply: 8 << 20, CallTimeout: duration("30s"), Workers: 8, Warm: 1, Fresh: true,
		}},
		{"surface", c.Surface, SurfaceFull},
		{"listen", c.HTTP.Listen.Reveal(), "0.0.0.0:7420"},
		{"token", c.HTTP.Tokens[0].Digest.String(), "d3186ea00f05f5be61b53a3094295a36dc1707ca474923ae89bccdf551785924"},
		{"sha256", c.HTTP.Tokens[1].Digest.String(), "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		{"auth", []string{auth.Issuer.Reveal(), auth.Resource.Reveal(), auth.Audiences[0], auth.Scopes[1], auth.Groups, auth.Introspection.URL.Reveal(), auth.Introspection.ClientID.Reveal(), auth.Introspection.ClientSecret.Reveal()},
			[]string{"https://canary.example.com/realm", "https://bridge.example.com/mcp", "api://bridge", "mcp:run", "/realm_access/roles", "https://login.example.com/introspect", "bridge", "canary-in-a-variable-0"}},
		{"maxSessions", c.HTTP.MaxSessions, 10},
		{"maxBody", c.HTTP.MaxBody, Size(1 << 20)},
		{"allowedHosts", Reveal(c.HTTP.AllowedHosts), []string{"bridge.example.com", "canary.example.com:7420", "[::1]:80"}},
		{"windows", c.Windows, Windows{Linger: duration("30s")}},
		{"scripts", c.Scripts, Scripts{Dir: filepath.Join("/home/me", "saved")}},
		{"runs", c.Runs, Runs{Journal: 8 << 20, Keep: Period(24 * time.Hour)}},
		{"audit", c.Audit, Audit{
			Path: filepath.Join(folder, "records", "audit.db"), Durability: DurabilityAll,
			Checkpoint: filepath.Join("/home/me", "checkpoints"), Keep: Period(90 * 24 * time.Hour),
			Push: c.Audit.Push,
		}},
		{"push", []string{c.Audit.Push.OTLP.URL.Reveal(), string(c.Audit.Push.OTLP.Protocol), c.Audit.Push.OTLP.Headers["Authorization"].Reveal(), c.Audit.Push.Webhook.URL.Reveal(), c.Audit.Push.Webhook.Secret.Reveal()},
			[]string{"https://collector.example.com:4317", "grpc", "Bearer canary-in-a-variable-2", "https://hooks.example.com/audit", "canary-in-a-variable-2"}},
		{"approver", c.Approvals.Approvers[0].Role, RoleAdmin},
		{"approver's hash", c.Approvals.Approvers[0].Digest.String(), "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"},
		{"approver's risk", c.Approvals.Approvers[1].Risk, RiskMedium},
		{"approver's groups", c.Approvals.Approvers[1].Groups, []string{"security"}},
		{"approver's token", c.Approvals.Approvers[1].Digest, Digest(sha256.Sum256([]byte("canary-in-a-variable-2")))},
		{"delegation", c.Approvals.Delegations, []Delegation{{From: "ann", To: "bob", Until: "2026-12-31T18:00:00Z"}}},
		{"webhook", c.Approvals.Webhooks[0].Secret.Reveal(), "canary-in-a-variable-3"},
		{"oidc", []string{c.Approvals.OIDC.Issuer.Reveal(), c.Approvals.OIDC.ClientID.Reveal(), c.Approvals.OIDC.ClientSecret.Reveal(), c.Approvals.OIDC.RedirectURL.Reveal(), c.Approvals.OIDC.Claim},
			[]string{"https://login.example.com", "codemode", "canary-in-a-variable-3", "https://approve.example.com/login/done", "sub"}},
		{"principal", c.Approvals.Approvers[2].Principal, "https://login.example.com#eve"},
		{"login", []string{c.Approvals.Approvers[1].Login, c.Approvals.Approvers[2].Login}, []string{"bob-at-login", "eve-at-login"}},
		{"an approver without a token", c.Approvals.Approvers[2].Digest, Digest{}},
		{"the page", c.Approvals.Listen.Reveal(), "0.0.0.0:7421"},
		{"separateApprover", c.Approvals.SeparateApprover, true},
		{"desktop", c.Approvals.Desktop, true},
		{"summaries", c.Approvals.Summaries, true},
		{"how much may be asked", []int{c.Approvals.PerRun, c.Approvals.PerSession, c.Approvals.PerBridge, c.Approvals.Budget, c.Approvals.Flood}, []int{3, 10, 100, 30, 20}},
		{"overflow", c.Approvals.Overflow, OverflowRefuse},
		{"budgetTime", time.Duration(c.Approvals.BudgetTime), time.Hour},
		{"log", c.Log, Log{Level: LogDebug, Format: LogJSON}},
		{"slog", c.Log.Level.Slog(), slog.LevelDebug},
		{"defaultProfile", *c.Evaluation.DefaultProfile, "supervised"},
		{"rules", len(c.Evaluation.Profiles["supervised"].Rules), 2},
	}
	for _, r := range rows {
		if diff := cmp.Diff(r.want, r.got, cmp.AllowUnexported(Value{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.what, diff)
		}
	}
	if c.Profiles == nil {
		t.Error("the policy was not built")
	}
}

// An owner has a Config where fmt may not ask it for its String.
type owner struct{ config Config }

func TestNoSecretIsShown(t *testing.T) {
	c := mustLoad(t, "testdata/good/everything.json")
	shown := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		shown["config "+verb] = fmt.Sprintf(verb, c)
		shown["copy "+verb] = fmt.Sprintf(verb, *c)
		shown["owner "+verb] = fmt.Sprintf(verb, owner{*c})
		for name, s := range c.Servers {
			shown[name+" "+verb] = fmt.Sprintf(verb, *s)
		}
		shown["value "+verb] = fmt.Sprintf(verb, c.Servers["fs"].Env["KEY"])
		shown["token "+verb] = fmt.Sprintf(verb, c.HTTP.Tokens[0])
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown["json"] = string(text)
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text log": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json log": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("loaded", "config", c, "copy", *c, "server", c.Servers["remote"],
			"copied", *c.Servers["remote"], "http", c.HTTP, "value", c.Servers["fs"].Env["KEY"])
		shown[name] = b.String()
	}
	for how, text := range shown {
		for _, secret := range []string{"canary", hex.EncodeToString([]byte("canary")), strings.ToUpper(hex.EncodeToString([]byte("canary")))} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows a secret: %s", how, text)
			}
		}
	}
	for _, want := range []string{`"${TOKEN}"`, `--token=${TOKEN}`, `://[hidden]@${HOST}/mcp?api_key=[hidden]&v=${TOKEN}`, `"X-Plain": "[hidden]"`} {
		if !strings.Contains(shown["config %v"], want) {
			t.Errorf("the printed configuration lacks %s:\n%s", want, shown["config %v"])
		}
	}
}

// What is shown of a configuration without secrets is that configuration.
func TestShownIsConfiguration(t *testing.T) {
	for _, name := range []string{"testdata/good/empty.json", "../../config.example.json"} {
		c := mustLoad(t, name)
		again := mustParse(t, name, c.String())
		if c.String() != again.String() {
			t.Errorf("%s prints as\n%s\nwhich is\n%s", name, c, again)
		}
	}
}

func TestExample(t *testing.T) {
	const name = "../../config.example.json"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	none := func(string) (string, bool) { return "", false }
	c, err := Parse(name, text, none)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.ServerNames(), " "); got != "time utils" || strings.Join(c.Profiles.Names(), " ") != "safe supervised" {
		t.Errorf("the example has servers %s and profiles %v", got, c.Evaluation.Profiles)
	}

	// Comments with two spaces are examples of their own: uncomment them all.
	uncommented := regexp.MustCompile(`(?m)^(\s*)//  `).ReplaceAll(text, []byte("$1"))
	c, err = Parse(name, uncommented, func(name string) (string, bool) {
		return "a token that is long enough: " + name, slices.Contains([]string{"GITHUB_TOKEN", "BRIDGE_TOKEN", "STORE_PASSWORD", "STORE_KEY", "METRICS_TOKEN"}, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.ServerNames(), " "); got != "filesystem github time utils" {
		t.Errorf("uncommented, the example has servers %s", got)
	}
	supervised := "supervised"
	if diff := cmp.Diff(&supervised, c.Evaluation.DefaultProfile); diff != "" {
		t.Errorf("uncommented, the example has another default profile (-want +got):\n%s", diff)
	}
	if len(c.Evaluation.Profiles) != 2 || len(c.HTTP.Tokens) != 1 || len(c.Access) != 3 || c.HTTP.Auth.IsZero() || c.Store.IsZero() {
		t.Errorf("uncommented, the example is\n%s", c)
	}
}

func TestClientShapes(t *testing.T) {
	c := mustParse(t, "c.json", `{"mcpServers": {
		"a": {"type": "stdio", "command": "x", "args": [], "env": {}, "disabled": false},
		"b": {"type": "streamable-http", "url": "https://example.com/"},
		"c": {"type": "streamableHttp", "url": "https://example.com/"},
		"d": {"url": "https://example.com/${env:HOST}"},
		"e": {"type": "sse", "url": "https://example.com/"},
		"f": {"builtin": "utils"},
	}}`)
	for name, want := range map[string]Kind{"a": KindStdio, "b": KindHTTP, "c": KindHTTP, "d": KindHTTP, "e": KindSSE, "f": KindBuiltin} {
		if got := c.Servers[name].Type; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestServersKeptApart(t *testing.T) {
	c := mustParse(t, "c.json", `{"servers": {"a-b": {"command": "x"}, "a_b": {"command": "y"}, "Ab": {"command": "z"}, "1": {"command": "x"}}}`)
	if len(c.Servers) != 4 {
		t.Errorf("got %v", c.ServerNames())
	}
}

func TestPathsStartFromTheFile(t *testing.T) {
	folder := t.TempDir()
	home, _ := Home(goodEnv)
	if runtime.GOOS == "windows" && home == "" {
		t.Fatal("no home")
	}
	c := mustParse(t, filepath.Join(folder, "c.json"), `{"servers": {
		"a": {"command": "x", "cwd": "data"},
		"b": {"command": "./bin/x", "cwd": "~/work"},
		"c": {"command": "bin/x", "cwd": "."},
		"d": {"command": "~/bin/x", "cwd": "~"},
		"e": {"command": "x", "cwd": "~other"},
		"f": {"command": "x"},
		"g": {"command": "į"},
	}}`)
	join := filepath.Join
	for name, want := range map[string][2]string{
		"a": {"x", join(folder, "data")},
		"b": {join(folder, "bin", "x"), join(home, "work")},
		"c": {join(folder, "bin", "x"), folder},
		"d": {join(home, "bin", "x"), home},
		"e": {"x", join(folder, "~other")},
		"f": {"x", ""},
		"g": {"į", ""}, // its last byte in UTF-16 is a slash
	} {
		s := c.Servers[name]
		if got := [2]string{s.Command.Reveal(), s.Cwd.Reveal()}; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if _, err := Parse("c.json", []byte(`{"servers": {"a": {"command": "x", "cwd": "~/x"}}}`), nil); err == nil || !strings.Contains(err.Error(), "home") {
		t.Errorf("without a home: %v", err)
	}
}

func TestListenOnLoopback(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "127.9.9.9:7420", "localhost:80", "[::1]:7420", "[::ffff:127.0.0.1]:1"} {
		mustParse(t, "c.json", fmt.Sprintf(`{"http": {"listen": %q}}`, listen))
	}
}

func TestLoad(t *testing.T) {
	folder := t.TempDir()
	var problems Problems
	if _, err := Load(filepath.Join(folder, "none.json"), nil); !errors.Is(err, fs.ErrNotExist) || errors.As(err, &problems) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := Load(folder, nil); err == nil || errors.As(err, &problems) {
		t.Errorf("a folder: %v", err)
	}
	path := filepath.Join(folder, "c.json")
	if err := os.WriteFile(path, []byte(`{"x": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path, nil)
	var first *FieldError
	if !errors.As(err, &first) {
		t.Fatalf("a wrong file: %v", err)
	}
	if diff := cmp.Diff(&FieldError{File: path, Line: 1, Column: 2, Path: "/x"}, first, cmpopts.IgnoreFields(FieldError{}, "Message", "Hint")); diff != "" {
		t.Errorf("a wrong file (-want +got):\n%s", diff)
	}
}

func TestMoreMistakesThanAnyoneReads(t *testing.T) {
	text := "{" + strings.Repeat("\n", 3)
	for i := range 5000 {
		text += fmt.Sprintf("%q: 1,\n", fmt.Sprint("key", i))
	}
	_, err := Parse("c.json", []byte(text+"}"), nil)
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != strict.MaxProblems+1 || !strings.Contains(problems[strict.MaxProblems].Message, "4900 more") {
		t.Errorf("got %d problems, the last is %v", len(problems), problems[len(problems)-1])
	}
}

func TestExpand(t *testing.T) {
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "1", "B_2": "two", "EMPTY": "", "REF": "${A}$$"}[name]
		return v, ok
	}
	for text, want := range map[string]string{
		"":                     "",
		"plain":                "plain",
		"${A}":                 "1",
		"x${A}y${B_2}z":        "x1ytwoz",
		"${env:A}":             "1",
		"${A:-no}":             "1",
		"${NO:-yes}":           "yes",
		"${env:NO:-yes}":       "yes",
		"${NO:-}":              "",
		"${EMPTY}":             "",
		"${EMPTY:-yes}":        "yes",
		"${NO:-a b:-$c\n/}":    "a b:-$c\n/",
		"$$":                   "$",
		"$${A}":                "${A}",
		"$$$${A}":              "$${A}",
		"$$${A}":               "$1",
		"$A $ $1":              "$A $ $1",
		"a$":                   "a$",
		"${REF}":               "${A}$$", // filled in once
		"{A} \\${A}":           "{A} \\1",
		"${A}${A}${A}${A}${A}": "11111",
	} {
		got, slips := secrets.Expand(text, env, nil)
		if slips != nil || got.Text != want {
			t.Errorf("%q becomes %q (%v), want %q", text, got.Text, slips, want)
		}
	}
}

// A place inside a string's value is found in its literal, escapes or not.
func TestWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := strings.ToValidUTF8(rapid.String().Draw(t, "value"), "?")
		lit, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "ascii") {
			var b strings.Builder
			b.WriteByte('"')
			for _, r := range value {
				if r < 0x10000 {
					fmt.Fprintf(&b, `\u%04X`, r)
				} else {
					fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
				}
			}
			lit = []byte(b.String() + `"`)
		}
		for n := 0; n <= len(value); n++ {
			if n < len(value) && !utf8.RuneStart(value[n]) {
				continue
			}
			var before string
			at := strict.Within(lit, n)
			if err := json.Unmarshal([]byte(string(lit[:at])+`"`), &before); err != nil || before != value[:n] {
				t.Fatalf("byte %d of %q is at %d of %s (%v)", n, value, at, lit, err)
			}
		}
	})
}

func TestProposedNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.SampledFrom(reserved), rapid.StringMatching(`[_a-z.-]{0,80}`)).Draw(t, "name")
		taken := map[string]*Server{}
		for range 3 {
			proposal := proposeName(name, taken)
			if message, ok := nameProblem(proposal); !ok {
				t.Fatalf("for %q, %q is proposed: %s", name, proposal, message)
			}
			if _, used := taken[proposal]; used {
				t.Fatalf("for %q, %q is proposed, which is taken", name, proposal)
			}
			taken[proposal] = nil
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, bad := range badFiles(f) {
		if len(bad.data) < 1<<16 {
			f.Add(bad.data)
		}
	}
	for _, name := range goodFiles(f) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	const secret = "fuzzed-variable-7b1d"
	env := func(name string) (string, bool) { return secret, name != "" && name[0] < 'P' }
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("c.json", data, env)
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("not a list of problems: %v", err)
			}
			lines := bytes.Split(data, []byte("\n"))
			for i, p := range problems {
				if !placedIn(p, lines) {
					t.Fatalf("%v is not in the file", p)
				}
				if i > 0 && (p.Line < problems[i-1].Line || p.Line == problems[i-1].Line && p.Column < problems[i-1].Column) {
					t.Fatalf("%v comes after %v", p, problems[i-1])
				}
				if strings.Contains(p.Error(), "\n") || p.Message == "" {
					t.Fatalf("%q is not one line", p.Error())
				}
			}
			if strings.Contains(err.Error(), secret) && !bytes.Contains(data, []byte(secret)) {
				t.Fatalf("a variable is shown: %v", err)
			}
			return
		}
		if text := c.String(); strings.Contains(text, secret) && !bytes.Contains(data, []byte(secret)) {
			t.Fatalf("a variable is shown: %s", text)
		}
		tree, problem := strict.NewSource("c.json", data).Parse()
		if problem != nil {
			t.Fatal(problem)
		}
		tree.Minimize()
		again, err := Parse("c.json", tree.Pack(), env)
		if err != nil {
			t.Fatalf("without its comments it is refused: %v", err)
		}
		// A built policy holds functions, which are never equal.
		if c.Profiles.Revision() != again.Profiles.Revision() {
			t.Fatal("without its comments it is another policy")
		}
		c.Profiles, again.Profiles, c.Digest, again.Digest = nil, nil, Digest{}, Digest{}
		c.from, again.from = origin{}, origin{}
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(Config{}, Value{}, ground{}, ownPath{}, origin{})); diff != "" {
			t.Fatalf("without its comments it is another configuration (-with +without):\n%s", diff)
		}
	})
}

func goodFiles(tb testing.TB) []string {
	tb.Helper()
	names, err := filepath.Glob("testdata/good/*.json")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no good files (%v)", err)
	}
	return append(names, "../../config.example.json")
}

func TestRate(t *testing.T) {
	for text, want := range map[Rate]struct {
		calls int
		per   time.Duration
	}{"10/s": {10, time.Second}, "60/m": {60, time.Minute}, "999999/h": {999_999, time.Hour}, "": {}} {
		if calls, per := text.Split(); calls != want.calls || per != want.per {
			t.Errorf("%q is %d in %v", text, calls, per)
		}
	}
}

// A configuration is the same one by its id wherever its file is, and without an
// id by where its files are, whatever leads there.
func TestIdentityOfConfigurations(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no links here: ", err)
	}
	id := func(c Config) string { id, _ := c.Identity(); return id }
	if a, b := id(Config{File: file}), id(Config{File: link}); a != b {
		t.Errorf("by its name %q, by a link %q", a, b)
	}
	if a, b := id(Config{File: file, Head: Head{ID: "work"}}), id(Config{File: "/elsewhere", Head: Head{ID: "work"}}); a != b {
		t.Errorf("with an id here %q, there %q", a, b)
	}
	different := map[string]string{}
	for name, c := range map[string]Config{
		"a file": {File: file}, "another": {File: file + "c"}, "with an overlay": {File: file, Overlay: file + "c"},
		"an id": {File: file, Head: Head{ID: "work"}}, "another id": {File: file, Head: Head{ID: "home"}},
	} {
		if other := different[id(c)]; other != "" {
			t.Errorf("%s is the same as %s", name, other)
		}
		different[id(c)] = name
	}
}

// A server is another one as soon as anything that it is given differs, and the
// same whatever else does.
func TestIdentityOfServers(t *testing.T) {
	const base = `{"command": "db", "args": ["--url", "${URL}"], "cwd": "/srv", "env": {"TOKEN": "a", "MODE": "x"}, "passEnv": ["REGION", "PATH"], "rotating": ["TOKEN", "KEY"]`
	env := func(values ...string) Env {
		return func(name string) (string, bool) {
			for _, v := range values {
				if text, ok := strings.CutPrefix(v, name+"="); ok {
					return text, true
				}
			}
			return "", false
		}
	}
	given := env("URL=staging", "REGION=eu", "PATH=/bin", "KEY=k")
	identity := func(text string, key string, env Env) string {
		t.Helper()
		c, err := Parse("/c.json", []byte(`{"servers": {"db": `+text+`}}`), env)
		if err != nil {
			t.Fatal(err)
		}
		return c.Servers["db"].Identity([]byte(key), env, func(name string) bool { return name == "PATH" })
	}
	whole := strings.Replace(base, `"REGION"`, `"REGION", "KEY"`, 1) + "}"
	is := identity(whole, "key", given)
	for what, same := range map[string]string{
		"a time-out":            identity(strings.TrimSuffix(whole, "}")+`, "timeout": "5s"}`, "key", given),
		"PATH":                  identity(whole, "key", env("URL=staging", "REGION=eu", "PATH=/usr/bin", "KEY=k")),
		"a variable that turns": identity(whole, "key", env("URL=staging", "REGION=eu", "PATH=/bin", "KEY=l")),
		"a token that rotates":  identity(strings.Replace(whole, `"TOKEN": "a"`, `"TOKEN": "b"`, 1), "key", given),
	} {
		if same != is {
			t.Errorf("%s makes it another server", what)
		}
	}
	for what, other := range map[string]string{
		"another store":     identity(whole, "other", given),
		"a variable in it":  identity(whole, "key", env("URL=production", "REGION=eu", "PATH=/bin", "KEY=k")),
		"a passed variable": identity(whole, "key", env("URL=staging", "REGION=us", "PATH=/bin", "KEY=k")),
		"its environment":   identity(strings.Replace(whole, `"MODE": "x"`, `"MODE": "y"`, 1), "key", given),
		"its program":       identity(strings.Replace(whole, `"db"`, `"db2"`, 1), "key", given),
		"its folder":        identity(strings.Replace(whole, `"/srv"`, `"/tmp"`, 1), "key", given),
		"an address":        identity(`{"url": "https://db.example.com"}`, "key", given),
	} {
		if other == is {
			t.Errorf("%s makes no difference", what)
		}
	}
}

// What a server is on any machine is the same wherever the configuration and the home
// folder are, and reveals nothing that is secret.
func TestPortableIdentity(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths in it are not those of Windows")
	}
	const base = `{"command": "node", "args": ["./srv.js", "--dir=/home/ann/notes:/home/ann/proj/data", "--api-key", "k1", "postgres://u:pw@db/x"],
		"cwd": "sub", "env": {"TOKEN": "t1", "MODE": "${MODE}"}, "passEnv": ["B", "A"]}`
	identity := func(home, folder, server string) string {
		t.Helper()
		env := func(name string) (string, bool) {
			return map[string]string{"HOME": home, "MODE": home, "URL": home}[name], true
		}
		c, err := Parse(folder+"/config.json", []byte(`{"servers": {"a": `+server+`}}`), env)
		if err != nil {
			t.Fatal(err)
		}
		return c.Servers["a"].Portable(c, env)
	}
	with := func(old, new string) string {
		t.Helper()
		if !strings.Contains(base, old) {
			t.Fatalf("there is no %s", old)
		}
		return strings.Replace(base, old, new, 1)
	}
	is := identity("/home/ann", "/home/ann/proj", base)
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(is) {
		t.Errorf("it is %s", is)
	}
	for what, same := range map[string]string{
		"another home and folder": identity("/users/bob", "/srv/clone", with("/home/ann/notes:/home/ann/proj/data", "/users/bob/notes:/srv/clone/data")),
		"a value in env":          identity("/home/ann", "/home/ann/proj", with(`"t1"`, `"t2"`)),
		"where that comes from":   identity("/home/ann", "/home/ann/proj", with(`"t1"`, `"${T}"`)),
		"a secret argument":       identity("/home/ann", "/home/ann/proj", with(`"k1"`, `"k2"`)),
		"a password":              identity("/home/ann", "/home/ann/proj", with(`u:pw@`, `u:other@`)),
		"the order of passEnv":    identity("/home/ann", "/home/ann/proj", with(`["B", "A"]`, `["A", "B"]`)),
		"a time-out":              identity("/home/ann", "/home/ann/proj", with(`"command"`, `"timeout": "5s", "command"`)),
		"home as a variable":      identity("/home/ann", "/home/ann/proj", with(`/home/ann/notes`, `${HOME}/notes`)),
	} {
		if same != is {
			t.Errorf("%s makes it another server", what)
		}
	}
	for what, other := range map[string]string{
		"its program":        identity("/home/ann", "/home/ann/proj", with(`"node"`, `"deno"`)),
		"an argument":        identity("/home/ann", "/home/ann/proj", with(`"./srv.js"`, `"./other.js"`)),
		"a folder":           identity("/home/ann", "/home/ann/proj", with(`/home/ann/notes`, `/home/ann/mail`)),
		"a folder beside":    identity("/home/ann", "/home/ann/proj", with(`/home/ann/notes`, `/home/anna/notes`)),
		"its own folder":     identity("/home/ann", "/home/ann/proj", with(`"sub"`, `"other"`)),
		"another variable":   identity("/home/ann", "/home/ann/proj", with(`"MODE"`, `"LD_PRELOAD"`)),
		"a variable passed":  identity("/home/ann", "/home/ann/proj", with(`["B", "A"]`, `["A"]`)),
		"a variable's name":  identity("/home/ann", "/home/ann/proj", with(`"./srv.js"`, `"${URL}"`)),
		"an address":         identity("/home/ann", "/home/ann/proj", `{"url": "https://a.example"}`),
		"another address":    identity("/home/ann", "/home/ann/proj", `{"url": "https://b.example"}`),
		"a header":           identity("/home/ann", "/home/ann/proj", `{"url": "https://a.example", "headers": {"X-Team": "1"}}`),
		"a login of its own": identity("/home/ann", "/home/ann/proj", `{"url": "https://a.example", "auth": {"type": "none"}}`),
		"another path":       identity("/home/ann", "/home/ann/proj", `{"url": "https://a.example/other"}`),
	} {
		if other == is {
			t.Errorf("%s makes no difference", what)
		}
	}
}
