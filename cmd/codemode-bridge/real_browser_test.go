//go:build real && linux

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A browser that the real Playwright server starts in a box opens the page that the box
// names, and reaches no other service of this machine and none of its files.
func TestRealBrowserInABox(t *testing.T) {
	r := newReal(t)
	browser := os.Getenv("CHROMIUM")
	if browser == "" {
		var err error
		if browser, err = exec.LookPath("chromium"); err != nil {
			t.Fatal(err)
		}
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<title>The page</title><h1>hello from outside</h1>")
	}))
	defer page.Close()
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	key := filepath.Join(filepath.Dir(r.config), "key.txt")
	mustWrite(t, key, keyText)

	config, err := json.Marshal(map[string]any{
		"evaluation": map[string]any{"workspace": r.files, "defaultProfile": "all", "profiles": map[string]any{"all": map[string]any{"default": "allow"}}},
		"servers": map[string]any{"playwright": map[string]any{
			"command": "node", "cwd": r.files,
			// The box takes the place of the browser's own sandbox, which makes namespaces.
			"args":    []string{filepath.Join(r.npm, "node_modules/@playwright/mcp/cli.js"), "--headless", "--isolated", "--no-sandbox", "--allow-unrestricted-file-access", "--executable-path", browser},
			"confine": map[string]any{"write": "workspace", "net": []string{strings.TrimPrefix(ofThisMachine(page.URL), "http://")}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, r.config, string(config))
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

// ofThisMachine is an address as the boxes of servers name this machine.
func ofThisMachine(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
