package setup

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/workspace"
	"codemode-bridge/profiles"
)

// builtins are the servers that any configuration can have.
var builtins = map[string]string{
	"time":  `{ "type": "builtin", "builtin": "time" }`,
	"utils": `{ "type": "builtin", "builtin": "utils" }`,
}

// A Plan says what a new configuration has besides servers.
type Plan struct {
	// ID tells it from others; without one, the place of its file does: see Identify.
	ID string
	// Profile is the name of its only profile, and Extends the template that this
	// is, as "builtin:coding@1".
	Profile, Extends string
	// Workspace is the folder that scripts work on, absolute. Where it is empty,
	// NoWorkspace says why there is none.
	Workspace, NoWorkspace string
	// Rules are those that its profile has besides the template's.
	Rules []profiles.RuleSpec
}

// WorkspaceIn makes a folder the workspace of a plan, unless it cannot be one. Own are
// the bridge's own files.
func (p *Plan) WorkspaceIn(folder string, own []string) {
	w, err := workspace.New([]string{folder}, own)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "workspace "+folder+": ")
		p.NoWorkspace = fmt.Sprintf("%s cannot be one, because %s", folder, why)
		return
	}
	p.Workspace = w.Folders()[0]
}

// Words says in a line what the plan is; short abbreviates a path.
func (p Plan) Words(short func(path string) string) string {
	where := "without a workspace"
	if p.Workspace != "" {
		where = "the workspace " + short(p.Workspace)
	}
	return where + " and the profile " + p.Profile
}

// firstHead is what stands before the servers of a new configuration.
const firstHead = `// The configuration of codemode-bridge. A bridge that runs takes an edit over by itself;
// codemode-bridge check finds mistakes.
{
  // %s

  // The MCP servers that scripts may call. "${NAME}" is a variable of the environment. "known":
  // what the bridge knows of it is accepted (servers known NAME). "quarantine": tools that are
  // new or have changed stay hidden until somebody accepts them (tools review).
  "servers": {
`

// Identify gives a plan the id of the configuration that it replaces, so that paused runs
// and open questions stay with it; a new id, if there is none that it replaces. Kept is
// false if the old one cannot be read: then the id is a new one, too.
func (p *Plan) Identify(old jsonc.Text) (kept bool) {
	p.ID = "config-" + strings.ToLower(rand.Text()[:8])
	if len(old) == 0 {
		return true
	}
	plain, err := old.MarshalJSON()
	var was struct {
		ID string `json:"id"`
	}
	if err != nil || json.Unmarshal(plain, &was) != nil || was.ID != "" && !config.IsID(was.ID) {
		return false
	}
	p.ID = was.ID
	return true
}

// identity is what a configuration says of its id.
func (p Plan) identity() string {
	if p.ID == "" {
		return `Paused runs and open questions belong to the place of this file: there is no "id".`
	}
	return fmt.Sprintf("Paused runs and open questions belong to this id. Give a copy another.\n  \"id\": %q,", p.ID)
}

// after is what stands behind the servers of a new configuration.
func (p Plan) after() string {
	var text strings.Builder
	text.WriteString(`    "time": { "type": "builtin", "builtin": "time" },
    "utils": { "type": "builtin", "builtin": "utils" },
  },

  "evaluation": {
`)
	if p.Workspace != "" {
		fmt.Fprintf(&text, "    // The folder that scripts work on; a list, if there are several.\n    \"workspace\": %s,\n", flatJSON(p.Workspace))
	} else {
		fmt.Fprintf(&text, "    // There is no \"workspace\": %s.\n    // Scripts work on the folder that their client works in.\n", canon.Escape(p.NoWorkspace))
	}
	fmt.Fprintf(&text, `    // What scripts may do: codemode-bridge profiles templates %s. Rules of your own go beside it.
    "defaultProfile": %q,
    "profiles": %s,
    "risk": { "unknown": "medium" },
  },
}
`, strings.TrimPrefix(p.Extends, "builtin:"), p.Profile, p.profiles())
	return text.String()
}

// profiles is the profile as it stands in a configuration.
func (p Plan) profiles() string {
	if len(p.Rules) == 0 {
		return fmt.Sprintf(`{ %q: { "extends": %q } }`, p.Profile, p.Extends)
	}
	rules := make([]string, len(p.Rules))
	for i, rule := range p.Rules {
		rules[i] = "          " + flatRule(rule)
	}
	return fmt.Sprintf("{\n      %q: {\n        \"extends\": %q,\n        \"rules\": [\n%s,\n        ],\n      },\n    }", p.Profile, p.Extends, strings.Join(rules, ",\n"))
}

// NewFirst returns an Import for a configuration that does not exist yet. It has
// the servers that are part of the bridge.
func NewFirst(system clients.System) *Import {
	i := NewImport(system)
	for name, text := range builtins {
		i.take(name, comparable(jsonc.Text(text)))
	}
	return i
}

// First writes a new configuration with the servers of an Import, as planned. Check says what is
// wrong with the text of a configuration: a server that would be a mistake there gets
// a Problem and is left out.
func First(i *Import, plan Plan, check func(text []byte) error) ([]byte, error) {
	for {
		var text strings.Builder
		fmt.Fprintf(&text, firstHead, plan.identity())
		for _, s := range i.New() {
			fmt.Fprintf(&text, "    %q: %s,\n", s.As, strings.ReplaceAll(string(s.Text()), "\n", "\n    "))
		}
		text.WriteString(plan.after())
		err := check([]byte(text.String()))
		if err == nil {
			return []byte(text.String()), nil
		}
		var problems config.Problems
		if !errors.As(err, &problems) {
			return nil, err
		}
		dropped := false
		for _, problem := range problems {
			for _, s := range i.New() {
				if at := "/servers/" + s.As + "/confine"; s.Unboxed == "" && (problem.Path == at || strings.HasPrefix(problem.Path, at+"/")) {
					s.Unboxed, dropped = firstProblem(problem), true
				} else if problem.Path == "/servers/"+s.As || strings.HasPrefix(problem.Path, "/servers/"+s.As+"/") {
					s.Problem, dropped = firstProblem(problem), true
				}
			}
		}
		if !dropped {
			return nil, fmt.Errorf("writing a configuration: %w", err)
		}
	}
}
