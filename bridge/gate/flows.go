package gate

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// Where data comes from and goes is a fact for policy: the configuration and the files of
// known servers label tools, and the gate notes what was read from which. See
// profiles.FlowFacts.

// labels returns the labels of a tool: those that the configuration gives its server and it,
// and those of its server's file. What reads a server besides its tools may read all that they do.
func (v *View) labels(t *catalog.Tool) profiles.Labels {
	if t.Server == "" {
		return profiles.Labels{} // ours: its answers are declarations, and it sends nothing
	}
	meant := v.Meanings[t.Server]
	var l profiles.Labels
	said := false
	if meant.Labels != nil {
		l.Has, said = meant.Labels(t.Name)
	}
	add := func(tool known.Tool) {
		for _, label := range tool.Labels {
			if !slices.Contains(l.Has, string(label)) {
				l.Has = append(l.Has, string(label))
			}
		}
	}
	tool, ok := meant.Server.Tools[t.Name]
	switch _, unreviewed := v.unreviewed(t); {
	case t.Method:
		for _, tool := range meant.Server.Tools {
			add(tool)
		}
		said = said || meant.Accepted
	case ok:
		add(tool)
		said = said || meant.Accepted && !unreviewed && v.describes(t, tool)
	}
	slices.Sort(l.Has)
	l.Unknown = !said
	return l
}

// data is a run, with what is known of where its data comes from.
type data struct{ *Run }

// labels returns the labels of the tool of c in this run: what somebody accepted after the run
// began does not count for it.
func (r data) labels(view *View, c *call) profiles.Labels {
	l := view.labels(c.tool)
	if meant := view.Meanings[c.tool.Server]; meant.Accepted && !r.Accepted[c.tool.Server] {
		said := false
		if meant.Labels != nil {
			_, said = meant.Labels(c.tool.Name)
		}
		l.Unknown = !said
	}
	return l
}

// looks says which facts about flows some profile needs, today's or those that the run began with.
func (r data) looks(view *View) (content, context bool) {
	for _, set := range []*profiles.Set{view.Profiles, r.Policy} {
		one, other := set.Flows()
		content, context = content || one, context || other
	}
	return content, context
}

// flow finds the facts about flows of c.
func (r data) flow(view *View, c *call) *profiles.FlowFacts {
	f := &profiles.FlowFacts{Labels: r.labels(view, c)}
	content, context := r.looks(view)
	reads := c.meaning != nil && c.meaning.Accepted && slices.Equal(c.meaning.Effects, []string{string(known.Read)})
	if content && c.tool.Server != "" {
		find := r.read.Take
		if c.Number == 0 {
			find = r.read.Find // it is not made yet
		}
		found := find(c.Number, c.tool.Server, c.args)
		c.keep(ledger.LookedAll, found)
		f.Content = found.ContentFacts(func(s provenance.Source) bool { return reads && s.Server == c.tool.Server })
	}
	if content && f.Labels.May(profiles.LabelExternal) {
		f.Content = append(f.Content, r.read.Stored(c.tool.Server)...)
	}
	if c.seen = (time.Time{}); context {
		c.seen = r.gate.now()
		all := slices.Concat(r.marks.All(), r.gate.marks.Of(r.contextOf(), r.gate.now()))
		f.Written = r.written(provenance.Sending{Call: c.Number, Server: c.tool.Server, Args: c.args, Leaves: !reads}, f.Labels, slices.Concat(r.Context, all))
		f.Context = provenance.ContextFacts(all...)
	}
	return f
}

// written reports whether a call can say next to nothing of what was read: its script was written before anything
// private was, and has the arguments as they are.
func (r data) written(call provenance.Sending, to profiles.Labels, read []provenance.Mark) bool {
	private := slices.ContainsFunc(read, mayBePrivate)
	call.Tells, call.Leaves = private && to.May(profiles.LabelExternal), private && call.Leaves && !to.May(profiles.LabelExternal)
	return r.Watched && !slices.ContainsFunc(r.Context, mayBePrivate) && r.read.Written(r.Script, call)
}

