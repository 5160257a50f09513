package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/bridge/view"
	"codemode-bridge/cmd/codemode-bridge/upstreams"
	"codemode-bridge/profiles"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// withSilentServer makes the parts of a bridge that has just started, of whose two
// servers one answers and one never does.
func withSilentServer(t *testing.T, cached bool) *parts {
	t.Helper()
	set, err := profiles.FromSource([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	p := &parts{started: time.Now(), cached: cached, upstreams: upstream.New(upstream.Options{RetryMin: time.Hour, RetryMax: time.Hour})}
	p.views = view.New(view.Configured{Profiles: set, Servers: []view.Server{{Name: "silent"}, {Name: "speaks"}}}, view.Options{
		Listed: p.listed, Observed: func(*catalog.Tool, int) catalog.Observation { return catalog.Observation{} }, Pins: pins.Open(""),
		Hide: func(text string) string { return text }, Log: slog.New(slog.DiscardHandler),
	})
	p.gate = gate.New(p.views.First(), gate.Options{Await: p.awaitServer, Gather: p.gather})
	p.views.Serve(p.gate, p.gate.Replace)
	p.upstreams.Apply([]upstream.Spec{
		{Name: "silent", Limits: upstream.Limits{ConnectTimeout: time.Hour}, InProcess: func(ctx context.Context, _ *slog.Logger) (*mcp.Server, error) {
			<-ctx.Done()
			return nil, errors.New("it never answered")
		}},
		{Name: "speaks", InProcess: func(context.Context, *slog.Logger) (*mcp.Server, error) {
			time.Sleep(time.Second)
			return mcp.NewServer(&mcp.Implementation{Name: "speaks"}, nil), nil
		}},
	})
	return p
}

func (p *parts) endServers() {
	p.upstreams.Close()
	p.views.Wait()
}

// A client that lists tools has an answer at once, where there are tools of the last run,
// and after two seconds otherwise, however long a server takes.
func TestListsOfToolsWaitTwoSecondsAtMost(t *testing.T) {
	for name, row := range map[string]struct {
		cached  bool
		wait    func(*parts, context.Context)
		want    time.Duration
		awaited int // servers that have not answered then
	}{
		"the first list":             {false, (*parts).awaitList, 2 * time.Second, 1},
		"with tools of the last run": {true, (*parts).awaitList, 0, 2},
		"a search":                   {true, (*parts).gather, 2 * time.Second, 1},
		"a call of the other": {false, func(p *parts, ctx context.Context) {
			p.awaitServer(ctx, "speaks")
		}, time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := withSilentServer(t, row.cached)
				defer p.endServers()
				row.wait(p, t.Context())
				if took := time.Since(p.started); took != row.want {
					t.Errorf("it took %v, want %v", took, row.want)
				}
				if awaited := p.gate.View().Awaited; len(awaited) != row.awaited {
					t.Errorf("then %q have not answered, want %d", awaited, row.awaited)
				}
				before := time.Now()
				time.Sleep(firstWait)
				row.wait(p, t.Context()) // the next one finds what is there
				if took := time.Since(before) - firstWait; took != 0 {
					t.Errorf("the second time it took %v", took)
				}
			})
		})
	}
}

// The script of a command has the servers started that it names, and a call of another has
// all started.
func TestAScriptStartsWhatItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := withSilentServer(t, false)
		defer p.endServers()
		p.upstreams.Apply(nil)
		hangs := func(ctx context.Context, _ *slog.Logger) (*mcp.Server, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p.start = upstreams.NewStart(p.upstreams, []upstream.Spec{{Name: "silent", InProcess: hangs}, {Name: "speaks", InProcess: hangs}})
		p.previewed(analysis.Report{Calls: []analysis.CallSite{{Name: "speaks__x"}}})
		if all := p.states(); len(all) != 1 || all[0].Name != "speaks" {
			t.Errorf("started %+v", all)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p.awaitServer(ctx, "speaks")
		if all := p.states(); len(all) != 1 {
			t.Errorf("after a call of the named, started %+v", all)
		}
		p.awaitServer(ctx, "silent")
		if all := p.states(); len(all) != 2 {
			t.Errorf("after a call of another, started %+v", all)
		}
	})
}
