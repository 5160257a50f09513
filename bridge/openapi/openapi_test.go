package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite the expected tools in testdata")

// A far is the API that tests call: it remembers the last request, and answers with
// what the test set.
type far struct {
	*httptest.Server
	mu     sync.Mutex
	last   *http.Request
	body   []byte
	answer http.HandlerFunc
}

func newFar(t *testing.T, answer http.HandlerFunc) *far {
	t.Helper()
	f := &far{answer: answer}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.last, f.body = r, body
		answer := f.answer
		f.mu.Unlock()
		if answer == nil {
			w.Header().Set("Content-Type", "application/json")
			answer = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok":true}`) }
		}
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *far) got() (*http.Request, []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.body
}

// connect makes a server of a document and returns a client of it.
func connect(t testing.TB, o Options) *mcp.ClientSession {
	t.Helper()
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tools(t testing.TB, c *mcp.ClientSession) map[string]*mcp.Tool {
	t.Helper()
	all := map[string]*mcp.Tool{}
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all[tool.Name] = tool
	}
	return all
}

func call(t testing.TB, c *mcp.ClientSession, tool, args string) *mcp.CallToolResult {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s(%s): %v", tool, args, err)
	}
	return res
}

func text(res *mcp.CallToolResult) string {
	var all []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}

// The tools of both documents are those of testdata/*.tools.json, and their schemas
// are valid.
func TestTools(t *testing.T) {
	for _, name := range []string{"shop.yaml", "modern.json"} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, Options{Document: filepath.Join("testdata", name), BaseURL: "https://example.com"})
			all := tools(t, c)
			list := []*mcp.Tool{}
			for name, tool := range all {
				list = append(list, tool)
				for _, schema := range []any{tool.InputSchema, tool.OutputSchema} {
					if schema == nil {
						continue
					}
					compiler := jsonschema.NewCompiler()
					if err := compiler.AddResource("it.json", schema); err != nil {
						t.Fatal(err)
					}
					if _, err := compiler.Compile("it.json"); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
			slices.SortFunc(list, func(a, b *mcp.Tool) int { return strings.Compare(a.Name, b.Name) })
			got, err := json.MarshalIndent(list, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", strings.TrimSuffix(name, filepath.Ext(name))+".tools.json")
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(got)+"\n" != string(want) {
				t.Errorf("the tools differ from %s; look at them with -update and git diff:\n%s", golden, got)
			}
		})
	}
}

