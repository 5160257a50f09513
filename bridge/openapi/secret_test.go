package openapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Credentials go where the document's security schemes say, with the operations
// that want them.
func TestCredentials(t *testing.T) {
	f := newFar(t, nil)
	base, err := url.Parse(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, document, user string
		headers, credentials map[string]string
		tool, args           string
		header, value, query string
	}{
		{name: "a key in a header", credentials: map[string]string{"key_header": "k"}, tool: "createPet", args: `{"body": {}}`, header: "X-Api-Key", value: "k"},
		{name: "an operation that does not want it", credentials: map[string]string{"bearer": "t"}, tool: "createPet", args: `{"body": {}}`, header: "Authorization"},
		{name: "nothing is said of security", credentials: map[string]string{"bearer": "t"}, tool: "listPets", header: "Authorization", value: "Bearer t"},
		{name: "a key in the query", credentials: map[string]string{"key_query": "a&b"}, tool: "listPets", args: `{"limit": 1}`, query: "limit=1&api_key=a%26b"},
		{name: "a key in a cookie", credentials: map[string]string{"key_cookie": "a;b"}, tool: "listPets", args: `{"session": "s"}`, header: "Cookie", value: "session=s; sid=a%3Bb"},
		{name: "a user", credentials: map[string]string{"login": "ann:pw"}, tool: "listPets", header: "Authorization", value: "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:pw"))},
		{name: "a user in the URL", user: "ann:pw@", tool: "listPets", header: "Authorization", value: "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:pw"))},
		{name: "a header of the configuration", headers: map[string]string{"authorization": "Token z"}, credentials: map[string]string{"bearer": "t"}, tool: "listPets", header: "Authorization", value: "Token z"},
		{name: "cookies of both", headers: map[string]string{"Cookie": "a=b"}, tool: "listPets", args: `{"session": "s"}`, header: "Cookie", value: "session=s; a=b"},
		{name: "an alternative", document: "modern.json", credentials: map[string]string{"bearer": "t"}, tool: "getThing", args: `{"id": "1"}`, header: "Authorization", value: "Bearer t"},
	} {
		t.Run(row.name, func(t *testing.T) {
			document := "shop.yaml"
			if row.document != "" {
				document = row.document
			}
			c := connect(t, Options{
				Document: "testdata/" + document, BaseURL: "http://" + row.user + base.Host, Headers: row.headers, Credentials: row.credentials,
			})
			if res := call(t, c, row.tool, cmp.Or(row.args, "{}")); res.IsError {
				t.Fatal(text(res))
			}
			r, _ := f.got()
			if got := r.Header.Get(row.header); row.header != "" && got != row.value {
				t.Errorf("%s is %q, want %q", row.header, got, row.value)
			}
			if r.URL.RawQuery != row.query {
				t.Errorf("the query is %q, want %q", r.URL.RawQuery, row.query)
			}
		})
	}
}

// What the configuration sets cannot be set by an argument.
func TestCredentialsAreNoArguments(t *testing.T) {
	c := connect(t, Options{
		Document: "testdata/shop.yaml", BaseURL: "https://example.com?limit=5",
		Headers: map[string]string{"x-request-id": "1", "Cookie": "session=1"},
	})
	schema, _ := json.Marshal(tools(t, c)["listPets"].InputSchema)
	for _, name := range []string{"limit", "X-Request-Id", "session", "Authorization"} {
		if strings.Contains(string(schema), `"`+name+`"`) {
			t.Errorf("%s is an argument: %s", name, schema)
		}
	}
}

func TestBadCredentials(t *testing.T) {
	for _, row := range []struct{ scheme, value, want string }{
		{"nope", "x", "no such security scheme: it has bearer, key_cookie, key_header, key_query, login"},
		{"login", "no-colon", `they are "user:password"`},
	} {
		_, err := New(t.Context(), Options{Document: "testdata/shop.yaml", BaseURL: "https://example.com", Credentials: map[string]string{row.scheme: row.value}})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), row.value) && len(row.value) > 1 {
			t.Errorf("got %v, want %q", err, row.want)
		}
	}
}

// If an API wants credentials that the configuration does not have, the error names
// the scheme.
func TestMissingCredentials(t *testing.T) {
	f := newFar(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })
	c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL})
	if got, want := text(call(t, c, "createPet", `{"body": {}}`)), "401 Unauthorized (the configuration has no credentials for key_header)"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q", got)
	}
}

// An API that repeats what it was sent does not hand credentials to scripts, to the
// log, or to a tool's description.
func TestCanaries(t *testing.T) {
	secrets := []string{"canary-pass/word", "canary-query+1", "canary-basic", "canary-bearer", "canary-header-token", base64.StdEncoding.EncodeToString([]byte("ann:canary-basic"))}
	for _, mediaType := range []string{"application/json", "text/plain", "application/xml"} {
		for _, status := range []int{200, 400} {
			f := newFar(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", mediaType)
				w.Header().Set("Link", "<"+r.RequestURI+">")
				w.Header().Set("Location", "/?x=canary-bearer")
				w.WriteHeader(status)
				user, password, _ := r.BasicAuth()
				said, _ := json.Marshal(map[string]any{"headers": r.Header, "uri": r.RequestURI, "query": r.URL.Query(), "user": []string{user, password}, "all": secrets})
				fmt.Fprintf(w, "%s", said)
			})
			var log bytes.Buffer
			c := connect(t, Options{
				Document: "testdata/shop.yaml", BaseURL: strings.Replace(f.URL, "://", "://bob:canary-pass%2Fword@", 1) + "/?token=canary-query%2B1",
				Headers:     map[string]string{"X-Auth-Token": "canary-header-token"},
				Credentials: map[string]string{"login": "ann:canary-basic", "key_query": "canary-bearer"},
				Logger:      slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			listed, _ := json.Marshal(tools(t, c))
			res := call(t, c, "listPets", `{}`)
			if res.IsError != (status == 400) {
				t.Fatalf("got %s", text(res))
			}
			answer, _ := json.Marshal(res)
			if mediaType == "application/json" && status == 200 && res.StructuredContent == nil {
				t.Errorf("the answer is no JSON any more: %s", answer)
			}
			for where, said := range map[string]string{"the tools": string(listed), "the answer": string(answer), "the log": log.String()} {
				for _, secret := range append(secrets, "canary") {
					if strings.Contains(said, secret) {
						t.Errorf("%s %d: %q is in %s:\n%s", mediaType, status, secret, where, said)
						break
					}
				}
			}
		}
	}
}

// Secrets are also hidden in answers that claim not to be text.
func TestCanariesInBytes(t *testing.T) {
	for _, mediaType := range []string{"application/octet-stream", "image/png", "audio/ogg"} {
		f := newFar(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			fmt.Fprintf(w, "\xff\x00%s\xff", r.Header.Get("Authorization"))
		})
		c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL, Credentials: map[string]string{"bearer": "canary-bearer"}})
		var got []byte
		switch content := call(t, c, "listPets", `{}`).Content[0].(type) {
		case *mcp.ImageContent:
			got = content.Data
		case *mcp.AudioContent:
			got = content.Data
		case *mcp.EmbeddedResource:
			got = content.Resource.Blob
		}
		if string(got) != "\xff\x00[hidden]\xff" {
			t.Errorf("%s: got %q", mediaType, got)
		}
	}
}
