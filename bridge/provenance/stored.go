package provenance

import (
	"slices"
	"strconv"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// maxStored bounds how many facts are kept of what a server was given.
const maxStored = 16

// Store notes what a server was given to keep, which a later call may send on from there: a commit that is
// pushed, a draft that is sent.
func (m *Memory) Store(server string, call int, facts []profiles.FlowFact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stored == nil {
		m.stored = map[string][]profiles.FlowFact{}
	}
	for _, f := range facts {
		has := m.stored[server]
		alike := func(o profiles.FlowFact) bool {
			return o.Undecided == f.Undecided && o.Labels.Unknown == f.Labels.Unknown && slices.Equal(o.Labels.Has, f.Labels.Has)
		}
		if len(has) >= maxStored && slices.ContainsFunc(has, alike) {
			continue
		}
		f.Says += ", which call " + strconv.Itoa(call) + " has left at " + canon.Escape(server)
		m.stored[server] = append(has, f)
	}
}

// Stored returns what a server was given to keep.
func (m *Memory) Stored(server string) []profiles.FlowFact {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.stored[server])
}