// The log says which operations are left out, and why.
func TestLeftOut(t *testing.T) {
	var log bytes.Buffer
	connect(t, Options{Document: "testdata/shop.yaml", BaseURL: "https://example.com", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, want := range []string{
		"GET /elsewhere: the document has another server", "GET /broken/{missing}: its path has {missing}", `GET /up/../down: the path would hold`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}

// Arguments become the request that the document describes.
func TestRequests(t *testing.T) {
	f := newFar(t, nil)
	c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL + "/v1/"})
	for _, row := range []struct{ tool, args, want string }{
		{"listPets", `{}`, "GET /v1/pets"},
		{"listPets", `{"limit": 9007199254740993}`, "GET /v1/pets?limit=9007199254740993"},
		{"listPets", `{"limit": null}`, "GET /v1/pets"},
		{"listPets", `{"tags": ["a&b=c", "d e", "ü#?"]}`, "GET /v1/pets?tags=a%26b%3Dc&tags=d%20e&tags=%C3%BC%23%3F"},
		{"listPets", `{"tags": []}`, "GET /v1/pets"},
		{"listPets", `{"ids": [1, 2]}`, "GET /v1/pets?ids=1,2"},
		{"listPets", `{"colors": ["a|b", "c"]}`, "GET /v1/pets?colors=a%7Cb%7Cc"},
		{"listPets", `{"words": ["a", "b"]}`, "GET /v1/pets?words=a%20b"},
		{"listPets", `{"filter": {"size": {"min": 2}, "color": "red"}}`, "GET /v1/pets?filter%5Bcolor%5D=red&filter%5Bsize%5D%5Bmin%5D=2"},
		{"listPets", `{"page": {"offset": 2, "a b": true}}`, "GET /v1/pets?a%20b=true&offset=2"},
		{"listPets", `{"where": {"a": [1]}}`, "GET /v1/pets?where=%7B%22a%22%3A%5B1%5D%7D"},
		{"listPets", `{"next": "/a?b&c#d+e"}`, "GET /v1/pets?next=/a?b%26c%23d%2Be"},
		{"getPet", `{"petId_in_path": "a;b c%20?x#y"}`, "GET /v1/pets/a%3Bb%20c%2520%3Fx%23y"},
		{"getPet", `{"petId_in_path": "1", "petId_in_query": "2"}`, "GET /v1/pets/1?petId=2"},
		{"delete_pets_petId", `{"petId": "7"}`, "DELETE /v1/pets/7"},
		{"pets_photo_get", `{"petId": "1", "name": "a.b", "ext": "png"}`, "GET /v1/pets/1/photos/a.b.png"},
		{"styles", `{"label": ["a", "b"], "matrix": {"x": 1, "y": "ö"}, "list": ["c", "d,e"], "object": {"k": "v"}}`, "GET /v1/styles/.a.b/;x=1;y=%C3%B6/c,d%2Ce/k=v"},
		{"createPet", `{"body": {"name": "Rex", "n": 1e400, "z": 9007199254740993}}`, `POST /v1/pets application/json {"name":"Rex","n":1e400,"z":9007199254740993}`},
		{"createOrder", `{"body": {"amount": 5, "tags": ["a", "b&c"], "card": {"no": "4", "exp": {"y": 1}}, "meta": {"k": 1}}}`,
			`POST /v1/orders application/x-www-form-urlencoded amount=5&card%5Bexp%5D%5By%5D=1&card%5Bno%5D=4&meta=%7B%22k%22%3A1%7D&tags=a&tags=b%26c`},
		{"createOrder", `{"body_in_query": "x"}`, `POST /v1/orders?body=x`},
		{"same_name_24c2f806", `{"body": "a\nb"}`, "POST /v1/notes text/plain a\nb"},
		{"same_name_dd4fc47b", `{"body": {"base64": "AAEC"}}`, "PUT /v1/notes application/octet-stream \x00\x01\x02"},
	} {
		res := call(t, c, row.tool, row.args)
		if res.IsError {
			t.Errorf("%s(%s): %s", row.tool, row.args, text(res))
			continue
		}
		r, body := f.got()
		got := strings.TrimRight(fmt.Sprintf("%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("Content-Type"), body), " ")
		if got != row.want {
			t.Errorf("%s(%s):\n%s, want\n%s", row.tool, row.args, got, row.want)
		}
	}
}

func TestHeadersAndCookies(t *testing.T) {
	f := newFar(t, nil)
	c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL})
	if res := call(t, c, "listPets", `{"X-Request-Id": "r 1", "X-List": ["a", "b"], "session": "a;b=c d"}`); res.IsError {
		t.Fatal(text(res))
	}
	r, _ := f.got()
	for name, want := range map[string]string{
		"X-Request-Id": "r 1", "X-List": "a,b", "Cookie": "session=a%3Bb%3Dc%20d", "Accept": "application/json, */*;q=0.1", "User-Agent": "codemode-bridge",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestMultipart(t *testing.T) {
	f := newFar(t, nil)
	c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL})
	res := call(t, c, "uploadPhoto", `{"petId": "1", "name": "a", "ext": "png", "body": {
		"file": {"base64": "AAEC", "filename": "x\".png", "contentType": "image/png"}, "more": [{"text": "one"}, {"text": "two"}],
		"caption": "c", "meta": {"n": 9007199254740993}}}`)
	if res.IsError {
		t.Fatal(text(res))
	}
	r, body := f.got()
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	reader := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var got []string
	for {
		part, err := reader.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(part)
		got = append(got, fmt.Sprintf("%s|%s|%s|%q", part.FormName(), part.FileName(), part.Header.Get("Content-Type"), content))
	}
	want := []string{
		`caption|||"c"`, `file|x".png|image/png|"\x00\x01\x02"`, `meta||application/json|"{\"n\":9007199254740993}"`,
		`more|file|application/octet-stream|"one"`, `more|file|application/octet-stream|"two"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Arguments that would make another request than the document describes are
// refused before anything is sent.
func TestRefusedArguments(t *testing.T) {
	f := newFar(t, nil)
	c := connect(t, Options{
		Document: "testdata/shop.yaml", BaseURL: f.URL, Headers: map[string]string{"Cookie": "tenant=1"}, Credentials: map[string]string{"key_query": "canary-key"},
	})
	pet := func(id string) string { return `{"petId": ` + id + `}` }
	for _, row := range []struct{ tool, args, want string }{
		{"delete_pets_petId", pet(`".."`), `may not be "." or ".."`},
		{"delete_pets_petId", pet(`"."`), `may not be "." or ".."`},
		{"delete_pets_petId", pet(`"../admin"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`"a/../../admin"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`"a\\..\\b"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`"%2e%2E/admin"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`"%252e%252e%252fadmin"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`"..;x=1/admin"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`"..;x=1"`), `may not be "." or ".."`},
		{"delete_pets_petId", pet(`"%252e%252e"`), `may not be "." or ".."`},
		{"delete_pets_petId", pet(`"1/photos"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`"1%2Fphotos"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`"1%255cphotos"`), `may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`{"../admin/keys": "x"}`), `"petId" has a name that may not hold "/" or "\"`},
		{"delete_pets_petId", pet(`{"..": "x"}`), `"petId" has a name that may not be "." or ".."`},
		{"delete_pets_petId", pet(`{"": "x"}`), `"petId" has a name that may not be empty`},
		{"styles", `{"label": ["a"], "matrix": {"a/b": "c"}, "list": ["a"], "object": {"a": "b"}}`, `"matrix" has a name that may not hold "/"`},
		{"delete_pets_petId", pet(`""`), "may not be empty"},
		{"delete_pets_petId", pet(`[]`), "may not be empty"},
		{"delete_pets_petId", pet(`null`), `"petId" is required`},
		{"delete_pets_petId", `{}`, `"petId" is required`},
		{"delete_pets_petId", pet(`"a\u0000b"`), "control character"},
		{"delete_pets_petId", pet(`"a\r\nb"`), "control character"},
		{"delete_pets_petId", `{"petId": "1", "nope": 1}`, `there is no argument "nope"`},
		{"delete_pets_petId", `[]`, "must be an object"},
		{"pets_photo_get", `{"petId": "1", "name": "", "ext": "x"}`, "may not be empty"},
		{"listPets", `{"X-Request-Id": "a\r\nX-Evil: 1"}`, "control character"},
		{"listPets", `{"page": {"limit": 1000}}`, `may not hold "limit", which is an argument of its own`},
		{"listPets", `{"page": {"api_key": "mine"}}`, `may not hold "api_key", which the configuration sets`},
		{"listPets", `{"page": {"LIMIT": 1000}}`, `may not hold "LIMIT", which is an argument of its own`},
		{"listPets", `{"page": {"limit[]": [1000]}}`, `may not hold "limit[]", which is an argument of its own`},
		{"listPets", `{"page": {"Api_Key[0]": "mine"}}`, `may not hold "Api_Key[0]", which the configuration sets`},
		{"listPets", `{"Authorization": "x"}`, `there is no argument "Authorization"`},
		{"listPets", `{"X-HTTP-Method-Override": "DELETE"}`, `there is no argument "X-HTTP-Method-Override"`},
		{"createPet", `{}`, `"body" is required`},
		{"createOrder", `{"body": "a=b"}`, `"body" must be an object`},
		{"uploadPhoto", `{"petId": "1", "name": "a", "ext": "b", "body": {"file": "x"}}`, "must be a file"},
		{"uploadPhoto", `{"petId": "1", "name": "a", "ext": "b", "body": {"file": {"text": "x", "filename": "../x"}}}`, `"filename" with a folder`},
		{"uploadPhoto", `{"petId": "1", "name": "a", "ext": "b", "body": {"file": {"text": "x", "contentType": "a\r\nb"}}}`, `"contentType" that is none`},
		{"same_name_24c2f806", `{"body": 5}`, "must be a string"},
		{"listPets", `{"next": "` + strings.Repeat("x", maxAddress) + `"}`, "at most 65536 are sent"},
	} {
		res := call(t, c, row.tool, row.args)
		if !res.IsError || !strings.Contains(text(res), row.want) {
			t.Errorf("%s(%.80s): got %q, want an error with %q", row.tool, row.args, text(res), row.want)
		}
	}
	if r, _ := f.got(); r != nil {
		t.Errorf("something was sent: %s %s", r.Method, r.RequestURI)
	}
}

