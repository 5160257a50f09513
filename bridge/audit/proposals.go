package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/profiles"
)

// A Proposal is a rule that can be added to a profile as it is and would have spared
// people questions, with the evidence: a [Suggestion] that nothing speaks against.
type Proposal struct {
	Profile string            `json:"profile"`
	Tool    string            `json:"tool"` // server__tool
	Rule    profiles.RuleSpec `json:"rule"`
	Asked   int               `json:"asked"`
	Yes     int               `json:"yes"`
	Spared  int               `json:"would_have_spared"` // of the questions that were answered yes
	First   time.Time         `json:"first"`
	Last    time.Time         `json:"last"`
	// Examples are the latest calls that it would have allowed.
	Examples []Case `json:"examples"`
}

// maxExamples bounds Proposal.Examples.
const maxExamples = 3

// A Meaning is what is known of a tool; it has no effects if nothing is.
type Meaning struct {
	Effects []string
	Where   string
	// Stateful reports that what a call does depends on those before it.
	Stateful bool
	Args     map[string]Role // by dotted name
}

// Proposals returns the rules that can be added, those that spare most first. None is
// for calls of high risk, for what deletes, runs code, spends or sends, for a call that
// anybody refused, or against a list or rule that asks. Known says what is known of a
// tool that policy may go by.
func (s *Stats) Proposals(known func(server, tool string) Meaning) []Proposal {
	all := []Proposal{}
	for key, a := range s.asked {
		means := known(key.server, key.tool)
		if !a.nearlyAlwaysYes() || !a.mild() || !harmless(key.tool, means) {
			continue
		}
		s, ok := suggest(key, a)
		if !ok || s.Note != "" || len(s.LetThrough) > 0 {
			continue
		}
		p := Proposal{Profile: key.profile, Tool: s.Tool, Rule: s.Rule, Asked: len(a.yes) + len(a.no), Yes: len(a.yes), Spared: s.Cover}
		judge := newJudge(s.Rule)
		for _, c := range a.yes {
			args, ok := tree(c.Args)
			if !ok || !judge.allows(key, args) {
				continue
			}
			if p.First.IsZero() || c.Time.Before(p.First) {
				p.First = c.Time
			}
			if c.Time.After(p.Last) {
				p.Last = c.Time
			}
			p.Examples = append(p.Examples, c)
		}
		p.Examples = p.Examples[max(0, len(p.Examples)-maxExamples):]
		if len(means.Effects) > 0 {
			p.Rule.Known, p.Rule.Effects = new(true), means.Effects
			if means.Where != "" {
				p.Rule.Where = []string{means.Where}
			}
		}
		text, err := json.Marshal(p.Rule)
		if err != nil {
			continue
		}
		p.Rule.Name = new(fmt.Sprintf("suggested-%x", sha256.Sum256(text))[:len("suggested-")+8])
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.Spared, a.Spared), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Profile, b.Profile), cmp.Compare(*a.Rule.Name, *b.Rule.Name))
	})
	return all
}

// mild reports whether each question was of low or medium risk.
func (a *asks) mild() bool {
	return !slices.ContainsFunc(a.risks, func(r string) bool { return r != profiles.Low.String() && r != profiles.Medium.String() })
}

// harmless reports whether calls of a tool only read and write, by what is known of it
// or else by its name.
func harmless(tool string, means Meaning) bool {
	if len(means.Effects) > 0 {
		return !slices.ContainsFunc(means.Effects, func(e string) bool { return e != "read" && e != "write" })
	}
	words := strings.FieldsFunc(strings.ToLower(tool), func(r rune) bool { return r < 'a' || r > 'z' })
	joined := strings.Join(words, "")
	return !slices.ContainsFunc(gravest, func(word string) bool { return strings.Contains(joined, word) })
}

// gravest are the words in a tool's name for which no rule is proposed, wherever they
// stand: a rule that is missing costs a question.
var gravest = strings.Fields("delete remove drop destroy purge trash erase clear close archive cancel revoke kill reset " +
	"exec run shell command script eval deploy install start merge push pay buy order purchase transfer charge refund book " +
	"send reply forward post publish submit mail message notify invite share comment tweet call")

// Write writes the proposal with its evidence.
func (p Proposal) Write(to interface{ WriteString(string) (int, error) }, number int) error {
	text, err := lineOf(p.Rule)
	if err != nil {
		return err
	}
	e := evidence{fmt.Sprintf("would have spared %d of %d questions", p.Spared, p.Asked), p.First, p.Last, fmt.Sprintf("%d were answered yes", p.Yes), p.Examples}
	lines := e.lines()
	lines[0] = fmt.Sprintf("%d. %s, profile %s: %s\n   %s", number, Shown(p.Tool), Shown(p.Profile), lines[0], Shown(text))
	_, err = to.WriteString(strings.Join(lines, "\n ") + "\n")
	return err
}
