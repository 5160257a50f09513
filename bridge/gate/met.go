package gate

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// The first call of a session to a host or a recipient says so, for policy and for the
// person who is asked. Nobody who was once approved is new any more in that session.
// And what is done on a page goes to the page's host, and what names no folder to the one
// that the server was told, so the gate keeps which they are.

// An acquaintance is what sessions have met so far. Its zero value is ready, and any
// number of goroutines may use it.
type acquaintance struct {
	mu       sync.Mutex
	sessions map[string]map[string]bool // session -> names that people approved
	places   map[whose]*place
}

// whose says whose place it is: a server's, or a session's own if the server is started
// for each session; that of its browser, or of its folder.
type whose struct{ server, session, what string }

// What of a server is somewhere.
const (
	itsBrowser = "browser"
	itsFolder  = "folder"
)

// A place is where a browser or a server is, as far as the calls tell that were sent to
// it. A page that sends the browser elsewhere by itself is not noticed.
type place struct {
	at      string // the host of the page, or the folder; empty if nobody knows
	moving  int    // calls under way that may lead elsewhere
	several bool   // they overlapped: nobody knows which was the last
}

// hostName and recipientName are the names under which hosts and recipients are
// kept. A recipient is one of its server.
func hostName(f profiles.HostFact) string { return "host " + f.Name }

func recipientName(server string, f profiles.RecipientFact) string {
	return "recipient of " + server + " " + strings.ToLower(f.Name)
}

// knows reports whether somebody approved a call of the session that names name.
func (a *acquaintance) knows(session, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[session][name]
}

// meet notes that a person approved a call of the session that names all of these.
func (a *acquaintance) meet(session string, names []string) {
	if len(names) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions == nil {
		a.sessions = map[string]map[string]bool{}
	}
	if a.sessions[session] == nil {
		a.sessions[session] = map[string]bool{}
	}
	for _, name := range names {
		a.sessions[session][name] = true
	}
}

// forget forgets a session.
func (a *acquaintance) forget(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, session)
	for w := range a.places {
		if w.session == session {
			delete(a.places, w)
		}
	}
}

// ahead returns a copy for one session, for what would be met next.
func (a *acquaintance) ahead(session string) *acquaintance {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := &acquaintance{sessions: map[string]map[string]bool{session: maps.Clone(a.sessions[session])}, places: map[whose]*place{}}
	for w, p := range a.places {
		now := *p
		next.places[w] = &now
	}
	return next
}

// at returns where w is; empty if nobody knows.
func (a *acquaintance) at(w whose) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.places[w]; p != nil {
		return p.at
	}
	return ""
}

// depart notes that a call is sent that leads w to another place. While it is under way
// nobody knows where w is; arrive is told once the call has succeeded, or "" if nobody
// knows that.
func (a *acquaintance) depart(w whose) (arrive func(at string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.places == nil {
		a.places = map[whose]*place{}
	}
	p := a.places[w]
	if p == nil {
		p = new(place)
		a.places[w] = p
	}
	p.several = p.moving > 0
	p.at, p.moving = "", p.moving+1
	return func(at string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if p.moving--; p.moving == 0 && !p.several {
			p.at = at
		}
	}
}

// whose returns whose browser or folder the calls of c's server act in.
func (c *call) whose(view *View, session, what string) whose {
	w := whose{server: c.identity + " " + c.tool.Server, what: what}
	if view.Meanings[c.tool.Server].PerSession {
		w.session = session
	}
	return w
}

// home returns the folder that the server of c was told earlier; empty if nobody knows.
func (c *call) home(r *Run, view *View) string {
	return r.gate.met.at(c.whose(view, r.Session, itsFolder))
}

// introduce puts into m, what a call of a server means, what the session has met: who of
// those it names is not new, and on which page of a browser it acts.
func (a *acquaintance) introduce(m *profiles.Meaning, session, server string, page whose) {
	for i := range m.Hosts {
		h := &m.Hosts[i]
		if h.Param == pageParam {
			if at := a.at(page); at != "" {
				h.Name, h.Doubt, h.Bare = at, "", true
			}
		}
		h.New = h.Name == "" || !a.knows(session, hostName(*h))
	}
	for i := range m.Recipients {
		m.Recipients[i].New = !a.knows(session, recipientName(server, m.Recipients[i]))
	}
}

// names returns whom a session has met once a person has approved c, which means m.
// Facts that nobody accepted introduce nobody.
func (c *call) names(view *View, m *profiles.Meaning) (all []string) {
	if m == nil || !m.Accepted {
		return nil
	}
	for _, h := range m.Hosts {
		if h.Name != "" {
			all = append(all, hostName(h))
		}
	}
	for _, r := range m.Recipients {
		all = append(all, recipientName(c.tool.Server, r))
	}
	if reading, ok := view.reading(c.tool, c.args.Value(), ""); ok {
		if name := reading.Repository(c.tool.Server); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// pageParam stands for the argument in facts about the host of the page that is open.
const pageParam = "page"

// unknownPage is the doubt about it.
const unknownPage = "nobody knows which page is open"

// browses reports whether a call acts on what earlier calls have opened on a host.
func browses(t known.Tool) bool { return t.Stateful && t.Net == known.NetChosen }

// move notes that c, which is about to be sent, leads to another page. Landed, which is
// nil if it does not, is told whether it succeeded.
func (a *acquaintance) move(view *View, session string, c *call) (landed func(ok bool)) {
	reading, ok := view.reading(c.tool, c.args.Value(), "")
	switch {
	case ok && reading.Tool.Home != "":
		return a.settle(reading, c.whose(view, session, itsFolder))
	case !ok || !browses(reading.Tool):
		return nil
	}
	var hosts []profiles.HostFact
	for _, v := range reading.Values {
		if v.Role == known.Host {
			hosts = append(hosts, profiles.HostNamed(v.Param, v.Text))
		}
	}
	runs := slices.Contains(reading.Tool.Effects, known.Execute)
	if len(hosts) == 0 && !runs && !slices.Contains(reading.Tool.Effects, known.Read) {
		return nil // it acts on the page that is open; back and other tabs are there to be read
	}
	arrive := a.depart(c.whose(view, session, itsBrowser))
	return func(ok bool) {
		if ok && !runs && len(hosts) == 1 && len(reading.Unknown) == 0 {
			arrive(hosts[0].Name)
			return
		}
		arrive("")
	}
}

// settle notes that a call is sent which tells its server the folder where later calls
// start.
func (a *acquaintance) settle(reading known.Reading, w whose) (landed func(ok bool)) {
	at := ""
	if i := slices.IndexFunc(reading.Values, func(v known.Value) bool { return v.Param == reading.Tool.Home }); i >= 0 && filepath.IsAbs(reading.Values[i].Text) {
		at = reading.Values[i].Text
	}
	arrive := a.depart(w)
	return func(ok bool) {
		if !ok {
			at = ""
		}
		arrive(at)
	}
}
