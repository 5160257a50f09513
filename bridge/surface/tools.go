package surface

import (
	"slices"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/catalog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options say which tools somebody may call.
type Options struct {
	Evals    []access.Eval
	Full     bool                               // the full surface
	Pauses   bool                               // runs can pause
	Sees     func(profile string) *catalog.View // what scripts under a profile may call
	ReadOnly func(profile string) bool          // whether they can change nothing
}

// A Tool is one of them.
type Tool struct {
	*mcp.Tool
	Kind     Kind
	Profile  string // of a KindEval
	Unlisted bool   // it may be called, and need not be seen
}

// A Kind says what a tool does.
type Kind int

const (
	KindEval Kind = iota
	KindDiscovery
	KindResume
	KindStatus
)

// Tools are the tools that somebody may call. Discovery is under the profile of eval, and without an
// eval tool there is nothing.
func Tools(o Options) (all []Tool) {
	search, found := o.Full, []string(nil) // whether anything must be searched for, and the names that eval sees
	for _, e := range o.Evals {
		title, sees := "Run a script", o.Sees(e.Profile)
		if e.Tool == "eval" {
			found = sees.Names()
		} else {
			title += " (" + e.Profile + ")"
		}
		tool, listed := Eval(e.Tool, title, sees, o.ReadOnly(e.Profile))
		search = search || !listed
		all = append(all, Tool{Tool: tool, Profile: e.Profile})
	}
	if len(all) == 0 {
		return nil
	}
	for _, t := range Discovery(o.Full) {
		if slices.Contains(found, t.Name) {
			all = append(all, Tool{Tool: t, Kind: KindDiscovery, Unlisted: !search})
		}
	}
	if o.Pauses {
		all = append(all, Tool{Tool: Resume(), Kind: KindResume})
	}
	if o.Full {
		all = append(all, Tool{Tool: Status(), Kind: KindStatus})
	}
	return all
}
