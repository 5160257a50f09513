package gate

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// The first call of a session to a host or a recipient says so, for policy and for the
// person who is asked. Nobody who was once approved is new any more in that session.
// And what is done on a page goes to the page's host, so the gate keeps which that is.

// An acquaintance is what sessions have met so far. Its zero value is ready, and any
// number of goroutines may use it.
type acquaintance struct {
	mu       sync.Mutex
	sessions map[string]map[string]bool // session -> names that people approved
	pages    map[whose]*page
}

// whose says whose browser it is: a server's, or a session's own if the server is
// started for each session.
type whose struct{ server, session string }

// A page is where a browser is, as far as the calls tell that were sent to it. A page
// that sends the browser elsewhere by itself is not noticed.
type page struct {
	host    string // empty if nobody knows
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
	for w := range a.pages {
		if w.session == session {
			delete(a.pages, w)
		}
	}
}

// ahead returns a copy for one session, for what would be met next.
func (a *acquaintance) ahead(session string) *acquaintance {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := &acquaintance{sessions: map[string]map[string]bool{session: maps.Clone(a.sessions[session])}, pages: map[whose]*page{}}
	for w, p := range a.pages {
		now := *p
		next.pages[w] = &now
	}
	return next
}

// at returns the host of the page that is open; empty if nobody knows.
func (a *acquaintance) at(w whose) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pages[w]; p != nil {
		return p.host
	}
	return ""
}

// depart notes that a call is sent that leads to another page. While it is under way
// nobody knows the page; arrive is told of its host once the call has succeeded, or ""
// if nobody knows that.
func (a *acquaintance) depart(w whose) (arrive func(host string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pages == nil {
		a.pages = map[whose]*page{}
	}
	p := a.pages[w]
	if p == nil {
		p = new(page)
		a.pages[w] = p
	}
	p.several = p.moving > 0
	p.host, p.moving = "", p.moving+1
	return func(host string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if p.moving--; p.moving == 0 && !p.several {
			p.host = host
		}
	}
}

// browser returns whose browser the calls of c's server act on.
func (c *call) browser(view *View, session string) whose {
	w := whose{server: c.identity + " " + c.tool.Server}
	if view.Meanings[c.tool.Server].PerSession {
		w.session = session
	}
	return w
}

// introduce puts into m, what a call of a server means, what the session has met: who of
// those it names is not new, and on which page of a browser it acts.
func (a *acquaintance) introduce(m *profiles.Meaning, session, server string, browser whose) {
	for i := range m.Hosts {
		h := &m.Hosts[i]
		if h.Param == pageParam {
			if at := a.at(browser); at != "" {
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
	if reading, ok := view.reading(c.tool, c.args.Value()); ok {
		if name := repository(c.tool.Server, reading); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// pageParam stands for the argument in facts about the host of the page that is open.
const pageParam = "page"

// browses reports whether a call acts on what earlier calls have opened on a host.
func browses(t known.Tool) bool { return t.Stateful && t.Net == known.NetChosen }

// move notes that c, which is about to be sent, leads to another page, if it does.
// Landed is told whether it succeeded.
func (a *acquaintance) move(view *View, session string, c *call) (landed func(ok bool)) {
	reading, ok := view.reading(c.tool, c.args.Value())
	if !ok || !browses(reading.Tool) {
		return func(bool) {}
	}
	var hosts []profiles.HostFact
	for _, v := range reading.Values {
		if v.Role == known.Host {
			hosts = append(hosts, profiles.HostNamed(v.Param, v.Text))
		}
	}
	runs := slices.Contains(reading.Tool.Effects, known.Execute)
	if len(hosts) == 0 && !runs && !slices.Contains(reading.Tool.Effects, known.Read) {
		return func(bool) {} // it acts on the page that is open; back and other tabs are there to be read
	}
	arrive := a.depart(c.browser(view, session))
	return func(ok bool) {
		if ok && !runs && len(hosts) == 1 && len(reading.Unknown) == 0 {
			arrive(hosts[0].Name)
			return
		}
		arrive("")
	}
}
