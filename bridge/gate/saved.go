package gate

import (
	"context"
	"fmt"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
)

// Saved prepares run r to run the saved script that c names, with c's arguments as
// its input: it freezes the input, checks it against the script's schema, and
// records the hash of the script before returning it.
//
// Policy does not judge this: a saved script can only make calls, which go through
// Call in the same run and under the same profile, and are judged there one by one.
//
// An error is one of Call's for a call that was not sent.
func (g *Gate) Saved(ctx context.Context, r *Run, c Call) (catalog.Script, error) {
	view := g.View()
	refuse := func(known *call, why error) (catalog.Script, error) {
		_, err := r.refuse(ctx, c, known, why)
		return catalog.Script{}, err
	}
	tool, ok := view.Catalog.Saved(c.Name)
	if !ok {
		c.Name = savedName(c.Name)
		return refuse(nil, unknownScript(seen(r, view), c.Name))
	}
	made, by := &call{Call: c, gate: g, tool: tool}, r.bound(view)
	if tool.Saved.Problem != "" {
		return refuse(made, &UnknownToolError{Name: tool.Script, Message: fmt.Sprintf("saved script %s can't be run: %s", tool.Name, tool.Saved.Problem)})
	}
	var err error
	if made.args, err = canon.Parse(c.Args); err != nil {
		return refuse(made, unfit(tool, err, by))
	}
	if _, wrong := view.check(tool, made.args, by); wrong != nil {
		return refuse(made, wrong)
	}
	if len(tool.Input) == 0 && len(made.args.Value()) > 0 {
		return refuse(made, newArgumentError(tool, "it takes no input"))
	}
	if ctx.Err() != nil {
		return refuse(made, denied(made, approval.Expired, ""))
	}
	rec := made.record(ledger.SavedScript)
	rec.Name, rec.Tool, rec.Outcome, rec.ScriptHash = tool.Name, tool.Script, ledger.Done, tool.Digest
	rec.Input = canon.Display(made.args, r.recordOptions()).JSON
	if _, again := r.scripts.LoadOrStore(tool.Digest, true); !again { // once, though it may run in a loop
		rec.Script = canon.EscapeLines(r.redact(tool.Saved.Source))
	}
	if err := r.record(ctx, rec); err != nil {
		return refuse(made, unrecorded(made, err))
	}
	return *tool.Saved, nil
}

// savedName returns the name of a saved script among those of tools.
func savedName(name string) string { return `run("` + name + `")` }

// unknownScript says that no saved script is called name, and which have similar
// names.
func unknownScript(seen *catalog.View, name string) *UnknownToolError {
	e := &UnknownToolError{Name: name, Message: "there is no saved script " + canon.Escape(name)}
	for _, near := range seen.Near(name, 3) {
		if strings.HasPrefix(near, "run(") {
			e.Near = append(e.Near, near)
		}
	}
	if len(e.Near) > 0 {
		e.Message += "; did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	return e
}
