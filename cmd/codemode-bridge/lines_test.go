package main_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// lines sends lines to a bridge over standard input. Each row is a line and a text that
// its answer has to contain; "" means that there is no answer. The session must survive.
func (h *home) lines(args []string, rows [][2]string) {
	h.t.Helper()
	cmd := h.command(args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	for i, row := range rows {
		// If the next answer is that to the ping, there was none.
		probe := fmt.Sprintf(`{"jsonrpc":"2.0","id":"probe %d","method":"ping"}`, i)
		if _, err := io.WriteString(in, row[0]+"\n"); err != nil {
			h.t.Fatalf("%.200s: %v", row[0], err)
		}
		if row[1] != "" {
			if got, err := out.ReadString('\n'); err != nil || !strings.Contains(got, row[1]) {
				h.t.Fatalf("%.200s is answered %s, want %s: %v\n%s", row[0], got, row[1], err, h.talk.String())
			}
		}
		io.WriteString(in, probe+"\n")
		if got, err := out.ReadString('\n'); err != nil || !strings.Contains(got, fmt.Sprintf(`"id":"probe %d"`, i)) {
			h.t.Fatalf("after %.200s comes %s, %v\n%s", row[0], got, err, h.talk.String())
		}
	}
	in.Close()
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		h.t.Errorf("at last came %s, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		h.t.Errorf("%v\n%s", err, h.talk.String())
	}
	if text := h.talk.String(); strings.Contains(text, "has ended") {
		h.t.Error(text)
	}
}

const openSession = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// A line that is JSON but no valid message breaks nothing else, in a bridge of one's own
// and in a shared one.
func TestLinesThatAreNoRequests(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 1200) + strings.Repeat("]", 1200)
	rows := [][2]string{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `-32600,"message":"invalid request: the session has not begun`},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `-32602`},
		{fmt.Sprintf(openSession, "2025-06-18"), `"serverInfo"`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
		{`null`, `"code":-32600,"message":"invalid request: a message is an object"},"id":null`},
		{`7`, `"code":-32600`},
		{`[]`, `"code":-32600,"message":"invalid request: an empty batch"},"id":null`},
		{`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `"code":-32600,"message":"invalid request: batches`},
		{`{}`, `"code":-32600`},
		{`{"id":2,"method":"ping"}`, `"id":2`},
		{`{"jsonrpc":"1.0","id":2,"method":"ping"}`, `"id":2`},
		{`{"jsonrpc":2,"id":2,"method":"ping"}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":2,"method":7}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}`, `it has \"id\" twice`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `a text or a whole number"},"id":null`},
		{`{"jsonrpc":"2.0","id":[1],"method":"ping"}`, `"id":null`},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, `"id":null`},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `"id":null`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `"id":1.5`},
		{`{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, `"id":1e3`},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `"id":9007199254740993`},
		{`{"jsonrpc":"2.0","id":18446744073709551617,"method":"ping"}`, `"id":18446744073709551617`},
		{`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}`, `"id":9007199254740991,"result":{}`},
		{`{"jsonrpc":"2.0","id":-5,"method":"ping"}`, `"id":-5,"result":{}`},
		{`{"jsonrpc":"2.0","id":"5","method":"ping"}`, `"id":"5","result":{}`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"eval","arguments":{"code":"1","input":` + deep + `}}}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, ``},
		{`{"jsonrpc":"2.0","id":77,"result":{}}`, ``},
		{`{"jsonrpc":"2.0","id":2,"method":"no/such"}`, `"code":-32601`},
		{`{"jsonrpc":"2.0","method":"no/such"}`, ``},
		{`{"jsonrpc":"2.0","method":"tools/list"}`, ``},
	}
	for _, args := range [][]string{{"run"}, {"run", "--alone"}} {
		newHome(t, map[string]any{"servers": map[string]any{}}).lines(args, rows)
	}
}

// Protocol 2025-03-26 has batches: requests that come together are answered together.
func TestBatches(t *testing.T) {
	t.Parallel()
	newHome(t, map[string]any{"servers": map[string]any{}}).lines([]string{"run", "--alone"}, [][2]string{
		{`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `"code":-32600`},
		{fmt.Sprintf(openSession, "2025-03-26"), `"protocolVersion":"2025-03-26"`},
		{`[]`, `"code":-32600`},
		{`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `[{"jsonrpc":"2.0","id":2,"result":{}}]`},
		{`[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"notifications/initialized"}]`, ``},
		{`[{"jsonrpc":"2.0","method":"notifications/initialized"},7,{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`,
			`[{"error":{"code":-32600,"message":"invalid request: a message is an object"},"id":null,"jsonrpc":"2.0"},{"error":{"code":-32600,"message":"invalid request: the batch has this id twice"},"id":2,"jsonrpc":"2.0"},{"jsonrpc":"2.0","id":2,"result":{}}]`},
		{`[{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}]`, `initialize is no part of a batch`},
		{`[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"eval","arguments":{"code":"return 'batched'"}}}]`, `"result":"batched"`},
	})
}
