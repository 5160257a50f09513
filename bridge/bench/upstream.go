package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// upstreamArg, as the first argument, makes this program the benchmark's own upstream.
const upstreamArg = "upstream"

// serveUpstream serves MCP on stdin and stdout with the tools
//
//	noop   answers at once
//	sleep  answers after 10 ms
//	big    answers with a JSON text of 1 MB
//
// and get_late and get_big, which do what sleep and big do, and, by -tools N, as many
// more that do what noop does. By its name a tool get_* only reads, and the others may
// change something. With -after D it begins to
// answer so late, and if D is negative never.
func serveUpstream(args []string) error {
	flags := flag.NewFlagSet(upstreamArg, flag.ExitOnError)
	more := flags.Int("tools", 0, "further tools to list")
	after := flags.Duration("after", 0, "how long to wait before anything is answered; negative: for ever")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *after < 0 {
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	time.Sleep(*after)

	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	add := func(name, description string, answer func(context.Context) string) {
		tool := &mcp.Tool{
			Name: name, Description: description,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer","description":"number of the thing"}}}`),
		}
		server.AddTool(tool, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer(ctx)}}}, nil
		})
	}

	add("noop", "Answers at once", func(context.Context) string { return "ok" })
	late := func(ctx context.Context) string {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
		return "ok"
	}
	add("sleep", "Answers after 10 ms", late)
	add("get_late", "Answers after 10 ms", late)
	item := `{"id":12345,"name":"a thing","tags":["red","round"],"price":12.5},`
	megabyte := "[" + strings.Repeat(item, 1<<20/len(item)) + "{}]"
	add("big", "Answers with 1 MB", func(context.Context) string { return megabyte })
	add("get_big", "Answers with 1 MB", func(context.Context) string { return megabyte })

	subjects := []string{"issue", "branch", "invoice", "customer", "message", "calendar", "photo", "sensor", "order", "ticket"}
	for i := range *more {
		subject := subjects[i%len(subjects)]
		add(fmt.Sprintf("get_%s_%d", subject, i), fmt.Sprintf("Reads the %s of department %d", subject, i/len(subjects)),
			func(context.Context) string { return "ok" })
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}
