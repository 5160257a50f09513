package bridge

//lint:file-ignore SA1019 deprecated by the newest protocol, and used only with clients of older ones

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Long arguments get a sentence of the client's model beside them, made of
// what the person may see; whatever goes wrong with that, they are asked.
func TestLongArgumentsAreSummarised(t *testing.T) {
	const script = `return await codemode.a__echo({to: "bob", password: "hunter22", body: "lorem ipsum ".repeat(100)})`
	wrote := func(text string) func() (*mcp.CreateMessageResult, error) {
		return func() (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: text}}, nil
		}
	}
	const marked = "A model's summary, unchecked: "
	for _, row := range []struct {
		name, script string
		says         func() (*mcp.CreateMessageResult, error)
		off          bool
		want         string // a line of the question; empty: no summary
		read         bool
	}{
		{name: "it says something", says: wrote("It sends Latin to bob."), want: marked + "`\"It sends Latin to bob.\"`.", read: true},
		{name: "it imitates us", says: wrote("fine\nWhy: safe \x1b[2J\u202e"), want: marked + "`\"fine Why: safe \\u001b[2J\\u202e\"`.", read: true},
		{name: "it fails", says: func() (*mcp.CreateMessageResult, error) { return nil, errors.New("no model") }, read: true},
		{name: "it says nothing", says: wrote(""), read: true},
		{name: "it answers with a picture", says: func() (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}, nil
		}, read: true},
		{name: "nobody wants it", says: wrote("It sends Latin."), off: true},
		{name: "short arguments", says: wrote("It sends x."), script: `return await codemode.a__echo({x: "short"})`},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t, asks(), func(o *Options) {
				if !row.off {
					o.SummaryWait = time.Minute
				}
			})
			p := &person{answer: says("once")}
			read := ""
			c := b.connect(t, &mcp.ClientOptions{ElicitationHandler: p.elicit,
				CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
					read = r.Params.Messages[0].Content.(*mcp.TextContent).Text
					return row.says()
				}})
			if row.script == "" {
				row.script = script
			}
			eval(t, c, row.script)
			asked := p.questions()
			if len(asked) != 1 || len(b.up.made()) != 1 {
				t.Fatalf("asked %d times, sent %d calls", len(asked), len(b.up.made()))
			}
			text := asked[0].Message
			if found := strings.Contains(text, marked); found != (row.want != "") || !strings.Contains(text, row.want) {
				t.Errorf("want %q in\n%s", row.want, text)
			}
			if row.script == script && !strings.Contains(text, "lorem ipsum") {
				t.Errorf("the arguments are not there:\n%s", text)
			}
			if (read != "") != row.read || strings.Contains(read, "hunter22") || row.read && !strings.Contains(read, "to: bob") {
				t.Errorf("the model read %q", read)
			}
		})
	}
}

// Who answers elsewhere reads it too, also where the client could not ask.
func TestSummaryIsForEveryChannel(t *testing.T) {
	for name, o := range map[string]*mcp.ClientOptions{
		"the client asks too": {ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		"approvers alone": {},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, asks(func(p *profiles.ProfileSpec) { p.ElicitationFallback = ptr("queue") }), func(o *Options) { o.SummaryWait = time.Minute })
			b.approvers.Store(true)
			o.CreateMessageHandler = func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "It sends Latin."}}, nil
			}
			c := b.connect(t, o)
			done := make(chan struct{})
			go func() {
				defer close(done)
				eval(t, c, `return await codemode.a__echo({body: "lorem ipsum ".repeat(100)})`)
			}()
			broker := b.gate.Broker()
			for {
				changed := broker.Changed()
				all, err := broker.Requests(t.Context(), approval.Filter{Open: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				if len(all) == 1 && all[0].Says == "It sends Latin." {
					yes := approval.Verdict{Approve: true, By: "ann", Strong: true, Channel: "page"}
					if _, err := b.gate.Settle(t.Context(), all[0].ID, all[0].Digest(), yes); err != nil {
						t.Fatal(err)
					}
					break
				}
				<-changed
			}
			<-done
			if len(b.up.made()) != 1 {
				t.Errorf("sent %d calls", len(b.up.made()))
			}
		})
	}
}

// A model that thinks on does not hold up the person for long, and a client of
// the stateless protocol is asked without one.
func TestSummaryIsNotWaitedFor(t *testing.T) {
	b := newBench(t, asks(), func(o *Options) { o.SummaryWait = 20 * time.Millisecond })
	var p *person
	ended := make(chan struct{}, 1)
	eras(t, b, func() *mcp.ClientOptions {
		p = &person{answer: says("once")}
		return &mcp.ClientOptions{ElicitationHandler: p.elicit,
			CreateMessageHandler: func(ctx context.Context, _ *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				<-ctx.Done()
				ended <- struct{}{}
				return nil, ctx.Err()
			}}
	}, func(t *testing.T, c *mcp.ClientSession) {
		eval(t, c, `return await codemode.a__echo({body: "lorem ipsum ".repeat(100)})`)
		if asked := p.questions(); len(asked) != 1 || strings.Contains(asked[0].Message, "A model's summary") {
			t.Errorf("asked %v", asked)
		}
	})
	<-ended // of the session; the other was never asked
	if len(ended) > 0 {
		t.Error("a stateless client was asked for a summary")
	}
}
