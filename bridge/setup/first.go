package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
)

// builtins are the servers that any configuration can have.
var builtins = map[string]string{
	"time":  `{ "type": "builtin", "builtin": "time" }`,
	"utils": `{ "type": "builtin", "builtin": "utils" }`,
}

// firstHead and firstTail are what stands around the servers of a new
// configuration.
const firstHead = `// The configuration of codemode-bridge. After an edit, look for mistakes with
//
//	codemode-bridge check
//
// A bridge that runs takes an edit over by itself.
{
  // Tells this configuration from others with the same audit log, also when the
  // file is moved: paused runs and open questions belong to it. Give a copy
  // another id.
  "id": %q,

  // The MCP servers that scripts may call. A tool is called by the name of its
  // server and its own, as in codemode.time__now({}). "${NAME}" is a variable
  // of the environment. A program sees those in its env and passEnv, and no others.
  // With "quarantine", tools that are new or have changed stay hidden from scripts
  // until they are accepted: codemode-bridge tools review.
  "servers": {
`

const firstTail = `
    // These two are part of the bridge.
    "time": { "type": "builtin", "builtin": "time" },
    "utils": { "type": "builtin", "builtin": "utils" },
  },

  // What scripts may do. Each profile is a tool of its own for the client
  // (codemode_eval_supervised); the default profile binds eval as well.
  "evaluation": {
    "defaultProfile": "supervised",
    // What nobody can judge is asked about.
    "risk": { "unknown": "medium" },
    "profiles": {
      "supervised": {
        // What no list and no rule names is asked about unless it only reads.
        "default": "risk",
        // Tools that are never called, or always after a question:
        // "denylist": ["github__delete_*"],
        // "asklist": ["filesystem__write_*"],
        // Where nobody can be asked, the call is denied.
        "elicitationFallback": "deny",
        "rules": [
          { "tools": ["time__*", "utils__*"], "action": "allow", "risk": "low" },
        ],
      },
    },
  },
}
`

// NewFirst returns an Import for a configuration that does not exist yet. It has
// the servers that are part of the bridge.
func NewFirst(system clients.System) *Import {
	i := NewImport(system)
	for name, text := range builtins {
		i.take(name, comparable(config.JSONC(text)))
	}
	return i
}

// First writes a new configuration with the servers of an Import. Check says what is
// wrong with the text of a configuration: a server that would be a mistake there gets
// a Problem and is left out.
func First(i *Import, check func(text []byte) error) ([]byte, error) {
	id := "config-" + strings.ToLower(rand.Text()[:8])
	for {
		var text strings.Builder
		fmt.Fprintf(&text, firstHead, id)
		for _, s := range i.New() {
			fmt.Fprintf(&text, "    %q: %s,\n", s.As, strings.ReplaceAll(string(s.Text()), "\n", "\n    "))
		}
		text.WriteString(strings.TrimPrefix(firstTail, strings.Repeat("\n", 1-min(1, len(i.New())))))
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
				if problem.Path == "/servers/"+s.As || strings.HasPrefix(problem.Path, "/servers/"+s.As+"/") {
					s.Problem, dropped = firstProblem(problem), true
				}
			}
		}
		if !dropped {
			return nil, fmt.Errorf("writing a configuration: %w", err)
		}
	}
}