func TestAnswers(t *testing.T) {
	type row struct {
		name, mediaType string
		status          int
		body            string
		check           func(*mcp.CallToolResult) bool
	}
	structured := func(want string) func(*mcp.CallToolResult) bool {
		return func(r *mcp.CallToolResult) bool {
			got, err := json.Marshal(r.StructuredContent)
			return err == nil && string(got) == want && !r.IsError
		}
	}
	saying := func(want string) func(*mcp.CallToolResult) bool {
		return func(r *mcp.CallToolResult) bool {
			return r.StructuredContent == nil && text(r) == want && !r.IsError
		}
	}
	failing := func(want string) func(*mcp.CallToolResult) bool {
		return func(r *mcp.CallToolResult) bool { return r.IsError && text(r) == want }
	}
	const asked = "listPets: GET /pets was answered with "
	for _, r := range []row{
		{"json", "application/json; charset=utf-8", 200, `[1,{"a":"b"}]`, structured(`[1,{"a":"b"}]`)},
		{"other json", "application/problem+json", 200, `{"a":1}`, structured(`{"a":1}`)},
		{"a mark before it", "application/json", 200, "\uFEFF{}", structured(`{}`)},
		{"not what it says", "application/json", 200, `{oops`, saying(`{oops`)},
		{"text that looks like json", "text/plain", 200, `{"a":1}`, saying(`{"a":1}`)},
		{"no type", "", 200, `{"a":1}`, saying(`{"a":1}`)},
		{"latin", "text/plain; charset=iso-8859-1", 200, "caf\xe9", saying("café")},
		{"nothing", "", 204, "", saying("204 No Content")},
		{"picture", "image/png", 200, "\x89PNG", func(r *mcp.CallToolResult) bool {
			i, ok := r.Content[0].(*mcp.ImageContent)
			return ok && string(i.Data) == "\x89PNG" && i.MIMEType == "image/png"
		}},
		{"bytes", "application/pdf", 200, "%PDF\xff", func(r *mcp.CallToolResult) bool {
			e, ok := r.Content[0].(*mcp.EmbeddedResource)
			return ok && string(e.Resource.Blob) == "%PDF\xff" && e.Resource.MIMEType == "application/pdf"
		}},
		{"an error", "application/json", 404, `{"message":"no such pet"}`, failing(asked + "404 Not Found\n" + `{"message":"no such pet"}`)},
		{"an error that says little", "", 500, "", failing(asked + "500 Internal Server Error")},
		{"an error in bytes", "application/pdf", 400, "%PDF\xff", failing(asked + "400 Bad Request")},
		{"an error that says much", "text/html", 502, strings.Repeat("x", 2*maxError), failing(asked + "502 Bad Gateway\n" + strings.Repeat("x", maxError) + "…")},
		{"too much", "text/plain", 200, strings.Repeat("x", 10_001), failing("listPets: the answer to GET /pets is larger than the limit of 10000 bytes for one reply")},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := newFar(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = nil
				if r.mediaType != "" {
					w.Header().Set("Content-Type", r.mediaType)
				}
				w.WriteHeader(r.status)
				_, _ = io.WriteString(w, r.body)
			})
			c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL, MaxReply: 10_000})
			if res := call(t, c, "listPets", `{}`); !r.check(res) {
				got, _ := json.Marshal(res)
				t.Errorf("got %s", got)
			}
		})
	}
}

