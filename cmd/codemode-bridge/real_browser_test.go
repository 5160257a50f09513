//go:build real && linux

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"codemode-bridge/bridge/config"

	"github.com/google/go-cmp/cmp"
)

// A browser that the real Playwright server starts in the box that is proposed for it
// opens the page that the person names in that box, and reaches no other service of this
// machine and none of its files.
func TestRealBrowserInABox(t *testing.T) {
	r := newReal(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<title>The page</title><h1>hello from outside</h1>")
	}))
	defer page.Close()
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	key := filepath.Join(filepath.Dir(r.config), "key.txt")
	mustWrite(t, key, keyText)

	flags := addPlaywright(t, r)
	text, err := json.Marshal(map[string]any{
		"evaluation": map[string]any{"workspace": r.files, "defaultProfile": "all", "profiles": map[string]any{"all": map[string]any{"default": "allow"}}},
		"servers": map[string]any{"playwright": map[string]any{
			"command": "node", "cwd": r.files,
			"args":    slices.Concat([]string{filepath.Join(r.npm, "node_modules/@playwright/mcp/cli.js"), "--allow-unrestricted-file-access"}, flags),
			"confine": map[string]any{"write": "workspace", "net": []string{strings.TrimPrefix(ofThisMachine(page.URL), "http://")}, "require": true},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, r.config, string(text))
	script, err := json.Marshal(map[string]string{"page": ofThisMachine(page.URL), "other": ofThisMachine(other.URL), "key": "file://" + key})
	if err != nil {
		t.Fatal(err)
	}
	out := r.bridge(t, `const at = `+string(script)+`;
const seen = async url => {
  try {
    await codemode.playwright__browser_navigate({url});
    return JSON.stringify(await codemode.playwright__browser_snapshot({}));
  } catch (e) { return String(e) }
};
const page = await seen(at.page), other = await seen(at.other), key = await seen(at.key);
return {page: page.includes("hello from outside"), other: /ERR_CONNECTION|ERR_INTERNET|ERR_ADDRESS/.test(other), key: /ERR_FILE_NOT_FOUND/.test(key), texts: [page, other, key]};`,
		"eval", "--config", r.config, "--file", "-")
	var got struct {
		Page, Other, Key bool
		Texts            []string
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if diff := cmp.Diff([]bool{true, true, true}, []bool{got.Page, got.Other, got.Key}); diff != "" || reached.Load() > 0 {
		t.Errorf("the other service was reached %d times; %s\n%s", reached.Load(), diff, strings.Join(got.Texts, "\n\n"))
	}
	if strings.Contains(out, keyText) {
		t.Error("it read the key")
	}
}

// addPlaywright adds the server as people do, and returns the flags that it is started with
// in the box that this gives it.
func addPlaywright(t *testing.T, r *real) []string {
	t.Helper()
	mustWrite(t, r.config, fmt.Sprintf(`{"servers": {}, "evaluation": {"workspace": %q}}`, r.files))
	r.env = append(r.env, "PATH="+browserPath()+string(filepath.ListSeparator)+os.Getenv("PATH"))
	r.bridge(t, "", "servers", "add", "playwright", "--config", r.config, "--accept-known", "--", "npx", "-y", "@playwright/mcp@latest", "--headless", "--isolated")
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse(r.config, text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Servers["playwright"]
	args := config.Reveal(s.Args)
	if !s.Recognize().Accepted || s.Confine == nil || !s.Confine.Require || !s.Confine.Net.Any || !slices.Equal(s.Confine.Write, []string{config.WorkspaceWord}) {
		t.Fatalf("its box is %+v: %s", s.Confine, text)
	}
	if len(args) != 6 || !strings.HasPrefix(args[4], "--executable-path=/") || args[5] != "--no-sandbox" {
		t.Fatalf("it is started with %q", args)
	}
	return args[2:]
}

// ofThisMachine is an address as the boxes of servers name this machine.
func ofThisMachine(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
