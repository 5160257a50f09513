package upstreams

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/upstream"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestStartOrder: the servers that a script names are started first, the others once these
// have connected or failed; and all at once for a script that may call others.
func TestStartOrder(t *testing.T) {
	owners := func(name string) []string {
		server, _, ok := strings.Cut(name, "__")
		if !ok {
			return nil
		}
		return []string{server}
	}
	calls := func(names ...string) (r analysis.Report) {
		for _, name := range names {
			r.Calls = append(r.Calls, analysis.CallSite{Name: name})
			if name == "" {
				r.Unknown++
			}
		}
		return r
	}
	const at, later = 0, time.Minute // a and broken take a minute to connect or fail
	for name, row := range map[string]struct {
		source string
		report analysis.Report
		then   func(*Start)
		want   map[string]time.Duration
	}{
		"one that answers": {"codemode.a__x()", calls("a__x"), nil, map[string]time.Duration{"a": at, "b": later, "broken": later}},
		"one that fails":   {"codemode.broken__x()", calls("broken__x"), nil, map[string]time.Duration{"a": later, "b": later, "broken": at}},
		"two":              {"codemode.a__x(codemode.b__x())", calls("a__x", "b__x"), nil, map[string]time.Duration{"a": at, "b": at, "broken": later}},
		"a tool of nobody": {"codemode.a__x(); codemode.search_tools()", calls("a__x", "search_tools"), nil, map[string]time.Duration{"a": at, "b": at, "broken": at}},
		"a computed name":  {"codemode.a__x()", calls("a__x", ""), nil, map[string]time.Duration{"a": at, "b": at, "broken": at}},
		"all names":        {"Object.keys(codemode)", calls(), nil, map[string]time.Duration{"a": at, "b": at, "broken": at}},
		"resources":        {"uris.map(codemode.resources.read)", calls(), nil, map[string]time.Duration{"a": at, "b": at, "broken": at}},
		"no call":          {"return 1", calls(), nil, map[string]time.Duration{"a": at, "b": at, "broken": at}},
		"a call of the named": {"codemode.a__x()", calls("a__x"), func(s *Start) { s.For("a") },
			map[string]time.Duration{"a": at, "b": later, "broken": later}},
		"a call of another": {"codemode.a__x()", calls("a__x"), func(s *Start) { s.For("b") },
			map[string]time.Duration{"a": at, "b": at, "broken": at}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				started := make(chan string, 3)
				set := upstream.New(upstream.Options{RetryMin: 24 * time.Hour, RetryMax: 24 * time.Hour})
				defer set.Close()
				var specs []upstream.Spec
				for _, server := range []string{"a", "b", "broken"} {
					specs = append(specs, upstream.Spec{Name: server, Limits: upstream.Limits{ConnectTimeout: time.Hour}, InProcess: func(context.Context, *slog.Logger) (*mcp.Server, error) {
						started <- server + " " + time.Since(began).String()
						time.Sleep(time.Minute)
						if server == "broken" {
							return nil, errors.New("broken")
						}
						return mcp.NewServer(&mcp.Implementation{Name: server}, nil), nil
					}})
				}
				s := NewStart(set, specs)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { s.Follow(ctx); close(ended) }()
				time.Sleep(time.Millisecond) // nothing is started before it is known what is called
				began = time.Now()
				s.Source = row.source
				s.Previewed(row.report, owners)
				if row.then != nil {
					row.then(s)
				}
				var got, want []string
				for range row.want {
					got = append(got, <-started)
				}
				for server, when := range row.want {
					want = append(want, server+" "+when.String())
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("started %q, want %q", got, want)
				}
				cancel()
				<-ended
			})
		})
	}
}

// Who ends before the first have answered starts no others.
func TestStartEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := upstream.New(upstream.Options{})
		defer set.Close()
		hangs := upstream.Spec{Name: "a", InProcess: func(ctx context.Context, _ *slog.Logger) (*mcp.Server, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		other := hangs
		other.Name = "b"
		s := NewStart(set, []upstream.Spec{hangs, other})
		s.Previewed(analysis.Report{Calls: []analysis.CallSite{{Name: "a__x"}}}, func(string) []string { return []string{"a"} })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.Follow(ctx); close(ended) }()
		synctest.Wait()
		cancel()
		<-ended
		if all := set.Status(); len(all) != 1 || all[0].Name != "a" {
			t.Errorf("started %+v", all)
		}
	})
}
