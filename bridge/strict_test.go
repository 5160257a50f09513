package bridge

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"codemode-bridge/bridge/mcphttp"
	"codemode-bridge/bridge/mcphttptest"
	"codemode-bridge/profiles"
)

// opened opens a session of a protocol version and returns the headers of its
// requests.
func opened(t *testing.T, url, version string) []string {
	t.Helper()
	res := mcphttptest.Post(t, "POST", url+"/mcp", strings.Replace(mcphttptest.Initialize, "2025-06-18", version, 1))
	if _, err := io.ReadAll(res.Body); err != nil { // the header comes before the session is open
		t.Fatal(err)
	}
	headers := []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id")}
	if version > "2025-03-26" {
		headers = append(headers, "Mcp-Protocol-Version", version)
	}
	mcphttptest.Post(t, "POST", url+"/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers...)
	return headers
}

func TestHTTPAnswersAsJSONRPC(t *testing.T) {
	server := serveHTTP(t, newBench(t, profiles.Spec{}), mcphttp.Options{})
	old, session := opened(t, server.URL, "2025-03-26"), opened(t, server.URL, "2025-11-25")
	stateless := []string{"Mcp-Protocol-Version", "2026-07-28"}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, row := range []struct {
		name, body string
		headers    []string
		status     int
		want       string
	}{
		{"unknown method", `{"jsonrpc":"2.0","id":2,"method":"no/such"}`, session, 200, `{"error":{"code":-32601,"message":"method not found: \"no/such\""},"id":2,"jsonrpc":"2.0"}`},
		{"unknown method without a session", `{"jsonrpc":"2.0","id":2,"method":"no/such"}`, []string{"Mcp-Session-Id", "guessed"}, 404, ""},
		{"unknown notification", `{"jsonrpc":"2.0","method":"no/such"}`, session, 202, ""},
		{"a request's method as a notification", `{"jsonrpc":"2.0","method":"tools/list"}`, session, 202, ""},
		{"unknown notification, stateless", `{"jsonrpc":"2.0","method":"no/such"}`, stateless, 202, ""},
		{"a notification with an id", `{"jsonrpc":"2.0","id":2,"method":"notifications/initialized"}`, session, 400, `"code":-32600`},
		{"a call without params", `{"jsonrpc":"2.0","id":"x","method":"tools/call"}`, session, 400, `"id":"x"`},
		{"no session", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, nil, 400, "initialize opens a session"},
		{"a second initialize", strings.Replace(mcphttptest.Initialize, `"id":1`, `"id":2`, 1), session, 200, `"code":-32600,"message":"invalid request: duplicate \"initialize\" received"`},
		{"initialize without params", `{"jsonrpc":"2.0","id":2,"method":"initialize"}`, nil, 400, `"code":-32602`},
		{"no JSON", `{bad`, session, 400, `"code":-32700`},
		{"no object", `null`, session, 400, `"id":null`},
		{"another JSON-RPC", `{"jsonrpc":"1.0","id":2,"method":"ping"}`, session, 400, `"id":2`},
		{"a huge id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, session, 400, `"id":9007199254740993`},
		{"a fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, session, 400, `"id":1.5`},
		{"null as id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, session, 400, `"id":null`},
		{"a name twice", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","name":"x"}}`, session, 400, `"code":-32600`},
		{"a level of logging", `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}}`, session, 200, `"result":{}`},
		{"no level of logging", `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"loud"}}`, session, 200, `"code":-32602`},
		{"prompts", `{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`, session, 200, `"code":-32601`},
		{"resources", `{"jsonrpc":"2.0","id":2,"method":"resources/list"}`, session, 200, `"code":-32601`},
		{"resource templates", `{"jsonrpc":"2.0","id":2,"method":"resources/templates/list"}`, session, 200, `"code":-32601`},
		{"prompts, stateless", `{"jsonrpc":"2.0","id":2,"method":"prompts/list","params":{` + meta + `}}`, append(stateless, "Mcp-Method", "prompts/list"), 404, `"code":-32601`},
		{"a resource", `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x://1"}}`, session, 200, `"code":-32002`},
		{"a resource, stateless", `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x://1",` + meta + `}}`,
			append(stateless, "Mcp-Method", "resources/read", "Mcp-Name", "x://1"), 400, `"code":-32602`},
		{"one kind of answer", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, append(session, "Accept", "application/json"), 406, "Accept must contain both"},
		{"a batch", `[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":3,"method":"ping"}]`, old, 200, `"id":3,"result":{}`},
		{"an empty batch", `[]`, old, 400, "an empty batch"},
		{"a batch with what is no message", `[{"jsonrpc":"2.0","id":2,"method":"ping"},7]`, old, 400, `"code":-32600`},
		{"a batch with a name twice", `[{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","name":"x"}}]`, old, 400, `"id":2`},
		{"a batch that opens a session", `[` + mcphttptest.Initialize + `]`, nil, 400, "batches"},
		{"a batch in a newer session", `[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, session[:2], 400, "batches are of protocol 2025-03-26"},
	} {
		res := mcphttptest.Post(t, "POST", server.URL+"/mcp", row.body, row.headers...)
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != row.status || !strings.Contains(string(body), row.want) {
			t.Errorf("%s: status %d, want %d: %s %v", row.name, res.StatusCode, row.status, body, err)
		}
		if strings.Contains(string(body), `"code":0`) {
			t.Errorf("%s: an error without a code: %s", row.name, body)
		}
		if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusNotFound && strings.HasPrefix(kind, "text/plain") || res.StatusCode == http.StatusAccepted && (kind != "" || len(body) > 0) {
			t.Errorf("%s: the answer is %s %s", row.name, kind, body)
		}
	}
}
