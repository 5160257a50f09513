package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A person may answer after their client has stopped waiting: over stdio the dialog stays
// open, and the approval resumes the paused run, whether the client has a bridge of its
// own or shares one.
func TestAYesOverStdioAfterThePause(t *testing.T) {
	for _, flags := range [][]string{{"run", "--alone"}, {"run"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			h := newHome(t, map[string]any{
				"servers": map[string]any{"fake": fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x")},
				"evaluation": map[string]any{"defaultProfile": "p", "clientPatience": "1ms",
					"profiles": map[string]any{"p": map[string]any{"asklist": []string{"fake__*"}}}},
			})
			asked, answer := make(chan string, 8), make(chan struct{})
			person := func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked <- r.Params.Message
				select {
				case <-answer:
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: person}).
				Connect(t.Context(), &mcp.CommandTransport{Command: h.command(flags...)}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatalf("%v\n%s", err, h.talk.String())
			}
			defer session.Close()
			c := &client{ClientSession: session}

			out := c.call(t, "eval", map[string]any{"code": write})
			<-asked
			var paused struct {
				StructuredContent struct{ Status, Run, Next string }
			}
			if err := json.Unmarshal([]byte(out), &paused); err != nil || paused.StructuredContent.Status != "paused" || !strings.Contains(paused.StructuredContent.Next, "still open at this client") {
				t.Fatalf("got %s", out)
			}
			close(answer)
			eventually(t, "the run does not go on", func() bool { return h.count("--event-type", "outcome", "--run", paused.StructuredContent.Run) == 1 })
			eventually(t, "the run has no result", func() bool {
				out = c.call(t, "eval_resume", map[string]any{"run": paused.StructuredContent.Run})
				return !strings.Contains(out, `"paused"`)
			})
			if strings.Contains(out, "isError") || len(asked) > 0 || h.count("--event-type", "run_ended") != 1 {
				t.Errorf("asked %d more times, got %s", len(asked), out)
			}
		})
	}
}

// A session in which every question is left open still has room for scripts that ask
// nobody.
func TestPausedRunsLeaveRoomForAnother(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]any{
		"servers": map[string]any{"fake": fakeServer(t, filepath.Join(t.TempDir(), "effects"), "x")},
		"evaluation": map[string]any{"defaultProfile": "p", "clientPatience": "1ms",
			"profiles": map[string]any{"p": map[string]any{"asklist": []string{"fake__*"}}}},
	})
	over := make(chan struct{})
	away := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		<-over
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: away}).
		Connect(t.Context(), &mcp.CommandTransport{Command: h.command("run", "--alone")}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatalf("%v\n%s", err, h.talk.String())
	}
	defer session.Close()
	defer close(over)
	c := &client{ClientSession: session}
	for i := range 16 { // as many as a session runs at the same time
		if out := c.call(t, "eval", map[string]any{"code": fmt.Sprintf("const n = %d;\n%s", i, write)}); !strings.Contains(out, `"paused"`) {
			t.Fatalf("script %d: %s", i, out)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if out, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "eval", Arguments: map[string]any{"code": `return 40 + 2`}}); err != nil || out.IsError {
		t.Errorf("got %v, %v", out, err)
	}
}
