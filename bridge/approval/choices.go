package approval

import (
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// MaxCount bounds Verdict.Count: the calls that one answer may cover.
const MaxCount = 1000

// maxWider bounds the kinds of calls that one wider answer may cover: more could
// not be said in a sentence.
const maxWider = 3

// A Choice is one answer that a request offers. Every channel offers the same ones,
// in the same words.
type Choice struct {
	Value  string // "no", "once" and so on: what a form sends
	Title  string
	Scope  Scope // of a yes; empty for a no
	Stop   bool  // of a no: the run is to end
	NoMore bool  // of a no: so is every further call of the tool in this run
}

// Yes reports whether the choice is a yes.
func (c Choice) Yes() bool { return c.Scope != "" }

// Choices returns the answers that the request offers, "no" first. A session says
// whether the client has one, in which a yes can be remembered.
func (r Request) Choices(session bool) []Choice {
	all := []Choice{{Value: "no", Title: "No"}}
	if r.Before > 0 {
		all = append(all, Choice{Value: "no_more", Title: noMore(len(r.Paths())), NoMore: true})
	}
	all = append(all, Choice{Value: "stop", Title: "No, and stop the script", Stop: true})
	once := "Yes, this call"
	if n := len(r.Items); n > 1 {
		once = fmt.Sprintf("Yes, these %d calls", n)
	}
	all = append(all, Choice{Value: string(Once), Title: once, Scope: Once})
	wider := r.Wider()
	if len(wider) == 0 || len(r.Counts()) == 0 {
		return all
	}
	all = append(all, Choice{Value: string(RunScope), Title: "Yes, and calls like this in this run, up to a number", Scope: RunScope})
	if session && r.mayLast() {
		all = append(all, Choice{Value: string(SessionScope), Title: "Yes, for this session: " + whereOf(wider), Scope: SessionScope})
	}
	return all
}

func noMore(tools int) string {
	if tools > 1 {
		return "No to every further call of these tools in this script"
	}
	return "No to every further call of this tool in this script"
}

// whereOf says in a few words what wider answers are limited to.
func whereOf(wider []Cover) string {
	parts := make([]string, len(wider))
	for i, c := range wider {
		parts[i] = strings.TrimSpace(canon.Escape(c.Kind) + " " + c.Where())
	}
	return canon.Cut(strings.Join(parts, "; "), maxWhere)
}

// maxWhere bounds what the title of a choice says of its limits, in runes: the whole
// is in WiderWords.
const maxWhere = 120

// Counts are the numbers of calls that a person may choose from for an answer that
// covers calls of this run.
func (r Request) Counts() []int {
	return slices.DeleteFunc([]int{20, 100, MaxCount}, func(n int) bool { return n <= len(r.Items) })
}

// WiderWords says what the wider answers bind and what they leave free; empty if
// none is offered.
func (r Request) WiderWords() string {
	wider := r.Wider()
	if len(wider) == 0 {
		return ""
	}
	parts := make([]string, len(wider))
	for i, c := range wider {
		parts[i] = c.String()
	}
	return strings.Join(parts, " · ")
}

// Wider returns what wider answers would cover, one for each kind of call in the
// request; nil if none is offered.
func (r Request) Wider() []Cover {
	var covers []Cover
	for _, g := range r.groups() {
		covers = append(covers, g.cover)
	}
	return covers
}

// A group is the calls of a request that are alike.
type group struct {
	cover Cover
	items []Item
}

// groups sorts the calls into kinds; nil if a wider answer is offered for none.
func (r Request) groups() []group {
	var all []group
next:
	for _, i := range r.Calls() {
		if !i.Cover.Offered() || !mayWiden(i.Decision) {
			return nil
		}
		for n := range all {
			if joined, ok := all[n].cover.with(i.Cover); ok && alikeKeys(all[n].items[0], i) {
				all[n].cover, all[n].items = joined, append(all[n].items, i)
				continue next
			}
		}
		if len(all) == maxWider {
			return nil
		}
		all = append(all, group{i.Cover, []Item{i}})
	}
	return all
}

// mayLast reports whether a wider answer may be for the session.
func (r Request) mayLast() bool {
	return !slices.ContainsFunc(r.Wider(), func(c Cover) bool { return c.RunOnly })
}

// mayWiden reports whether a yes to a call with this decision may cover others, and
// whether it may be covered itself.
func mayWiden(d profiles.Decision) bool {
	return d.Remember && !d.Manual && !d.RequireReason && len(d.Quorums) == 0 && d.Risk < profiles.Critical
}

// whyOnce continues the sentence that a yes counts only once.
func (r Request) whyOnce() string {
	for _, i := range r.Items {
		if i.Cover.None != "" {
			return ": " + i.Cover.None
		}
	}
	return ""
}
