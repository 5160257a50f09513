package gate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/misfit"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// What a call means is a fact for policy: the file of its server says what its
// arguments are (package known), and the gate where its paths lead on this machine.

// Meant is what is known of a server.
type Meant struct {
	Server known.Server
	// Accepted reports that the file was verified for the form in which the server is
	// started, and that the person who runs the bridge accepted it. Facts of other
	// files can only make a decision stricter.
	Accepted bool
	// Folder is where the server's relative paths start.
	Folder string
	// Starts are other folders where the server may take a relative path to start.
	Starts []string
	// Remote reports that the server does not run on this machine, or does not see its
	// files: no path of its calls is in a workspace.
	Remote bool
	// Confined reports that its browser reaches no host but this machine.
	Confined bool
	// Labels, if not nil, returns the labels that the configuration gives a tool by its raw name,
	// and whether it says anything of them.
	Labels func(tool string) (labels []string, said bool)
	// PerSession reports that each session has a server of its own.
	PerSession bool
}

// Meaning returns what a call of a tool with these arguments means; nil if nobody knows.
// Every host and every recipient is new. An unreviewed tool, and one that is not as
// its file says, has no accepted meaning.
func (v *View) Meaning(t *catalog.Tool, args map[string]any, ws workspace.Workspace) *profiles.Meaning {
	return v.meaning(t, args, ws, "")
}

// meaning is Meaning for a call to a server that was told its folder earlier.
func (v *View) meaning(t *catalog.Tool, args map[string]any, ws workspace.Workspace, home string) *profiles.Meaning {
	reading, ok := v.reading(t, args, home)
	if !ok {
		return nil
	}
	meant, tool := v.Meanings[t.Server], reading.Tool
	_, unreviewed := v.unreviewed(t)
	m := &profiles.Meaning{
		Accepted: meant.Accepted && !unreviewed && v.describes(t, meant.Server.Tools[t.Name]),
		Where:    string(tool.Where), Net: string(cmp.Or(tool.Net, known.NetNone)),
		Unknown: reading.Unknown, Repeatable: tool.Repeatable,
	}
	for _, e := range tool.Effects {
		m.Effects = append(m.Effects, string(e))
	}
	for _, value := range reading.Values {
		switch value.Role {
		case known.Path:
			m.Paths = append(m.Paths, meant.locate(value, ws))
		case known.Host:
			host := profiles.HostNamed(value.Param, value.Text)
			host.New, host.Beyond = true, meant.Remote || browses(tool) && !meant.Confined
			host.Bare = host.Bare && !reading.Besides(args, value.Param)
			m.Hosts = append(m.Hosts, host)
		case known.Recipient:
			m.Recipients = append(m.Recipients, profiles.RecipientFact{Param: value.Param, Name: value.Text, New: true, Member: value.Member})
		case known.Command:
			m.Commands = append(m.Commands, value.Text)
		case known.Amount:
			m.Spends = true
		case known.Place:
			if (misfit.IsOdd(value.Text) || tool.Runs == known.CI && known.Refspec(value.Text)) && !slices.Contains(m.Unknown, value.Param) {
				m.Unknown = append(m.Unknown, value.Param)
			}
		}
	}
	if browses(tool) && len(m.Hosts) == 0 {
		m.Hosts = []profiles.HostFact{{Param: pageParam, Doubt: unknownPage, New: true, Beyond: !meant.Confined}}
	}
	v.box(t.Server).keep(m, tool, ws)
	if m.Leaves() {
		m.Carries = provenance.Secrets("", args)
	}
	m.Orders = browses(tool) && reading.Orders()
	m.Triggers = triggers(reading) && reading.Repository(t.Server) == ""
	return m
}

// carries adds to the meaning of c what other servers answered in this run and c takes
// away from this machine. A question to somebody elsewhere is short, and nobody is
// asked about most: it also counts the names in what is private here.
func (c *call) carries(view *View, read *provenance.Memory) {
	m := c.meaning
	if m == nil || !m.Accepted || !m.Leaves() {
		return
	}
	found := read.Find(c.Number, c.tool.Server, c.args)
	if c.keep(ledger.LookedRuns, found); slices.Equal(m.Effects, []string{string(known.Read)}) {
		c.named = read.Names(c.args, view.privateHere)
	}
	runs := slices.Concat(found.Runs, c.named)
	for _, run := range runs {
		carried := profiles.CarriedFact{Param: run.Argument, What: "what " + run.Server + " answered"}
		if run.Server != c.tool.Server && !slices.Contains(m.Carries, carried) {
			m.Carries = append(m.Carries, carried)
		}
	}
}

