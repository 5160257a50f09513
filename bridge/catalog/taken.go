package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"codemode-bridge/bridge/tsdecl"
)

// A Taken keeps which tools the script of one run means by names that are not their
// script names. What such a name was once taken for, it stands for until the run ends,
// whatever is listed by then. The zero value is ready, and any number of goroutines may
// use it; a nil Taken keeps nothing.
type Taken struct {
	mu   sync.Mutex
	refs map[string]ToolRef
}

// Find finds the tool that the run's script means by name.
func (n *Taken) Find(c *Catalog, name string) (*Tool, bool) {
	if ref, ok := n.ref(name); ok {
		return c.Tool(ref)
	}
	t := c.Resolve(name).Tool
	return t, t != nil
}

// Take is Find for a call: it keeps what it finds.
func (n *Taken) Take(c *Catalog, name string) (*Tool, bool) {
	t, ok := n.Find(c, name)
	if ok && n != nil && t.Script != name {
		n.Restore(map[string]ToolRef{name: t.Ref()})
	}
	return t, ok
}

func (n *Taken) ref(name string) (ToolRef, bool) {
	if n == nil {
		return ToolRef{}, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	ref, ok := n.refs[name]
	return ref, ok
}

// Restore brings back what All returned in an earlier part of the run. What is kept
// already stays.
func (n *Taken) Restore(all map[string]ToolRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, ref := range all {
		if _, ok := n.refs[name]; ok {
			continue
		}
		if n.refs == nil {
			n.refs = map[string]ToolRef{}
		}
		n.refs[name] = ref
	}
}

// All is what is kept, by the name that the script wrote; nil if that is nothing.
func (n *Taken) All() map[string]ToolRef {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.refs)
}

// maxTaken is how many names Notes tells of.
const maxTaken = 10

// Notes tell the author of the script what its names were taken for, as far as v
// shows the tools.
func (n *Taken) Notes(v *View) []string {
	var notes []string
	refs, more := n.All(), 0
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		t, ok := v.catalog.Tool(refs[name])
		switch {
		case !ok || !v.Shows(t) || t.Script == name:
		case len(notes) == maxTaken:
			more++
		default:
			member := "." + name
			if !legal(name) {
				member = "[" + strconv.Quote(tsdecl.Plain(name, MaxName)) + "]"
			}
			notes = append(notes, fmt.Sprintf("codemode%s was taken as %s", member, t.Script))
		}
	}
	if more > 0 {
		notes = append(notes, fmt.Sprintf("%d more names were taken as tools that are spelled otherwise", more))
	}
	return notes
}
