package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
)

const minimal = `{"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {"/x": {"get": {"operationId": "x", "responses": {"200": {"description": "d"}}}}}}`

// referring is a document whose one schema is elsewhere.
func referring(to string) string {
	return `{"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {"/x": {"post": {"operationId": "x", "requestBody": {"content": {"application/json": {"schema": {"$ref": ` +
		fmt.Sprintf("%q", to) + `}}}}, "responses": {"200": {"description": "d"}}}}}}`
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file that is not a document, or refers to what it may not have, is refused with a
// reason that shows none of the content.
func TestRefusedDocuments(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret.yaml"), "canary: {type: object, description: canary}")
	write(t, filepath.Join(dir, "private.txt"), "canary-key-4711")
	here := filepath.Join(dir, "docs")
	if err := os.MkdirAll(here, 0o755); err != nil {
		t.Fatal(err)
	}
	link := "../secret.yaml"
	if err := os.Symlink(link, filepath.Join(here, "link.yaml")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	many := strings.Builder{}
	many.WriteString(`{"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {`)
	for i := range maxFiles + 1 {
		if i > 0 {
			many.WriteByte(',')
		}
		fmt.Fprintf(&many, `"/%d": {"$ref": "p%d.json"}`, i, i)
		write(t, filepath.Join(here, fmt.Sprintf("p%d.json", i)), `{}`)
	}
	many.WriteString("}}")
	for _, row := range []struct{ name, content, want string }{
		{"empty", "", "openapi"},
		{"garbage", "\x00\x01{{{", "neither JSON"},
		{"another format", `{"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}}`, "no OpenAPI 3 document"},
		{"no paths", `{"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {}}`, "it has no paths"},
		{"a file above", referring("../secret.yaml#/canary"), "in its own folder and below it only"},
		{"a file by its path", referring("/etc/passwd"), "in its own folder and below it only"},
		{"a file by its address", referring("file:///etc/passwd"), "in its own folder and below it only"},
		{"a link to a file above", referring("link.yaml#/canary"), "escapes"},
		{"an address", referring("http://169.254.169.254/latest/meta-data"), "in its own folder and below it only"},
		{"an address without a scheme", referring("//127.0.0.1:1/x.json"), "in its own folder and below it only"},
		{"a folder", referring("."), ""},
		{"too many files", many.String(), "more than 200 files"},
		{"aliases", aliases(), "alias"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := write(t, filepath.Join(here, "it.yaml"), row.content)
			_, err := New(t.Context(), Options{Document: path, BaseURL: "https://example.com"})
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.HasPrefix(err.Error(), "reading the OpenAPI document: ") {
				t.Fatalf("got %v, want %q", err, row.want)
			}
			if strings.Contains(err.Error(), "canary-key") {
				t.Errorf("the error shows the content: %v", err)
			}
		})
	}
}

// aliases returns a small text that stands for a large one.
func aliases() string {
	b := strings.Builder{}
	b.WriteString("openapi: 3.0.0\ninfo: {title: t, version: '1'}\nx-0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "x-%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String() + "paths: {}\n"
}

func TestLargeDocument(t *testing.T) {
	racing.Alone(t)
	path := write(t, filepath.Join(t.TempDir(), "it.json"), minimal+strings.Repeat(" ", maxDocument))
	if _, err := New(t.Context(), Options{Document: path, BaseURL: "https://example.com"}); err == nil || !strings.Contains(err.Error(), "larger than 32 MB") {
		t.Errorf("got %v", err)
	}
}

// A document from the web is fetched with the headers of the API if it is the
// API's, and refers to its own origin alone.
func TestDocumentFromTheWeb(t *testing.T) {
	var asked atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1) }))
	defer inside.Close()
	var token atomic.Value
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token.Store(r.Header.Get("X-Token"))
		switch r.URL.Path {
		case "/good.json":
			fmt.Fprint(w, minimal)
		case "/parts/split.json":
			fmt.Fprint(w, referring("schemas/a.json#/A"))
		case "/parts/schemas/a.json":
			fmt.Fprint(w, `{"A": {"type": "object", "description": "found"}}`)
		case "/inside.json":
			fmt.Fprint(w, referring(inside.URL+"/x.json"))
		case "/file.json":
			fmt.Fprint(w, referring("file:///etc/passwd"))
		case "/away":
			http.Redirect(w, r, inside.URL+"/?key=canary", http.StatusFound)
		case "/near":
			http.Redirect(w, r, "/good.json", http.StatusFound)
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		default:
			http.Error(w, "canary", http.StatusNotFound)
		}
	}))
	defer web.Close()
	for _, row := range []struct{ path, want string }{
		{"/good.json", ""}, {"/near", ""}, {"/parts/split.json", ""},
		{"/inside.json", "may refer to its own origin only"},
		{"/file.json", "may refer to its own origin only"},
		{"/away", "redirects to another origin, " + inside.URL + "/"},
		{"/missing?token=canary", web.URL + "/missing answers 404"},
		{"/endless", "larger than 32 MB"},
	} {
		c, err := New(t.Context(), Options{Document: web.URL + row.path, BaseURL: "https://example.com", Headers: map[string]string{"X-Token": "t"}})
		if row.want == "" {
			if err != nil || c == nil {
				t.Errorf("%s: %v", row.path, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %q", row.path, err, row.want)
		}
		if got := token.Load(); got != "" {
			t.Errorf("%s: the token of another origin was sent: %q", row.path, got)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("another origin was asked %d times", n)
	}
	if _, err := New(t.Context(), Options{Document: web.URL + "/good.json", BaseURL: web.URL, Headers: map[string]string{"X-Token": "t"}}); err != nil || token.Load() != "t" {
		t.Errorf("got %v, and the token %q", err, token.Load())
	}
}

// A document that never comes takes no longer than its time-out.
func TestSlowDocument(t *testing.T) {
	stop := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer web.Close()
	defer close(stop)
	if _, err := New(t.Context(), Options{Document: web.URL, BaseURL: "https://example.com", LoadTimeout: time.Millisecond}); err == nil {
		t.Error("it was read")
	}
}

func TestStamp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if got := Stamp(path); got != "" {
		t.Errorf("got %q for nothing", got)
	}
	write(t, path, "{}")
	first := Stamp(path)
	write(t, path, "{} ")
	if first == "" || Stamp(path) == first || Stamp("https://example.com") != "" {
		t.Errorf("got %q and %q", first, Stamp(path))
	}
}

// A document of a thousand operations whose schemas all refer to each other makes
// tools of a reasonable size.
func TestManyOperations(t *testing.T) {
	racing.Alone(t)
	const n = 1000
	paths, schemas := map[string]any{}, map[string]any{}
	ref := func(i int) map[string]any {
		return map[string]any{"$ref": fmt.Sprintf("#/components/schemas/S%d", i%300)}
	}
	for i := range 300 {
		properties := map[string]any{}
		for k := range 12 {
			properties[fmt.Sprintf("p%d", k)] = ref(i*7 + k*13 + 1)
			properties[fmt.Sprintf("t%d", k)] = map[string]any{"type": "string", "description": strings.Repeat("words ", 20)}
		}
		schemas[fmt.Sprintf("S%d", i)] = map[string]any{"type": "object", "properties": properties}
	}
	for i := range n {
		media := map[string]any{}
		if i%20 == 0 {
			media["application/json"] = map[string]any{"schema": ref(i)}
		}
		paths[fmt.Sprintf("/things/%d/{id}", i)] = map[string]any{"post": map[string]any{
			"parameters":  []any{map[string]any{"name": "id", "in": "path", "required": true, "schema": map[string]any{"type": "string"}}},
			"requestBody": map[string]any{"content": media}, "responses": map[string]any{"200": map[string]any{"description": "d", "content": media}},
		}}
	}
	document, err := json.Marshal(map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "t", "version": "1"}, "paths": paths, "components": map[string]any{"schemas": schemas},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, Options{Document: write(t, filepath.Join(t.TempDir(), "it.json"), string(document)), BaseURL: "https://example.com"})
	all := tools(t, c)
	if len(all) != n {
		t.Errorf("got %d tools", len(all))
	}
	for name, tool := range all {
		in, _ := json.Marshal(tool.InputSchema)
		out, _ := json.Marshal(tool.OutputSchema)
		if len(in) > 2*maxSchema || len(out) > 2*maxSchema || tool.OutputSchema != nil && !strings.Contains(string(in), `"t3"`) {
			t.Fatalf("%s has schemas of %d and %d bytes: %.300s", name, len(in), len(out), in)
		}
	}
}

// An operation with more parameters than anybody needs is left out, and reading stops
// when its context ends.
func TestOperationsAreBounded(t *testing.T) {
	var many openapi3.Parameters
	for i := range maxParameters + 1 {
		many = append(many, &openapi3.ParameterRef{Value: openapi3.NewQueryParameter(fmt.Sprint("p", i))})
	}
	doc := &openapi3.T{Paths: openapi3.NewPaths(
		openapi3.WithPath("/many", &openapi3.PathItem{Parameters: many[:1], Get: &openapi3.Operation{Parameters: many[1:]}}),
		openapi3.WithPath("/most", &openapi3.PathItem{Get: &openapi3.Operation{Parameters: many[1:]}}),
	)}
	a, err := newAPI("https://example.com", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all, left, err := operations(t.Context(), doc, &a.credentials)
	if err != nil || len(all) != 1 || all[0].path != "/most" {
		t.Errorf("%v: got %d", err, len(all))
	}
	if diff := cmp.Diff([]string{"GET /many: it has more than 200 parameters"}, left); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := operations(ended, doc, &a.credentials); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
