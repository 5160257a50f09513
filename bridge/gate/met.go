package gate

import (
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// The first call of a session to a host or a recipient says so, for policy and for the
// person who is asked. Nobody who was once approved is new any more in that session.
// And what is done on a page goes to the page's host, and what names no folder to the one
// that the server was told, so the gate keeps which they are.

// An acquaintance is what sessions have met.
type acquaintance struct{ *provenance.Met }

// hostName and recipientName are the names under which hosts and recipients are
// kept. A recipient is one of its server.
func hostName(f profiles.HostFact) string { return "host " + f.Name }

func recipientName(server string, f profiles.RecipientFact) string {
	return "recipient of " + server + " " + strings.ToLower(f.Name)
}

// whose returns whose browser or folder the calls of c's server act in.
func (c *call) whose(view *View, session, what string) provenance.Whose {
	w := provenance.Whose{Server: c.identity + " " + c.tool.Server, What: what}
	if view.Meanings[c.tool.Server].PerSession {
		w.Session = session
	}
	return w
}

// home returns the folder that the server of c was told earlier; empty if nobody knows.
func (c *call) home(r *Run, view *View) string {
	return r.gate.met.At(c.whose(view, r.Session, provenance.Folder))
}

// introduce puts into m, what a call of a server means, what the session has met: who of
// those it names is not new, and on which page of a browser it acts.
func (a acquaintance) introduce(m *profiles.Meaning, session, server string, page provenance.Whose) {
	for i := range m.Hosts {
		h := &m.Hosts[i]
		if h.Param == pageParam {
			if at := a.At(page); at != "" {
				h.Name, h.Doubt, h.Bare = at, "", true
			}
		}
		h.New = h.Name == "" || !a.Knows(session, hostName(*h))
	}
	for i := range m.Recipients {
		m.Recipients[i].New = !a.Knows(session, recipientName(server, m.Recipients[i]))
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
func (a acquaintance) move(view *View, session string, c *call) (landed func(ok bool)) {
	reading, ok := view.reading(c.tool, c.args.Value(), "")
	switch {
	case ok && reading.Tool.Home != "":
		return a.settle(reading, c.whose(view, session, provenance.Folder))
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
	arrive := a.Depart(c.whose(view, session, provenance.Browser))
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
func (a acquaintance) settle(reading known.Reading, w provenance.Whose) (landed func(ok bool)) {
	at := ""
	if i := slices.IndexFunc(reading.Values, func(v known.Value) bool { return v.Param == reading.Tool.Home }); i >= 0 && filepath.IsAbs(reading.Values[i].Text) {
		at = reading.Values[i].Text
	}
	arrive := a.Depart(w)
	return func(ok bool) {
		if !ok {
			at = ""
		}
		arrive(at)
	}
}
