package metrics

import (
	"slices"
	"sync"
)

// maxNames bounds the names that a label has had since the bridge began: edits of the
// configuration may bring ever new ones.
const maxNames = 1000

// names are the values of a label that the configuration bounds.
type names struct {
	in func() []string // the configuration

	mu   sync.Mutex
	seen map[string]bool
}

// label returns the value of the label for a name.
func (n *names) label(name string) string {
	if name == "" {
		return "none"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen[name] {
		return name
	}
	if len(n.seen) >= maxNames || !slices.Contains(n.in(), name) {
		return other
	}
	if n.seen == nil {
		n.seen = make(map[string]bool)
	}
	n.seen[name] = true
	return name
}

// maxToolName is how long the name of a tool may be in a label, in bytes.
const maxToolName = 128

// toolNames are the tools that have been counted by name, in the order in which they were
// called.
type toolNames struct {
	max int

	mu   sync.Mutex
	seen map[[2]string]bool
}

func (t *toolNames) label(server, tool string) string {
	if len(tool) > maxToolName {
		return other
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := [2]string{server, tool}
	switch {
	case t.seen[key]:
		return tool
	case len(t.seen) >= t.max:
		return other
	case t.seen == nil:
		t.seen = make(map[[2]string]bool)
	}
	t.seen[key] = true
	return tool
}
