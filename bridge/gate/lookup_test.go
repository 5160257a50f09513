package gate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// servers are those of a gate: of some only the tools of the last run are known, of some
// none at all. They answer when they are waited for.
type servers struct {
	*testing.T
	gate     *Gate
	set      *profiles.Set
	listed   []string // in the order in which they answered
	cached   []string
	awaited  []string
	gathered int
}

func (s *servers) view() *View {
	v := &View{Profiles: s.set, Cached: s.cached, Awaited: s.awaited, Complete: len(s.awaited) == 0}
	var all []catalog.Server
	for _, name := range s.listed {
		all = append(all, catalog.Server{Name: name, Tools: []catalog.Definition{{Name: "get"}}})
	}
	for _, name := range s.cached {
		all = append(all, catalog.Server{Name: name, Tools: []catalog.Definition{{Name: "get"}}, Stale: true})
	}
	v.Catalog = catalog.Sources{Servers: all, Order: slices.Concat(s.listed, s.cached, s.awaited)}.Build()
	return v
}

func (s *servers) answers(name string) {
	is := func(other string) bool { return other == name }
	s.cached, s.awaited = slices.DeleteFunc(slices.Clone(s.cached), is), slices.DeleteFunc(slices.Clone(s.awaited), is)
	s.listed = append(s.listed, name)
	s.gate.Replace(s.view())
}

func newServers(t *testing.T, spec profiles.Spec, cached, awaited []string) *servers {
	set, problems := profiles.Parse(spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := &servers{T: t, set: set, cached: cached, awaited: awaited}
	s.gate = New(s.view(), Options{
		Caller: &fakeCaller{reply: okReply}, Recorder: &book{},
		Await: func(_ context.Context, server string) {
			if server == "silent" {
				t.Error("the call waits for a server that never answers")
			}
			if server != "broken" {
				s.answers(server)
			}
		},
		Gather: func(context.Context) { s.gathered++ },
	})
	return s
}

func TestACallWaitsForItsOwnServer(t *testing.T) {
	for name, row := range map[string]struct {
		cached, awaited []string
		call            string
		listed          []string
		fails           bool
	}{
		"known from the last run":          {[]string{"a", "silent"}, []string{"b"}, "a__get", []string{"a"}, false},
		"not known at all":                 {nil, []string{"a", "b", "silent"}, "b__get", []string{"b"}, false},
		"by its name in policies":          {nil, []string{"my-web", "silent"}, "my-web__get", []string{"my-web"}, false},
		"with a dot":                       {nil, []string{"my-web", "silent"}, "myWeb.get", []string{"my-web"}, false},
		"a new tool of a server of old":    {[]string{"a", "silent"}, nil, "a__new", []string{"a"}, true},
		"of a server that cannot connect":  {nil, []string{"broken", "silent"}, "broken__get", nil, true},
		"of a server that cannot any more": {[]string{"broken", "silent"}, nil, "broken__get", nil, true},
		"of nobody":                        {nil, []string{"a", "silent"}, "c__get", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServers(t, profiles.Spec{}, row.cached, row.awaited)
			_, err := s.gate.Call(t.Context(), begin(t, s.gate, ""), Call{Number: 1, Name: row.call})
			var unknown *UnknownToolError
			if (err != nil) != row.fails || row.fails && !errors.As(err, &unknown) {
				t.Errorf("got %v", err)
			}
			if !slices.Equal(s.listed, row.listed) || s.gathered > 0 {
				t.Errorf("waited for %q, and %d times for all", s.listed, s.gathered)
			}
		})
	}
}

// A tool that policy denies is denied by the same words before and after its server is
// connected: the call waits for the server as any does.
func TestADeniedToolIsWaitedFor(t *testing.T) {
	s := newServers(t, supervised(profiles.ProfileSpec{Denylist: []string{"a__*"}}), nil, []string{"silent", "a"})
	_, err := s.gate.Call(t.Context(), begin(t, s.gate, "p"), Call{Number: 1, Name: "a__get"})
	var denied *approval.DeniedError
	if !errors.As(err, &denied) || !slices.Equal(s.listed, []string{"a"}) {
		t.Errorf("got %v, and waited for %q", err, s.listed)
	}
}

func TestSearchesWaitForWhatTheyLack(t *testing.T) {
	find := Call{Number: 1, Name: "search_tools", Args: json.RawMessage(`{"query":"get"}`)}
	for _, c := range []struct {
		silent []string
		waits  int
	}{{[]string{"silent", "hidden"}, 2}, {nil, 0}} {
		s := newServers(t, supervised(profiles.ProfileSpec{Denylist: []string{"hidden__*"}}), []string{"old"}, c.silent)
		r := begin(t, s.gate, "p")
		for range 2 {
			if _, err := s.gate.Call(t.Context(), r, find); err != nil {
				t.Fatal(err)
			}
		}
		if s.gathered != c.waits {
			t.Errorf("with %q missing it waited %d times, want %d", c.silent, s.gathered, c.waits)
		}
	}
}