func mayBePrivate(m provenance.Mark) bool {
	return profiles.Labels{Has: m.Labels, Unknown: m.Unknown}.May(profiles.LabelPrivate)
}

// store notes what c leaves at a server that keeps it.
func (r data) store(server string, number int, has *profiles.FlowFacts) {
	if has != nil && !has.Labels.May(profiles.LabelExternal) {
		r.read.Store(server, number, has.Content)
	}
}

// sentBefore notes what an earlier part of the run has sent, for the facts that are looked at.
func (r data) sentBefore(content, context bool, p Past, args canon.Args) {
	to := profiles.Labels{Has: p.Labels, Unknown: p.Unlabelled}
	if content {
		r.store(p.Server, p.Effect.Number, &profiles.FlowFacts{Labels: to,
			Content: r.read.Find(0, p.Server, args).ContentFacts(func(provenance.Source) bool { return false })})
		r.read.Send(p.Server, args)
	}
	if context {
		r.written(provenance.Sending{Call: p.Effect.Number, Server: p.Server, Args: args, Leaves: true}, to, slices.Concat(r.Context, r.marks.All()))
	}
}

// mark notes that a call has answered: for the run, and for what its context hangs on. At is when, zero for now; it
// returns that.
func (r data) mark(from provenance.Source, at time.Time) time.Time {
	m := provenance.Mark{From: canon.Escape(from.Server) + "__" + canon.Escape(from.Tool), Labels: from.Labels, Unknown: from.Unlabelled, At: at}
	r.gate.marks.Add(provenance.HandlesKey(r.Requester), r.gate.now(), m)
	return cmp.Or(at, r.note(m))
}

func (r data) note(all ...provenance.Mark) time.Time {
	r.gate.marks.Add(r.contextOf(), r.gate.now(), all...)
	return r.marks.Read(r.gate.now(), all...)
}

// forget clears what was read up to then, which somebody has said with their yes; zero for nothing. What a handle stands
// for stays what it is, and so does whether the script was written before anything private was read.
func (r data) forget(upTo time.Time) {
	if !upTo.IsZero() {
		r.marks.Clear(upTo)
		r.gate.marks.Clear(r.contextOf(), upTo, r.gate.now())
	}
}

// failed keeps what a server said in the place of an answer, where policy has rules about flows:
// the script reads that, too.
func (r data) failed(c *call, err error) {
	content, context := r.looks(r.gate.View())
	if text, no := json.Marshal(err.Error()); no == nil && (content || context) && wasSent(err) {
		r.remember(c, text)
	}
}

// ReadEarlier notes that a run reads what an earlier one has left behind a handle: it may be from any tool
// that those have read from whose handles the run can read.
func (g *Gate) ReadEarlier(r *Run, number int, value json.RawMessage) {
	content, context := data{r}.looks(g.View())
	if !content && !context {
		return
	}
	all := slices.Concat(r.Context, g.marks.Of(cmp.Or(provenance.HandlesKey(r.Requester), data{r}.contextOf()), g.now()))
	from := provenance.Source{Call: number, Server: "codemode", Tool: "read"}
	if from.Labels, from.Unlabelled = provenance.Union(all); len(all) == 0 {
		all = []provenance.Mark{{From: "codemode__read", Unknown: true}}
	}
	for i := range all {
		all[i].At = time.Time{} // it is read now
	}
	r.read.Read(from, value)
	data{r}.note(all...)
}

// contextOf says whose context the run shares.
func (r data) contextOf() string {
	return cmp.Or(r.ContextOf, provenance.Key(r.Session, r.Brief, r.Requester, r.gate.conf.ID+" "+r.Profile))
}

// begins takes over what was read before the run began. A run that is resumed brings that.
func (r data) begins(view *View, resumed bool) {
	content, context := r.looks(view)
	if content {
		r.read.Keep(provenance.MaxKept)
	}
	defer func() { r.marks.Add(r.Context...) }()
	if resumed {
		return
	}
	if r.Brief {
		r.ContextOf = r.contextOf()
	}
	if r.Watched = context; context {
		r.Context = r.gate.marks.Of(r.contextOf(), r.gate.now())
	}
}
