package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/profiles"
)

// The model of what must hold of every call that reaches a server, whatever
// people, clients and configurations do in whatever order.

// An origin is what a run began with.
type origin struct {
	config, session string
	servers         map[string]string // identities, by name
	policy          *rules
}

// A numbered call: its run, and the number that its script gave it.
type numbered struct {
	run string
	n   int
}

// An arrival at a server, and what the bridge that sent it went by.
type reached struct {
	numbered
	config, server, identity string
	policy                   *rules
}

// A consent is what a yes was about.
type consent struct{ config, server, identity string }

// A grant is a yes to all calls of a session.
type granted struct {
	consent
	session string
}

type model struct {
	began  map[string]origin // by run
	noes   map[numbered]bool
	yeses  map[numbered]consent
	grants []granted // that nobody took back
	sent   map[numbered]bool
}

// wrong says what is wrong with a call that has reached a server; empty if
// nothing is.
func (m *model) wrong(c reached) string {
	began, known := m.began[c.run]
	meant, had := began.servers[c.server]
	is := consent{c.config, c.server, c.identity}
	switch {
	case !known:
		return "of a run that never began"
	case c.config != began.config:
		return "of another configuration's run"
	case had && c.identity != meant:
		return "at another server than the run began with"
	case m.sent[c.numbered]:
		return "sent twice"
	case m.noes[c.numbered]:
		return "to which somebody said no"
	}
	m.sent[c.numbered] = true
	for _, p := range []*rules{began.policy, c.policy} {
		if p.denies(c.server) {
			return "that policy " + p.name + " denies"
		}
		if p.asks(c.server) && m.yeses[c.numbered] != is && !slices.Contains(m.grants, granted{is, began.session}) {
			return "that policy " + p.name + " asks for, and nobody said yes"
		}
	}
	return ""
}

// Rules are a policy, in the model's words and in the bridge's.
type rules struct {
	name  string
	words map[string]string // by server: what is not named is allowed
	set   *profiles.Set
}

func (r *rules) denies(server string) bool { return r.words[server] == "deny" }
func (r *rules) asks(server string) bool {
	return r.words[server] == "ask" || r.words[server] == "ask strictly"
}

// policies are those between which configurations change, the usual first.
// Server store is db by another name.
var policies = sync.OnceValue(func() (all []*rules) {
	for _, p := range []struct{ db, log string }{{"ask", ""}, {"", ""}, {"ask strictly", ""}, {"deny", ""}, {"ask", "ask"}, {"", "deny"}, {"ask strictly", "ask"}} {
		r := &rules{name: fmt.Sprintf("{db %s, log %s}", p.db, p.log), words: map[string]string{"db": p.db, "store": p.db, "log": p.log}}
		queue, medium, critical, ask, remember := "queue", "medium", "high", "ask", true
		profile := &profiles.ProfileSpec{ElicitationFallback: &queue}
		for server, word := range r.words {
			tools := []string{server + "__*"}
			switch word {
			case "ask":
				profile.Rules = append(profile.Rules, profiles.RuleSpec{Tools: tools, Action: &ask, Risk: &medium, Remember: &remember})
			case "ask strictly":
				profile.Rules = append(profile.Rules, profiles.RuleSpec{Tools: tools, Action: &ask, Risk: &critical})
			case "deny":
				profile.Denylist = append(profile.Denylist, tools...)
			}
		}
		slices.SortFunc(profile.Rules, func(a, b profiles.RuleSpec) int { return strings.Compare(a.Tools[0], b.Tools[0]) })
		paused, patience := profiles.Duration(pausedFor), profiles.Duration(clientPatience)
		var problems []profiles.Problem
		r.set, problems = profiles.Parse(profiles.Spec{DefaultProfile: ptr("p"), PausedFor: &paused, ClientPatience: &profiles.Patience{Default: &patience},
			Profiles: map[string]*profiles.ProfileSpec{"p": profile}})
		if len(problems) > 0 {
			panic(problems)
		}
		all = append(all, r)
	}
	return all
})

// A phrasing is what a configuration says at a moment.
type phrasing struct {
	policy  *rules
	servers map[string]string // identities, by name
}

var (
	viewsLock sync.Mutex
	views     = map[string]*gate.View{}
	catalogs  = map[string]*catalog.Catalog{}
)

// view is what a bridge with the text decides on.
func (t phrasing) view() *gate.View {
	viewsLock.Lock()
	defer viewsLock.Unlock()
	names := slices.Sorted(maps.Keys(t.servers))
	key := t.policy.name + fmt.Sprint(t.servers)
	if views[key] == nil {
		all := fmt.Sprint(names)
		if catalogs[all] == nil {
			var servers []catalog.Server
			for _, name := range names {
				servers = append(servers, catalog.Server{Name: name, Tools: []catalog.Definition{{Name: "write", Input: []byte(`{"type":"object","properties":{"page":{},"number":{},"size":{}}}`)}}})
			}
			catalogs[all] = catalog.Build(servers)
		}
		views[key] = &gate.View{Profiles: t.policy.set, Catalog: catalogs[all], Identities: maps.Clone(t.servers), Complete: true}
	}
	return views[key]
}
