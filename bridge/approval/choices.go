package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"codemode-bridge/profiles"
)

// MaxCount bounds Verdict.Count: the calls that one answer may cover.
const MaxCount = 1000

// maxWider bounds the kinds of calls that one wider answer may cover: more could
// not be said in a sentence.
const maxWider = 3

// maxSpans bounds the numbers of calls that a wider answer says it is for only once.
const maxSpans = 10

// A Choice is one answer that a request offers. Every channel offers the same ones,
// in the same words; only in a dialog the text of others among them is in code spans.
type Choice struct {
	Value  string // "no", "once" and so on: what a form sends
	Title  string
	Dialog string // the title in a dialog, whose client may render Markdown
	Scope  Scope  // of a yes; empty for a no
	Stop   bool   // of a no: the run is to end
	NoMore bool   // of a no: so is every further call of the tool in this run
	Forget bool   // of a yes: what was read before is forgotten
}

// Yes reports whether the choice is a yes.
func (c Choice) Yes() bool { return c.Scope != "" }

// Choices returns the answers that the request offers, "no" first. A session says
// whether the client has one, in which a yes can be remembered.
func (r Request) Choices(session bool) []Choice {
	all := r.choices(session)
	for i := range all {
		all[i].Dialog = cmp.Or(all[i].Dialog, all[i].Title)
	}
	return all
}

func (r Request) choices(session bool) []Choice {
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
	if r.Decision.MayForget() {
		all = append(all, Choice{Value: "forget", Title: strings.Replace(once, ", this call", "", 1) + ", and forget what was read before", Scope: Once, Forget: true})
	}
	inRun := r.wider(RunScope)
	if len(inRun.kinds) == 0 || len(r.Counts()) == 0 {
		return all
	}
	all = append(all, Choice{Value: string(RunScope), Title: "Yes, and calls like this in this run, up to a number" + after("; ", inRun.rest()), Scope: RunScope})
	if lasting := r.wider(SessionScope); session && len(lasting.kinds) > 0 {
		title := func(write quoting) string {
			return "Yes, for this session: " + lasting.where(write) + after("; ", lasting.rest())
		}
		all = append(all, Choice{Value: string(SessionScope), Title: title(quoting{}), Dialog: title(quoting{dialog: true}), Scope: SessionScope})
	}
	return all
}

// after returns a text after a separator; empty if it is.
func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

func noMore(tools int) string {
	if tools > 1 {
		return "No to every further call of these tools in this script"
	}
	return "No to every further call of this tool in this script"
}

// where says in a few words what the answer is limited to. Of long values it has the
// beginning; the whole is in WiderWords.
func (w widening) where(write quoting) string {
	for write.most = maxWhere; write.most >= leastShown; write.most /= 2 {
		parts := make([]string, len(w.kinds))
		for i, k := range w.kinds {
			parts[i] = strings.TrimSpace(write.text(k.cover.Kind) + " " + k.cover.where(write))
		}
		if text := strings.Join(parts, "; "); utf8.RuneCountInString(text) <= maxWhere {
			return text
		}
	}
	return "calls like this, as described"
}

// words says what the answer binds and what it leaves free.
func (w widening) words() string {
	parts := make([]string, len(w.kinds))
	for i, k := range w.kinds {
		parts[i] = k.cover.String()
	}
	return strings.Join(parts, " · ")
}

// maxWhere bounds what the title of a choice says of its limits, in runes, and
// leastShown what it shows of a value.
const (
	maxWhere   = 120
	leastShown = 8
)

// Counts are the numbers of calls that a person may choose from for an answer that
// covers calls of this run; the last is all that the run may make.
func (r Request) Counts() []int {
	most := r.MaxCount()
	all := slices.DeleteFunc([]int{20, 100}, func(n int) bool { return n >= most })
	return slices.DeleteFunc(append(all, most), func(n int) bool { return n <= len(r.Items) })
}

// MaxCount is the most calls that one answer to the request may cover.
func (r Request) MaxCount() int {
	if r.MostCalls > 0 {
		return max(min(r.MostCalls, MaxCount), len(r.Items))
	}
	return MaxCount
}

// WiderWords says what the wider answers bind and what they leave free, and which
// calls they are for only once; empty if none is offered.
func (r Request) WiderWords() string { return r.widerWords(quoting{}) }

// WiderInDialog is WiderWords for a dialog, whose client may render Markdown.
func (r Request) WiderInDialog() string { return r.widerWords(quoting{dialog: true}) }

func (r Request) widerWords(write quoting) string {
	all := r.wider(RunScope)
	var lasting, inRun []string
	for _, k := range all.kinds {
		if k.cover.RunOnly {
			inRun = append(inRun, k.cover.words(write))
		} else {
			lasting = append(lasting, k.cover.words(write))
		}
	}
	if len(lasting) > 0 && len(inRun) > 0 {
		inRun[0] = "only in this run: " + inRun[0]
	}
	parts := append(lasting, inRun...)
	if rest := all.rest(); rest != "" {
		parts = append(parts, rest)
	}
	return strings.Join(parts, " · ")
}

// Wider returns what wider answers would cover, one for each kind of call in the
// request for which there is one; nil if none is offered.
func (r Request) Wider() []Cover {
	var covers []Cover
	for _, k := range r.wider(RunScope).kinds {
		covers = append(covers, k.cover)
	}
	return covers
}

// A widening is what a wider answer to a request is for: calls like some of its own,
// and the rest of them once.
type widening struct {
	kinds []group
	once  []Item
}

// A group is the calls of a request that are alike.
type group struct {
	cover Cover
	items []Item
}

// wider returns what a wider answer with this scope is for. None is offered, and there
// are no kinds, if no call may be covered, or if it could not be said in a sentence which
// are and which are not.
func (r Request) wider(scope Scope) (w widening) {
next:
	for _, i := range r.Calls() {
		if !i.Cover.Offered() || !mayWiden(i.Decision) || scope == SessionScope && i.Cover.RunOnly {
			w.once = append(w.once, i)
			continue
		}
		for n := range w.kinds {
			if joined, ok := w.kinds[n].cover.with(i.Cover); ok && alikeKeys(w.kinds[n].items[0], i) {
				w.kinds[n].cover, w.kinds[n].items = joined, append(w.kinds[n].items, i)
				continue next
			}
		}
		if len(w.kinds) == maxWider {
			return widening{}
		}
		w.kinds = append(w.kinds, group{i.Cover, []Item{i}})
	}
	if len(w.kinds) == 0 || len(w.spans()) > maxSpans {
		return widening{}
	}
	return w
}

// spans returns the numbers of the calls that the answer is for only once.
func (w widening) spans() (spans []string) {
	for n := 0; n < len(w.once); n++ {
		first := w.once[n].Call
		for n+1 < len(w.once) && w.once[n+1].Call == w.once[n].Call+1 {
			n++
		}
		span := strconv.Itoa(first)
		if last := w.once[n].Call; last > first {
			span += "-" + strconv.Itoa(last)
		}
		spans = append(spans, span)
	}
	return spans
}

// rest says which of the calls the answer is for only once; empty if it is for none.
func (w widening) rest() string {
	spans := w.spans()
	last := len(spans) - 1
	switch {
	case last < 0:
		return ""
	case len(w.once) == 1:
		return "call " + spans[0] + " only once"
	case last == 0:
		return "calls " + spans[0] + " only once"
	default:
		return "calls " + strings.Join(spans[:last], ", ") + " and " + spans[last] + " only once"
	}
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