// privateHere reports whether the answers of a source are private, and come from this
// machine: from its files, or a store on it.
func (v *View) privateHere(from provenance.Source) bool {
	tool, ok := v.Meanings[from.Server].Server.Tools[from.Tool]
	return ok && tool.Where != known.Remote && slices.Contains(tool.Labels, known.Private)
}

// reading returns what the arguments of a call are, by the file of its server, and the
// folder that this was told earlier. It reports false if no file names the tool.
func (v *View) reading(t *catalog.Tool, args map[string]any, home string) (known.Reading, bool) {
	if t.Method {
		return known.Reading{}, false
	}
	tool, ok := v.Meanings[t.Server].Server.Tools[t.Name]
	if !ok {
		return known.Reading{}, false
	}
	return tool.ReadIn(home, args), true
}

// describes reports whether the file still describes a tool, by the schema that its
// server lists.
func (v *View) describes(t *catalog.Tool, tool known.Tool) bool {
	if is, ok := v.described.Load(ToolName{t.Server, t.Name}); ok {
		return is.(bool)
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	is := json.Unmarshal(t.Input, &schema) == nil && tool.Describes(slices.Sorted(maps.Keys(schema.Properties)), schema.Required)
	v.described.Store(ToolName{t.Server, t.Name}, is)
	return is
}

// locate returns where a path leads that a call of the server names.
func (m Meant) locate(value known.Value, ws workspace.Workspace) profiles.PathFact {
	fact := func(l workspace.Location) profiles.PathFact {
		return profiles.PathFact{Param: value.Param, Path: l.Path, Inside: l.Inside, Secret: l.Secret, RunsLater: l.RunsLater, Doubt: l.Doubt}
	}
	if m.Remote {
		is := fact(workspace.Workspace{}.Locate(value.Text, ""))
		is.Path, is.Doubt = value.Text, "it is a path of another machine"
		return is
	}
	at := ws.Locate(value.Text, m.Folder)
	for _, other := range m.Starts {
		if also := ws.Locate(value.Text, other); also.Path != at.Path {
			at.Path, at.Inside, at.Doubt = value.Text, false, "it is relative, and the server has several folders"
			at.Secret, at.RunsLater = cmp.Or(at.Secret, also.Secret), cmp.Or(at.RunsLater, also.RunsLater)
		}
	}
	return fact(at)
}

// meaning returns what c means in this run: see [View.Meaning]. What somebody accepted
// after the run began does not count for it.
func (r *Run) meaning(view *View, c *call) *profiles.Meaning {
	return acquaintance{&r.gate.met}.meaning(r, view, c)
}

// meaning returns what c means in the run to a session that has met what a says.
func (a acquaintance) meaning(r *Run, view *View, c *call) *profiles.Meaning {
	home := a.At(c.whose(view, r.Session, provenance.Folder))
	m := view.meaning(c.tool, c.args.Value(), r.Workspace, home)
	if m == nil {
		return nil
	}
	m.Accepted = m.Accepted && r.Accepted[c.tool.Server]
	a.introduce(m, r.Session, c.tool.Server, c.whose(view, r.Session, provenance.Browser))
	if reading, ok := view.reading(c.tool, c.args.Value(), home); ok && triggers(reading) {
		m.Triggers = m.Triggers || a.Knows(r.Session, reading.Repository(c.tool.Server))
	}
	return m
}

// accepted returns the servers whose known facts are accepted.
func (v *View) accepted() map[string]bool {
	all := map[string]bool{}
	for name, meant := range v.Meanings {
		if meant.Accepted {
			all[name] = true
		}
	}
	return all
}

// leadsElsewhere refuses c if one of its paths or hosts is not what it was when c was
// judged first, or its server is kept to less: somebody may have replaced a folder by a
// link since. Between this
// moment and the one in which the server opens the file nobody looks any more.
func leadsElsewhere(r *Run, c *call) error {
	now := r.meaning(r.gate.View(), c)
	if c.began == nil || now == nil {
		return nil // nothing was decided on where it leads
	}
	for i, was := range c.began.Paths {
		if i >= len(now.Paths) || now.Paths[i] != was {
			return denied(c, approval.Stale, was.Param+" leads elsewhere now")
		}
	}
	for i, was := range c.began.Hosts {
		if i >= len(now.Hosts) || now.Hosts[i].Name != was.Name || now.Hosts[i].Doubt != was.Doubt {
			return denied(c, approval.Stale, was.Param+" is another host now")
		}
	}
	return loosened(c, c.began, now)
}
