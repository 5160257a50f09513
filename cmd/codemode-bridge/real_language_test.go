//go:build real

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
)

var updateLanguage = flag.Bool("update-language", false, "write what Node answers into the scripts of sandbox/testdata/language")

// A languageScript is a script of sandbox/testdata/language; its header is
// explained in sandbox/language_test.go.
type languageScript struct {
	path  string
	lines []string // the header's, then the rest
	node  int      // the oldest Node that can run it
	head  map[string]string
}

// TestRealLanguage runs the scripts in Node, which must return and log what their headers
// say.
func TestRealLanguage(t *testing.T) {
	root := filepath.Join(moduleRoot(t), "sandbox", "testdata", "language")
	tools, err := os.ReadFile(filepath.Join(root, "tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	scripts := languageScripts(t, root)
	version, err := exec.Command("node", "-p", `process.versions.node.split(".")[0]`).Output()
	if err != nil {
		t.Fatalf("asking Node for its version: %v", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(version)))
	if err != nil {
		t.Fatal(err)
	}

	type job struct {
		Name       string          `json:"name"`
		Block      string          `json:"block"`
		Expression string          `json:"expression"`
		Input      json.RawMessage `json:"input,omitempty"`
	}
	var jobs []job
	for name, s := range scripts {
		if s.node > major {
			continue
		}
		text := strings.Join(s.lines, "\n")
		j := job{Name: name, Block: forNode(t, name, "(async () => {"+text+"\n})"), Input: json.RawMessage(s.head["input"])}
		if expression, ok := tryForNode("(async () => (" + strings.TrimRight(text, "; \n") + "\n))"); ok {
			j.Expression = expression
		}
		jobs = append(jobs, j)
	}
	in, err := json.Marshal(map[string]any{"tools": json.RawMessage(tools), "scripts": jobs})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--expose-gc", filepath.Join("testdata", "real", "language.mjs"))
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=en_US.UTF-8", "NO_COLOR=1")
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running the scripts in Node: %v", err)
	}
	var answers []struct {
		Name, Result, Error string
		Logs                []string
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatalf("Node answered %.500s: %v", out, err)
	}
	if len(answers) != len(jobs) || len(jobs) < 150 {
		t.Errorf("%d answers to %d scripts, want at least 150", len(answers), len(jobs))
	}
	for _, a := range answers {
		t.Run(a.Name, func(t *testing.T) {
			if a.Error != "" {
				t.Fatal(a.Error)
			}
			s := scripts[a.Name]
			logs := ""
			if len(a.Logs) > 0 {
				logs = nodeTime.ReplaceAllString(marshalLine(t, a.Logs), "0ms")
			}
			if *updateLanguage {
				s.write(t, a.Result, logs)
				return
			}
			if a.Result != s.head["returns"] {
				t.Errorf("Node returned\n%s\nexpected is\n%s", a.Result, s.head["returns"])
			}
			if logs != s.head["logs"] {
				t.Errorf("Node logged\n%s\nexpected is\n%s", logs, s.head["logs"])
			}
		})
	}
}

// nodeTime matches what console.timeEnd prints in Node, where a clock runs.
var nodeTime = regexp.MustCompile(`\b\d+(\.\d+)?ms\b`)

func languageScripts(t *testing.T, root string) map[string]*languageScript {
	t.Helper()
	scripts := make(map[string]*languageScript)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s := &languageScript{path: path, lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), head: make(map[string]string)}
		for i, line := range s.lines {
			key, value, ok := strings.Cut(strings.TrimPrefix(line, "// "), ": ")
			if !ok || !strings.HasPrefix(line, "// ") {
				break
			}
			s.head[key] = value
			s.lines[i] = ""
		}
		s.node, _ = strconv.Atoi(s.head["node"])
		name, err := filepath.Rel(root, path)
		scripts[filepath.ToSlash(name)] = s
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return scripts
}

// write writes the script with what Node answered in its header.
func (s *languageScript) write(t *testing.T, result, logs string) {
	t.Helper()
	head := "// returns: " + result + "\n"
	if logs != "" {
		head += "// logs: " + logs + "\n"
	}
	for _, key := range []string{"input", "node"} {
		if s.head[key] != "" {
			head += "// " + key + ": " + s.head[key] + "\n"
		}
	}
	body := strings.TrimLeft(strings.Join(s.lines, "\n"), "\n")
	mustWrite(t, s.path, head+body+"\n")
}

var moduleWords = regexp.MustCompile(`(?m)^(import type .*|export (default )?)`)

func forNode(t *testing.T, name, text string) string {
	t.Helper()
	code, ok := tryForNode(text)
	if !ok {
		t.Fatalf("%s: esbuild does not take it", name)
	}
	return code
}

func tryForNode(text string) (string, bool) {
	r := api.Transform(moduleWords.ReplaceAllString(text, ""), api.TransformOptions{
		Loader: api.LoaderTS, Target: api.ESNext,
		Supported:   map[string]bool{"using": false, "decorators": false},
		LogLevel:    api.LogLevelSilent,
		TsconfigRaw: `{"compilerOptions":{"experimentalDecorators":false}}`,
	})
	return strings.TrimSuffix(strings.TrimSpace(string(r.Code)), ";"), len(r.Errors) == 0
}

func marshalLine(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}
