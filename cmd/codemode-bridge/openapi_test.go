package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// notesDocument describes the API of the test below.
const notesDocument = `
openapi: 3.0.3
info: { title: Notes, version: "1" }
security: [ { token: [] } ]
paths:
  /notes:
    get:
      operationId: listNotes
      summary: List the notes
      parameters: [ { name: tag, in: query, schema: { type: string } } ]
      responses:
        "200": { description: Good., content: { application/json: { schema: { type: array, items: { $ref: "#/components/schemas/Note" } } } } }
  /notes/{id}:
    delete:
      operationId: deleteNote
      summary: Delete a note
      parameters: [ { name: id, in: path, required: true, schema: { type: string } } ]
      responses: { "204": { description: Gone. } }
    put:
      operationId: replaceNote
      summary: Replace a note
      parameters: [ { name: id, in: path, required: true, schema: { type: string } } ]
      requestBody: { required: true, content: { application/json: { schema: { $ref: "#/components/schemas/Note" } } } }
      responses: { "200": { description: Good. } }
components:
  securitySchemes: { token: { type: http, scheme: bearer } }
  schemas: { Note: { type: object, required: [ text ], properties: { id: { type: integer }, text: { type: string } } } }
`

// An OpenAPI document in the configuration is a server like any other: its operations are
// found and declared, one that only reads runs, one that deletes asks, one that is denied
// is not sent, arguments are checked, and only the API gets the credentials.
func TestOpenAPIServer(t *testing.T) {
	t.Parallel()
	const canary = "canary-openapi-7f3a91c2"
	var mu sync.Mutex
	var got []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Method+" "+r.RequestURI)
		mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bearer "+canary:
			http.Error(w, "who are you", http.StatusUnauthorized)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `[{"id": 9007199254740993, "text": %q}]`, r.Header.Get("Authorization"))
		case r.RequestURI == "/v1/notes/404":
			http.Error(w, `{"why": "no such note"}`, http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer api.Close()
	h := newHome(t, map[string]any{
		"log": map[string]any{"level": "debug"},
		"servers": map[string]any{"notes": map[string]any{
			"openapi": "notes.yaml", "url": api.URL + "/v1", "credentials": map[string]string{"token": "${NOTES_TOKEN}"}, "trustAnnotations": true,
		}},
		"evaluation": map[string]any{"defaultProfile": "supervised", "profiles": map[string]any{
			"supervised": map[string]any{"default": "risk", "denylist": []string{"notes__replaceNote"}},
		}},
	}, "NOTES_TOKEN="+canary)
	document := filepath.Join(h.dir, "notes.yaml")
	if err := os.WriteFile(document, []byte(notesDocument), 0o600); err != nil {
		t.Fatal(err)
	}
	bridge := h.connect()
	all := bridge.call(t, "eval", map[string]any{"code": `
		const out = [];
		const attempt = async (f) => { try { out.push(await f()) } catch (e) { out.push(String(e.message)) } };
		await attempt(() => codemode.notes__listNotes({tag: "a&b"}));
		await attempt(() => codemode.notes__deleteNote({id: "a b"}));
		await attempt(() => codemode.notes__deleteNote({id: "../users"}));
		await attempt(() => codemode.notes__deleteNote({id: "404"}));
		await attempt(() => codemode.notes__deleteNote({}));
		await attempt(() => codemode.notes__replaceNote({id: "1", body: {text: "x"}}));
		return out;`})
	for _, want := range []string{
		`{\"id\":9007199254740993,\"text\":\"[hidden]\"}`, `204 No Content`, `encoded or not, since it is part of the path`, `was answered with 404 Not Found`, `no such note`,
		`args.id is missing`, `policy denies it`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the answer does not say %s: %s", want, all)
		}
	}
	mu.Lock()
	sent, _ := json.Marshal(got)
	mu.Unlock()
	if want := `["GET /v1/notes?tag=a%26b","DELETE /v1/notes/a%20b","DELETE /v1/notes/404"]`; strings.ReplaceAll(string(sent), `\u0026`, "&") != want {
		t.Errorf("the API was sent %s, want %s", sent, want)
	}
	bridge.mu.Lock()
	questions := strings.Join(bridge.asked, "\n")
	bridge.mu.Unlock()
	if !strings.Contains(questions, "Call tool `deleteNote` of server `notes` 3 times?") || strings.Contains(questions, "tool `listNotes") {
		t.Errorf("the person was asked %s", questions)
	}
	found := bridge.call(t, "search_tools", map[string]any{"query": "notes list"})
	if !strings.Contains(found, "notes__listNotes") || !strings.Contains(found, "tag?: string") {
		t.Errorf("searching finds %s", found)
	}
	for where, text := range map[string]string{
		"the answer": all, "a question": questions, "what is found": found,
		"what is printed": h.says([]int{0}, "servers", "list", "--json") + h.says([]int{0}, "tools", "list") + h.says([]int{0}, "audit", "query", "--json", "-n", "0") + h.talk.String(),
	} {
		if strings.Contains(text, canary) {
			t.Errorf("the token is in %s:\n%s", where, text)
		}
	}

	if runtime.GOOS == "linux" {
		holders(t, canary)
	}

	// An edited document is read again when the configuration is.
	if err := os.WriteFile(document, []byte(strings.Replace(notesDocument, "operationId: listNotes", "operationId: findNotes", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.config, append(text, "\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	h.await("config", 1)
	if got := bridge.call(t, "eval", map[string]any{"code": `return (await codemode.notes__findNotes({})).length`}); !strings.Contains(got, `"result":1`) {
		t.Errorf("got %s", got)
	}
	if err := bridge.Close(); err != nil {
		t.Logf("closing: %v", err)
	}
	for name, text := range files(t, filepath.Join(h.dir, "state")) {
		if strings.Contains(text, canary) {
			t.Errorf("the token is in %s", name)
		}
	}
}

// holders checks that only one process besides the bridge itself, the document's own, was
// given a secret, and that no process has it among its arguments.
func holders(t *testing.T, secret string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	documents := 0
	for _, process := range all {
		args, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil {
			continue // it has ended, or is another's
		}
		if strings.Contains(string(args), secret) {
			t.Errorf("the token is among the arguments %q", args)
		}
		environment, err := os.ReadFile(filepath.Join(process, "environ"))
		if err != nil || !strings.Contains(string(environment), secret) {
			continue
		}
		switch words := strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00"); {
		case words[len(words)-1] == "openapi":
			documents++
		case !strings.Contains(string(environment), "NOTES_TOKEN="+secret): // as the bridge was given it
			t.Errorf("the token is in the environment of %q", words)
		}
	}
	if documents != 1 {
		t.Errorf("the token was given to %d processes for documents, want 1", documents)
	}
}

// What is wrong with a document is reported as if the bridge itself had read it, although
// another process did, and what is left out of it is in the log.
func TestOpenAPIDocumentThatIsWrong(t *testing.T) {
	t.Parallel()
	const canary = "canary-openapi-5be0c2d1"
	server := func(document string) map[string]any {
		return map[string]any{"openapi": document, "url": "https://api.example.com/v1", "headers": map[string]string{"X-Key": "${NOTES_KEY}"}}
	}
	h := newHome(t, map[string]any{
		"log":     map[string]any{"level": "warn"},
		"servers": map[string]any{"notes": server("notes.yaml"), "none": server("none.yaml"), "poor": server("poor.yaml")},
	}, "NOTES_KEY="+canary)
	twice := strings.Replace(notesDocument, "name: id, in: path", "name: other, in: path", 1)
	for name, text := range map[string]string{"notes.yaml": twice, "poor.yaml": "openapi: 2.0.0\n"} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := h.says([]int{0, 1}, "servers", "test", "--all", "--json")
	for _, want := range []string{
		`"why":"reading the OpenAPI document: it is no OpenAPI 3 document: its \"openapi\" is \"2.0.0\""`,
		`"why":"reading the OpenAPI document: lstat `,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("trying the servers does not say %q:\n%s", want, said)
		}
	}
	for _, odd := range []string{"stderr", "process", canary} {
		if strings.Contains(said, odd) {
			t.Errorf("trying the servers says %q:\n%s", odd, said)
		}
	}
	bridge := h.connect()
	if got := bridge.call(t, "search_tools", map[string]any{"query": "notes"}); !strings.Contains(got, "notes__listNotes") {
		t.Errorf("searching finds %s", got)
	}
	// What the server's process says comes another way than its list of tools.
	eventually(t, "the log does not say that an operation is left out", func() bool { return strings.Contains(h.talk.String(), "an operation is left out") })
	if got := h.talk.String(); strings.Contains(got, canary) {
		t.Errorf("the log says too much:\n%s", got)
	}
}
