package provenance

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

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

// Written reports whether all texts and numbers of arguments stand in a script as they are.
func Written(script string, args canon.Args) bool {
	stands := func(text string) bool {
		if strings.Contains(script, text) {
			return true
		}
		escaped, err := json.Marshal(text)
		return err == nil && strings.Contains(script, string(escaped[1:len(escaped)-1]))
	}
	var look func(v any) bool
	look = func(v any) bool {
		switch v := v.(type) {
		case string:
			return stands(v)
		case json.Number:
			return stands(v.String())
		case []any:
			return !slices.ContainsFunc(v, func(e any) bool { return !look(e) })
		case map[string]any:
			for name, e := range v {
				if !stands(name) || !look(e) {
					return false
				}
			}
		}
		return true
	}
	return look(args.Value())
}
