package provenance

import (
	"bytes"
	"regexp"
	"slices"

	"codemode-bridge/bridge/canon"
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
	answers := slices.Clone(m.answers)
	m.mu.Unlock()
	answers = slices.DeleteFunc(answers, func(a *answer) bool { return !counts(a.Source) })
	if len(answers) == 0 {
		return nil
	}
	s := &search{short: true}
	s.collect("", args.Value())
	left := maxNames
	for _, t := range s.sent {
		names := properName.FindAllStringIndex(t.text, left)
		left -= len(names)
		for _, a := range answers {
			for _, at := range names {
				name := t.text[at[0]:at[1]]
				if len(name) < minName || !slices.ContainsFunc(a.strings(), func(text []byte) bool { return bytes.Contains(text, []byte(name)) }) {
					continue
				}
				found = append(found, Run{Argument: canon.Escape(t.path), Characters: len([]rune(name)), Whole: name == t.text,
					Spans: []Span{{at[0], len(name)}}, Call: a.Call, Server: a.Server, From: a.from()})
				break
			}
		}
		if left <= 0 {
			break
		}
	}
	return found
}
