package provenance

import (
	"regexp"
	"slices"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles/flow"
)

// A name of a person or a thing is often shorter than [MinRun], and says more than as
// many characters of anything else.

// properName is what looks like one in any sentence: two words or more that begin with
// a capital and go on without.
var properName = regexp.MustCompile(`\p{Lu}\p{Ll}+(?:[ -]\p{Lu}\p{Ll}+)+`)

const (
	minName  = 8  // bytes: shorter ones are in many texts
	maxNames = 32 // that are looked for in one search
)

// Names reports which proper names in the strings of args stand in the answers of
// sources that count. Of each argument and source only the first is reported.
func (m *Memory) Names(args canon.Args, counts func(Source) bool) (found []Run) {
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	left := maxNames
	for _, t := range flow.Strings(args.Value()) {
		names := properName.FindAllStringIndex(t.Text, left)
		left -= len(names)
		for n, a := range sources {
			if len(names) == 0 || !counts(a) {
				continue
			}
			for _, at := range names {
				name := t.Text[at[0]:at[1]]
				if len(name) < minName || !m.flow.Contains(n, name) {
					continue
				}
				found = append(found, Run{Source: a, Argument: canon.Escape(t.Path), Characters: len([]rune(name)), Whole: name == t.Text,
					Spans: []Span{{Offset: at[0], Length: len(name)}}, Call: a.Call, Server: a.Server, From: a.from()})
				break
			}
		}
		if left <= 0 {
			break
		}
	}
	return found
}
