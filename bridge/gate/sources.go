package gate

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/profiles"
)

// remember keeps the answer of c, to recognize its bytes in what the run sends later.
func (r *Run) remember(c *call, reply json.RawMessage) {
	if c.tool.Server == "" {
		return // what the bridge itself says is not secret
	}
	l := data{r}.labels(r.gate.View(), c)
	from := provenance.Source{Call: c.Number, Server: c.tool.Server, Tool: c.tool.Name, Args: c.args, Hidden: c.decision.Hidden, Labels: l.Has, Unlabelled: l.Unknown}
	r.read.Read(from, reply)
	content, context := data{r}.looks(r.gate.View())
	if content {
		r.read.Prepare() // the next call need not wait for it
	}
	if at := (data{r}).mark(from, time.Time{}); context {
		c.read = at
	}
}

// findSources finds which of the arguments' bytes the run has read before, for the
// person who is asked. It can only make a decision stricter: data that is passed from
// one server to another is named among the reasons, and no grant covers it. It looks
// only at calls that are asked about.
func (r *Run) findSources(c *call) {
	found := r.read.Find(c.Number, c.tool.Server, c.args)
	folder := ""
	if folders := r.Workspace.Folders(); len(folders) == 1 {
		folder = canon.Escape(folders[0]) + string(filepath.Separator)
	}
	c.keep(ledger.LookedRuns, found)
	c.sources, c.reads = nil, nil
	var others []string
	for _, run := range found.Runs {
		c.reads = append(c.reads, approval.Read{Param: run.Argument, Characters: run.Characters, Whole: run.Whole, Call: run.Call, From: provenance.Within(folder, run.From)})
		if name := canon.Escape(run.Server); run.Server != c.tool.Server && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	if found.Partly {
		c.sources = append(c.sources, "the run has read more than could be compared")
		c.decision.Remember = false // it may be another server's
	}
	if len(others) == 0 {
		return
	}
	c.decision.Remember = false
	c.decision.Reasons = slices.Clone(c.decision.Reasons)
	for _, name := range others {
		c.decision.Reasons = append(c.decision.Reasons, profiles.Reason{Kind: profiles.KindRisk, Risk: c.decision.Risk, Detail: "passes on what was read from " + name})
	}
}

// keep keeps what was found in the arguments of c for its record, unless a wider search has.
func (c *call) keep(looked string, found provenance.Found) {
	if looked == ledger.LookedAll || c.looked != ledger.LookedAll {
		c.looked, c.found = looked, found
	}
}

// searched notes in a record what was found of what the run has read, and which facts about flows were looked for.
func (c *call) searched(rec *ledger.Record) {
	rec.Looked = c.looked
	for _, p := range c.found.Pieces(c.named) {
		rec.Sources = append(rec.Sources, ledger.SourceMatch{Kind: p.Kind, Call: p.Source.Call, Argument: p.Argument, Offset: p.Span.Offset, Length: p.Span.Length, Labels: p.Source.Labels, Unlabelled: p.Source.Unlabelled})
	}
	if !c.seen.IsZero() {
		rec.Written = new(c.flow.Written)
	}
}
