//go:build unix

package upstream

//lint:file-ignore SA1019 servers use what the newest protocol has deprecated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/upstream/tap"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A fakeClient hears what a test wants to hear.
type fakeClient struct {
	level    string
	progress func(Progress)
	answer   func(context.Context, Question) (Answer, error)

	mu    sync.Mutex
	asked []Question
	logs  []Log
}

func (c *fakeClient) Progress(p Progress) {
	if c.progress != nil {
		c.progress(p)
	}
}

func (c *fakeClient) Log(l Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logs = append(c.logs, l)
}

func (c *fakeClient) Session() string        { return "s" }
func (c *fakeClient) Person() (string, bool) { return "", false }

func (c *fakeClient) LogLevel() string { return c.level }

func (c *fakeClient) Ask(ctx context.Context, q Question) (Answer, error) {
	c.mu.Lock()
	c.asked = append(c.asked, q)
	c.mu.Unlock()
	return c.answer(ctx, q)
}

func (c *fakeClient) questions() []Question {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// agree answers every question as a willing person would.
func agree(_ context.Context, q Question) (Answer, error) {
	if q.Form != nil {
		return Answer{Form: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}}, nil
	}
	return Answer{Model: &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "a haiku"}}}}, nil
}

// inquirer makes a server with the tools
//
//	form   asks for a color, and answers with what it was told
//	model  asks the model, and answers with what it said
//	roots  answers with the roots
//	log    logs, a line of each level, and answers
//	wait   takes a word from the gate, and then waits for another, or until it
//	       is cancelled, of which it tells
//
// in the way of the era that is spoken with it.
func inquirer(gate chan struct{}, cancelled chan<- string) func(context.Context, *slog.Logger) (*mcp.Server, error) {
	return func(context.Context, *slog.Logger) (*mcp.Server, error) {
		s := mcp.NewServer(&mcp.Implementation{Name: "inquirer"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}, Tools: &mcp.ToolCapabilities{}}})
		add := func(name string, f func(context.Context, *mcp.CallToolRequest) (string, mcp.InputRequest, error)) {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				said, input, err := f(ctx, req)
				if err != nil {
					return nil, err
				}
				if input != nil {
					return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": input}, RequestState: "state of " + name}, nil
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
			})
		}
		form := &mcp.ElicitParams{Meta: mcp.Meta{tap.CallKey: "codemode-1"}, Message: "Which color?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"color": map[string]any{"type": "string"}}}}
		model := &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "write a haiku"}}}}
		ask := func(ctx context.Context, req *mcp.CallToolRequest, q mcp.InputRequest) (string, mcp.InputRequest, error) {
			var answer any = req.Params.InputResponses["q"]
			var err error
			switch {
			case req.ProtocolVersion() < firstModern:
				switch q := q.(type) {
				case *mcp.ElicitParams:
					answer, err = req.Session.Elicit(ctx, q)
				case *mcp.CreateMessageParams:
					answer, err = req.Session.CreateMessage(ctx, q)
				case *mcp.ListRootsParams:
					answer, err = req.Session.ListRoots(ctx, q)
				}
			case req.Params.InputResponses == nil:
				return "", q, nil
			case req.Params.RequestState != "state of "+req.Params.Name:
				err = errors.New("the state is lost")
			}
			text, _ := json.Marshal(answer)
			return string(text), nil, err
		}
		add("form", func(ctx context.Context, req *mcp.CallToolRequest) (string, mcp.InputRequest, error) {
			return ask(ctx, req, form)
		})
		add("model", func(ctx context.Context, req *mcp.CallToolRequest) (string, mcp.InputRequest, error) {
			return ask(ctx, req, model)
		})
		add("roots", func(ctx context.Context, req *mcp.CallToolRequest) (string, mcp.InputRequest, error) {
			return ask(ctx, req, &mcp.ListRootsParams{})
		})
		add("log", func(ctx context.Context, req *mcp.CallToolRequest) (string, mcp.InputRequest, error) {
			for _, level := range tap.Levels {
				if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(level), Logger: "codemode", Data: "a \x1b[31m" + level}); err != nil {
					return "", nil, err
				}
			}
			return "logged", nil, nil
		})
		add("wait", func(ctx context.Context, req *mcp.CallToolRequest) (string, mcp.InputRequest, error) {
			for range 2 {
				select {
				case <-gate:
				case <-ctx.Done():
					cancelled <- req.Params.Name
					return "", nil, ctx.Err()
				}
			}
			return "waited", nil, nil
		})
		return s, nil
	}
}

