package gate

import (
	"slices"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// Box is what the system keeps the program of a server to at this moment, whatever the
// program tries. The zero value is a program that may do what its user may.
type Box struct {
	// Says tells the person who is asked: "confined to /home/me/app, no network", or
	// "not confined". It is empty of what does not run on this machine.
	Says string
	// Steps names the steps that hold, for records.
	Steps string
	// Files reports that it changes nothing but what is in Write, and reads nothing but
	// that, what is in Read, and what programs need to run.
	Files       bool
	Write, Read []string
	// Net reports that it reaches no host but Hosts: names or addresses.
	Net   bool
	Hosts []string
	// Beyond says what of an error that a tool answered with the box may be the reason
	// for, and the way out; nil without a box.
	Beyond func(text string) string
}

// here reports whether it reaches no machine but this one.
func (b Box) here() bool {
	return b.Net && !slices.ContainsFunc(b.Hosts, func(host string) bool { return host != "localhost" })
}

// within reports whether all that it reads and changes of this machine's files is in the
// workspace, but for what programs need to run.
func (b Box) within(ws workspace.Workspace) bool {
	return b.Files && !slices.ContainsFunc(slices.Concat(b.Write, b.Read), func(folder string) bool { return !ws.Locate(folder, "").Inside })
}

// keep adds to the meaning of a call what the system sees to: what a page in a browser
// without a way out does, stays on this machine, at the ports that its box names.
func (b Box) keep(m *profiles.Meaning, tool known.Tool, ws workspace.Workspace) {
	m.Within = b.within(ws)
	m.Here = b.here()
	if !m.Here || !browses(tool) {
		return
	}
	for i := range m.Hosts {
		host := &m.Hosts[i]
		if host.Beyond = false; host.Param == pageParam {
			host.Name, host.Doubt, host.Bare = "localhost", "", true
		}
	}
	// Where it goes, the box says and not the call.
	if !slices.ContainsFunc(m.Hosts, func(host profiles.HostFact) bool { return host.Doubt != "" || host.Name != "localhost" }) {
		m.Net = string(known.NetFixed)
	}
}

// loosened refuses c if its server is kept to less than when c was judged first: its
// program was started anew, and this time the system refused a part of its box.
func loosened(c *call, was, now *profiles.Meaning) error {
	if was.Within && !now.Within || was.Here && !now.Here {
		return denied(c, approval.Stale, "the box of "+c.tool.Server+" does not hold as it did")
	}
	return nil
}
