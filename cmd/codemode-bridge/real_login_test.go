//go:build real

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An authorizer is the authorization server of testdata/real/oidc.
type authorizer struct {
	issuer string
	in     io.Writer
	out    *bufio.Scanner
}

func (r *real) authorizer(t *testing.T, format string) *authorizer {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "real", "oidc", "provider.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(r.npm, "oidc")
	if err := os.WriteFile(filepath.Join(folder, "provider.mjs"), source, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "provider.mjs", format)
	cmd.Dir, cmd.Env = folder, r.env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // which ends it
		if err := cmd.Wait(); err != nil {
			t.Errorf("the authorization server ended with %v: %s", err, &stderr)
		}
	})
	a := &authorizer{in: in, out: bufio.NewScanner(out)}
	a.issuer = a.line(t)
	return a
}

func (a *authorizer) line(t *testing.T) string {
	t.Helper()
	if !a.out.Scan() {
		t.Fatalf("the authorization server says nothing more: %v", a.out.Err())
	}
	return a.out.Text()
}

// A loggedIn is what login.mjs answers.
type loggedIn struct {
	Token, Scope, Resource string
	Result                 struct {
		IsError bool
		Content []struct{ Text string }
	}
}

func (r *real) login(t *testing.T, url, account, code string) loggedIn {
	t.Helper()
	in, err := json.Marshal(map[string]string{"url": url, "account": account, "code": code})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "login.mjs")
	cmd.Dir, cmd.Env, cmd.Stdin = r.npm, r.env, bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("login.mjs: %v\n%s", err, &stderr)
	}
	var answer loggedIn
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("login.mjs answers %s: %v", out, err)
	}
	return answer
}

// The TypeScript client learns from the bridge where to log in, registers there, logs
// ann in with PKCE, gets a token for this bridge and calls eval with it; once with JWTs,
// once with opaque tokens.
func TestRealClientLogsIn(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"jwt", "opaque"} {
		t.Run(format, func(t *testing.T) {
			r := newReal(t)
			there, address := r.authorizer(t, format), freeAddress(t) // which has to be known before
			r.env = append(r.env, "BRIDGE_SECRET=what the bridge asks with")
			mustWrite(t, r.config, fmt.Sprintf(`{"servers": {"utils": {"builtin": "utils"}}, "approvals": {"listen": "off"}, "http": {"listen": %q, "auth": {
				"issuer": %q, "resource": "http://%s/mcp", "scopes": ["mcp"], "groups": "groups",
				"introspection": {"clientId": "the-bridge", "clientSecret": "${BRIDGE_SECRET}"}}}}`, address, there.issuer, address))
			url := r.serveAt(t, address)

			ann := r.login(t, url, "ann", `return "eval answers " + (20 + 3)`)
			if ann.Result.IsError || len(ann.Result.Content) == 0 || !strings.Contains(ann.Result.Content[0].Text, "eval answers 23") {
				t.Errorf("eval answers %+v", ann.Result)
			}
			if ann.Resource != url || ann.Scope != "mcp" {
				t.Errorf("the client asked for a token for %q and got the scope %q", ann.Resource, ann.Scope)
			}
			if isJWT := strings.Count(ann.Token, ".") == 2; isJWT != (format == "jwt") {
				t.Errorf("the token is of another form: %s", ann.Token)
			}
			if got, _ := answers(t, url, ann.Token); got != http.StatusOK {
				t.Errorf("the token again: status %d", got)
			}
			if got, challenge := answers(t, url, ann.Token+"x"); got != http.StatusUnauthorized || !strings.Contains(challenge, `error="invalid_token"`) {
				t.Errorf("a changed token: status %d, %s", got, challenge)
			}

			principal := there.issuer + "#ann"
			log := r.bridge(t, "", "audit", "export", "--config", r.config)
			if !strings.Contains(log, `"principal":"`+principal+`"`) && !strings.Contains(log, `"principal": "`+principal+`"`) {
				t.Errorf("the audit log does not name %s: %s", principal, log)
			}
			if report := r.bridge(t, "", "doctor", "--config", r.config, "--json"); !strings.Contains(report, "can be checked") {
				t.Errorf("doctor says %s", report)
			}
			r.keepsNothing(t, ann.Token, "ann@example.com", "what the bridge asks with")

			if format == "jwt" {
				fmt.Fprintln(there.in, "rotate")
				there.line(t)
				bob := r.login(t, url, "bob", "").Token
				// The bridge asks for keys at most every ten seconds.
				eventually(t, "a token of the new key is refused", func() bool {
					got, _ := answers(t, url, bob)
					return got == http.StatusOK
				})
				if got, _ := answers(t, url, ann.Token); got != http.StatusUnauthorized {
					t.Errorf("a token of the key that is gone: status %d", got)
				}
			}
		})
	}
}

// answers is the status of an initialize with a token, and the challenge.
func answers(t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode, res.Header.Get("WWW-Authenticate")
}

// keepsNothing looks for texts in all that the bridge keeps.
func (r *real) keepsNothing(t *testing.T, texts ...string) {
	t.Helper()
	looked := 0
	err := filepath.WalkDir(filepath.Dir(r.config), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || path == r.config {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		looked++
		for _, one := range texts {
			if bytes.Contains(text, []byte(one)) {
				t.Errorf("%s has %q", path, one)
			}
		}
		return nil
	})
	if err != nil || looked < 3 {
		t.Errorf("looked into %d files: %v", looked, err)
	}
}