// A script can page and wait: the status and a few headers are in _meta.
func TestMeta(t *testing.T) {
	f := newFar(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `<https://x/?page=2>; rel="next"`)
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(429)
	})
	c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL})
	res := call(t, c, "listPets", `{}`)
	got, _ := json.Marshal(res.Meta["http"])
	if want := `{"headers":{"link":"\u003chttps://x/?page=2\u003e; rel=\"next\"","retry-after":"7"},"status":429}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := "listPets: GET /pets was answered with 429 Too Many Requests (retry after 7)"; text(res) != want {
		t.Errorf("got %q", text(res))
	}
}

func TestRedirects(t *testing.T) {
	other := newFar(t, nil)
	f := newFar(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/pets":
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
		case "/moved":
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, r.Method, " ", r.Header.Get("X-Api-Key"))
		case "/pets/out":
			http.Redirect(w, r, other.URL+"/x?token=canary-far", http.StatusFound)
		default:
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}
	})
	c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL, Credentials: map[string]string{"key_header": "abc"}})
	if res := call(t, c, "createPet", `{"body": {}}`); text(res) != "POST abc" {
		t.Errorf("got %q", text(res))
	}
	res := call(t, c, "getPet", `{"petId_in_path": "out"}`)
	if want := "302 Found, a redirect to " + other.URL + "/x, which is not followed"; !res.IsError || !strings.Contains(text(res), want) || strings.Contains(text(res), "canary") {
		t.Errorf("got %q", text(res))
	}
	if r, _ := other.got(); r != nil {
		t.Errorf("the other origin was asked for %s", r.RequestURI)
	}
	if res := call(t, c, "getPet", `{"petId_in_path": "loop"}`); !res.IsError || !strings.Contains(text(res), "302") {
		t.Errorf("got %q", text(res))
	}
}

func TestNoAnswer(t *testing.T) {
	f := newFar(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL + "/?key=canary-4711"})
	if got := text(call(t, c, "createPet", `{"body": {}}`)); !strings.HasSuffix(got, "outcome unknown") || strings.Contains(got, "canary") || strings.Contains(got, f.URL) {
		t.Errorf("got %q", got)
	}
	f.Close()
	if got := text(call(t, c, "createPet", `{"body": {}}`)); !strings.Contains(got, "refused") || strings.Contains(got, "outcome unknown") {
		t.Errorf("got %q", got)
	}
}

// The request ends when its call is given up.
func TestCancel(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	f := newFar(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(gone)
	})
	c := connect(t, Options{Document: "testdata/shop.yaml", BaseURL: f.URL})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "listPets"}); err == nil {
		t.Error("the call went on")
	}
	<-gone
}