func TestAServerAsksTheClientOfItsCall(t *testing.T) {
	for name, spec := range sdkServers(t, inquirer(nil, nil)) {
		t.Run(name, func(t *testing.T) {
			spec.Sampling, spec.Roots = AskSampling, []string{"file:///work"}
			s := open(t, Options{}, spec)
			connected(t, s)
			for _, row := range []struct{ tool, want string }{
				{"form", `\"color\":\"red\"`}, {"model", "a haiku"}, {"roots", "file:///work"},
			} {
				c := &fakeClient{answer: agree}
				got, err := s.Call(WithClient(t.Context(), c), "fake", "", row.tool, nil)
				if err != nil || !strings.Contains(string(got), row.want) {
					t.Errorf("%s: got %s, %v", row.tool, got, err)
				}
				switch asked := c.questions(); {
				case row.tool == "roots":
					if len(asked) != 0 {
						t.Errorf("roots: asked %+v", asked)
					}
				case len(asked) != 1 || asked[0].Server != "fake" || (asked[0].Form != nil) != (row.tool == "form"):
					t.Errorf("%s: asked %+v", row.tool, asked)
				case asked[0].Form != nil && (asked[0].Form.Message != "Which color?" || asked[0].Form.Meta != nil):
					t.Errorf("asked %+v", asked[0].Form)
				case asked[0].Model != nil && !asked[0].First:
					t.Error("the model is asked without a person")
				}
			}
		})
	}
}

func TestAServerThatMayNotAsk(t *testing.T) {
	for name, spec := range sdkServers(t, inquirer(nil, nil)) {
		t.Run(name, func(t *testing.T) {
			spec.NoElicitation = true
			s := open(t, Options{}, spec)
			connected(t, s)
			for _, tool := range []string{"form", "model"} {
				c := &fakeClient{answer: agree}
				got, err := s.Call(WithClient(t.Context(), c), "fake", "", tool, nil)
				if err == nil && !strings.Contains(string(got), `"isError":true`) && !strings.Contains(string(got), "null") {
					t.Errorf("%s: got %s", tool, got)
				}
				if asked := c.questions(); len(asked) != 0 {
					t.Errorf("%s: asked %+v", tool, asked)
				}
			}
			// The list of roots is empty, unless the configuration has some.
			got, err := s.Call(WithClient(t.Context(), &fakeClient{}), "fake", "", "roots", nil)
			if err != nil || !strings.Contains(string(got), `\"roots\":[]`) {
				t.Errorf("roots: got %s, %v", got, err)
			}
		})
	}
}

// On a connection that several runs share, a question that could be any one's
// is nobody's. Where it comes on the stream of its call, it is that call's.
func TestAQuestionThatCouldBeAnyones(t *testing.T) {
	gate := make(chan struct{})
	for name, spec := range sdkServers(t, inquirer(gate, make(chan string, 4))) {
		if strings.HasPrefix(name, "modern") {
			continue // there a question is part of an answer
		}
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{}, spec)
			connected(t, s)
			other := &fakeClient{answer: func(context.Context, Question) (Answer, error) {
				t.Error("the client of another call was asked")
				return Answer{}, errors.New("not me")
			}}
			left := make(chan struct{})
			go func() {
				defer close(left)
				_, _ = s.Call(WithClient(t.Context(), other), "fake", "", "wait", nil)
			}()
			gate <- struct{}{} // the server has the call
			c := &fakeClient{answer: agree}
			got, err := s.Call(WithClient(t.Context(), c), "fake", "", "form", nil)
			if overHTTP := strings.HasSuffix(name, "http"); overHTTP != strings.Contains(string(got), "red") {
				t.Errorf("got %s, %v", got, err)
			} else if !overHTTP && (len(c.questions()) != 0 || !strings.Contains(string(got)+fmt.Sprint(err), "not certain which call")) {
				t.Errorf("got %s, %v", got, err)
			}
			gate <- struct{}{}
			<-left
		})
	}
}

func TestACancelledCallIsCancelledAtTheServer(t *testing.T) {
	gate, cancelled := make(chan struct{}), make(chan string, 1)
	for name, spec := range sdkServers(t, inquirer(gate, cancelled)) {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{}, spec)
			connected(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			called := make(chan error, 1)
			go func() {
				_, err := s.Call(WithClient(ctx, &fakeClient{}), "fake", "", "wait", nil)
				called <- err
			}()
			gate <- struct{}{} // the server has the call
			cancel()
			if err := <-called; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if got := <-cancelled; got != "wait" {
				t.Errorf("%s was cancelled", got)
			}
		})
	}
}

func TestLogsReachTheClientAtItsLevel(t *testing.T) {
	for name, spec := range sdkServers(t, inquirer(nil, nil)) {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{}, spec)
			connected(t, s)
			for _, row := range []struct {
				level string
				want  []string
			}{{"", nil}, {"error", tap.Levels[4:]}, {"info", tap.Levels[1:]}, {"critical", tap.Levels[5:]}} {
				c := &fakeClient{level: row.level}
				if _, err := s.Call(WithClient(t.Context(), c), "fake", "", "log", nil); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, l := range c.logs {
					got = append(got, l.Level)
					if l.Server != "fake" || l.Text != `a \x1b[31m`+l.Level {
						t.Errorf("got %+v", l)
					}
				}
				if !slices.Equal(got, row.want) {
					t.Errorf("at %q: got %v, want %v", row.level, got, row.want)
				}
			}
		})
	}
}
