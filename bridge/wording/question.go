package wording

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// A row is a call of a request in a dialog.
type row struct {
	begin  string  // what it does, where the calls are of several tools
	least  int     // columns that it may take in any case
	none   bool    // it has no arguments at all
	fields []Field // that are not told elsewhere
	facts  []phrase
	risk   phrase // from high on
}

// questionWidth is about how much of its values a question has, and rowWidth how much
// the row of one of several calls, which has rowRest columns of other words and its number.
const (
	questionWidth = 2*promptWidth + 16
	rowWidth      = 2*promptWidth - 24
	rowRest       = len("• Call , to come: Create issue in , and 10 more arguments")
)

// ask makes the question, with what is known of where its values lead, and the rows
// below it.
func (d *Description) ask(r approval.Request) {
	calls := r.Calls()
	var said []factSaid
	switch {
	case len(calls) == 1:
		said = d.askOne(calls[0])
	case len(r.Paths()) == 1:
		said = d.askAlike(calls)
	default:
		d.askSeveral(r, calls)
	}
	if len(r.Paths()) == 1 {
		risk := riskOf(r.Decision, &said)
		if len(calls) > 1 {
			risk = each(risk)
		}
		if risk.plain != "" {
			d.said.risk = say("%s.", risk)
		}
	}
	for _, f := range said {
		d.said.facts = append(d.said.facts, say("%s.", f.text))
	}
	d.said.rule = rule(r)
	d.Headline, d.RiskWhy = d.said.question.plain, d.said.risk.plain
	for _, f := range d.said.facts {
		d.Facts = append(d.Facts, capital(f.plain))
	}
}

func (d *Description) askOne(i approval.Item) []factSaid {
	fields := d.Calls[0].Fields
	question, told := questionOf(i, fields, questionWidth)
	question.plain, question.dialog = question.plain+"?", question.dialog+"?"
	d.said.question = question
	d.said.rows = []row{{fields: without(fields, told)}}
	return factsOf(i, fields)
}

// askAlike asks about calls of one tool: what they have in common stands in the
// question or once below the rows, and the rows have what differs.
func (d *Description) askAlike(calls []approval.Item) []factSaid {
	equal := d.equal()
	first := calls[0]
	alike, told := questionOf(first, equal, questionWidth)
	d.said.question = say("%s %d times?", alike, len(calls))
	if words := doing(first); len(told) == 0 && first.About.Accepted && words != nil {
		d.said.question = say("%s %d times?", spoken(words), len(calls))
		last := len(words) - 1
		role := roleOfObject(first, d.Calls[0].Fields)
		switch {
		case last > 0 && words[last] == "file":
			d.said.question = say("%s %d files?", spoken(words[:last]), len(calls))
		case role == "host" && (last == 0 || implied[role][words[last]]):
			d.said.question = say("%s %d addresses?", spoken(words[:max(1, last)]), len(calls))
		case role == "command" && (last == 0 || implied[role][words[last]]):
			d.said.question = say("%s %d commands?", spoken(words[:max(1, last)]), len(calls))
		}
	}
	names := map[string]bool{}
	for _, f := range equal {
		names[f.key] = true
	}
	same := func(f Field) bool { return names[f.key] }
	facts := factsOf(first, d.Calls[0].Fields)
	common := true
	for n, i := range calls {
		common = common && slices.Equal(factsOf(i, d.Calls[n].Fields), facts)
	}
	for n, i := range calls {
		one := row{none: len(d.Calls[n].Fields) == 0, fields: slices.DeleteFunc(slices.Clone(d.Calls[n].Fields), same)}
		if !common {
			for _, f := range factsOf(i, d.Calls[n].Fields) {
				one.facts = append(one.facts, f.text)
			}
		}
		d.said.rows = append(d.said.rows, one)
	}
	d.said.same = without(equal, told)
	if !common {
		return nil
	}
	for n := range facts {
		for _, f := range []*string{&facts[n].text.plain, &facts[n].text.dialog} {
			if rest, ok := strings.CutPrefix(*f, "it is "); ok {
				*f = "all are " + rest
			}
		}
	}
	return facts
}

// roleOfObject is the role of what the question about a call is about.
func roleOfObject(i approval.Item, fields []Field) string {
	if all := objects(i, fields); len(all) > 0 {
		return i.About.Roles[fields[all[0].at[0]].key]
	}
	return ""
}

// askSeveral asks about calls of several tools, each with its own row.
func (d *Description) askSeveral(r approval.Request, calls []approval.Item) {
	d.said.question = say("Make these %d calls, of %d tools?", len(calls), len(r.Paths()))
	var high []phrase
	inside := allInside(calls, d.Calls)
	if inside {
		d.said.facts = append(d.said.facts, say("all paths are in your workspace."))
	}
	least := 2 * promptWidth
	if len(calls) < promptArgs {
		least = promptCall * promptWidth
	}
	for n, i := range calls {
		one := row{least: least}
		said := factsOf(i, d.Calls[n].Fields)
		risk := riskOf(i.Decision, &said)
		for _, f := range said {
			if !inside || f.about != "inside" {
				one.facts = append(one.facts, f.text)
			}
		}
		if risk.plain != "" {
			one.risk, high = risk, append(high, risk)
		}
		d.said.rows = append(d.said.rows, one)
	}
	switch {
	case len(high) > 0 && len(high) == len(calls) && !slices.ContainsFunc(high, func(risk phrase) bool { return risk != high[0] }):
		d.said.risk = say("All of it is %s.", each(high[0]))
		for n := range d.said.rows {
			d.said.rows[n].risk = phrase{}
		}
	case len(high) == 1:
		d.said.risk = say("1 of them is %s.", ours(strings.ToUpper(d.Risk)))
	case len(high) == len(calls):
		d.said.risk = say("All of them are HIGH.")
	case len(high) > 1:
		d.said.risk = say("%d of them are HIGH.", len(high))
	}
	for n, i := range calls { // beside what its row has to say
		one, call := &d.said.rows[n], d.Calls[n]
		taken := rowRest + len(strconv.Itoa(call.Number)) + columns(one.said(least/3))
		question, told := questionOf(i, call.Fields, min(rowWidth, least-taken))
		if !i.About.Accepted || doing(i) == nil {
			question.dialog = named(canon.Escape(i.Path())).dialog
		}
		one.begin, one.fields = question.dialog, without(call.Fields, told)
	}
}

// allInside reports whether calls name paths, all of which are known to lead into the
// workspace.
func allInside(items []approval.Item, calls []DescribedCall) bool {
	some := false
	for n, i := range items {
		if !i.About.Accepted {
			return false
		}
		said := map[string]bool{}
		for _, f := range i.About.Facts {
			outer, _, _ := strings.Cut(f.Param, ".")
			said[outer] = true
			if f.Role == "path" && (!f.Inside || f.Doubt != "") {
				return false
			}
		}
		for _, f := range calls[n].Fields {
			if i.About.Roles[f.key] == "path" {
				if !said[f.key] {
					return false
				}
				some = some || !f.home
			}
		}
	}
	return some
}

// each has what is said of one call be said of several.
func each(p phrase) phrase {
	of := strings.NewReplacer("first call to this ", "first call to each ", "first message to this ", "first message to each ", "first mail to this ", "first mail to each ")
	if p.plain != p.dialog {
		return p // it has words of others
	}
	return say("%s", ours(of.Replace(p.plain)))
}

// equal returns the arguments that all calls have with the same value.
func (d *Description) equal() []Field {
	type value struct {
		key, value string
		text       bool
	}
	count := map[value]int{}
	for _, c := range d.Calls {
		for _, f := range c.Fields {
			if f.Hidden == 0 && !f.Cut {
				count[value{f.key, f.value, f.Text}]++
			}
		}
	}
	var all []Field
	for _, f := range d.Calls[0].Fields {
		if f.Hidden == 0 && !f.Cut && count[value{f.key, f.value, f.Text}] == len(d.Calls) {
			all = append(all, f)
		}
	}
	return all
}

func without(fields []Field, told []int) []Field {
	var rest []Field
	for n, f := range fields {
		if !slices.Contains(told, n) {
			rest = append(rest, f)
		}
	}
	return rest
}

// riskOf names a risk from high on, with its reason; nothing of a lower one. A fact
// that is the reason is said here and not once more.
func riskOf(d profiles.Decision, said *[]factSaid) phrase {
	if d.Risk < profiles.High || d.Hinted { // of the server's own hint nobody learns anything
		return phrase{}
	}
	name := ours(strings.ToUpper(d.Risk.String()))
	var reasons []phrase
	byRule := false
	for _, reason := range d.Reasons {
		switch {
		case reason.Risk != d.Risk, strings.HasPrefix(reason.Detail, "passes on "): // a warning says that
			continue
		case reason.Kind == profiles.KindRule && reason.Disposition == profiles.Ask: // who asks is said, too
			byRule = true
			continue
		}
		about, text := riskWords(reason)
		if at := slices.IndexFunc(*said, func(f factSaid) bool { return f.about == about }); at >= 0 {
			text = (*said)[at].text
			*said = slices.Delete(slices.Clone(*said), at, at+1)
		}
		if !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	hint := say("its server calls it destructive")
	if others := slices.DeleteFunc(slices.Clone(reasons), func(p phrase) bool { return p == hint }); len(others) > 0 {
		reasons = others // that says more
	}
	switch {
	case len(reasons) > 1:
		return say("%s: %s; %s", name, reasons[0], reasons[1])
	case len(reasons) == 1:
		return say("%s: %s", name, reasons[0])
	case byRule:
		return say("%s by your rule", name)
	default:
		return say("%s", name)
	}
}

// guessedFrom matches the word that makes a tool dangerous.
var guessedFrom = regexp.MustCompile(`^"([a-z]+)" in the (name|title|description)$`)

// riskWords puts the reason for a risk into words, with the fact that it is about.
func riskWords(r profiles.Reason) (about string, text phrase) {
	if r.Kind == profiles.KindRule || r.Rule != "" {
		if r.Text != "" {
			return "", say("your rule says: %s", canon.Escape(r.Text))
		}
		return "", say("your rule %s says so", canon.Escape(r.Rule))
	}
	for _, known := range []struct{ end, about, text string }{
		{" names a recipient who is new here", "recipient", "it goes to somebody new"},
		{" names a host that is new here", "host", "it goes to a new host"},
		{" is outside the workspace", "outside", "it is outside your workspace"},
	} {
		if strings.HasSuffix(r.Detail, known.end) {
			return known.about, say("%s", ours(known.text))
		}
	}
	if m := guessedFrom.FindStringSubmatch(r.Detail); m != nil {
		return "", say("its %s says %s", ours(m[2]), phrase{canon.Literal(m[1]), theirs(m[1])})
	}
	switch r.Detail {
	case "destructiveHint":
		return "", say("its server calls it destructive")
	case "openWorldHint":
		return "", say("its server says that it reaches beyond this machine")
	case "nothing is known of the tool":
		return "", say("nothing is known of the tool")
	}
	_, what, ok := strings.Cut(r.Detail, " names ")
	if ok {
		return "secret", say("it names %s", words(canon.Escape(what)))
	}
	if _, what, ok := strings.Cut(r.Detail, ": "); ok {
		return "later", say("%s", words(canon.Escape(what)))
	}
	return "", say("%s", words(canon.Escape(r.Detail)))
}

// rule says in a sentence who wants the call to be asked about; empty if no more is
// to be said than that its risk is high.
func rule(r approval.Request) string {
	var asking []profiles.Reason
	for _, reason := range r.Decision.Reasons {
		if reason.Disposition == profiles.Ask {
			asking = append(asking, reason)
		}
	}
	slices.SortStableFunc(asking, func(a, b profiles.Reason) int { // what is certain says more
		return cmp.Compare(fmt.Sprint(a.Undecided), fmt.Sprint(b.Undecided))
	})
	if len(asking) == 0 {
		return ""
	}
	text := askedBy(r, asking[0])
	if text == "" {
		return ""
	}
	if more := len(asking) - 1; more > 0 {
		text += " (and " + canon.Counted(more, "more reason") + ")"
	}
	return text + "."
}

// asking names what asks for a reason, and says whether its rules are ours. A profile that
// extends one of ours stands for it.
func asking(r approval.Request, reason profiles.Reason) (who string, ofOurs bool) {
	who, mine := "Your policy", reason.Profile
	ofOurs = strings.HasPrefix(mine, profiles.BuiltinPrefix)
	if mine == "" || ofOurs && r.Decision.Profile != "" {
		mine = r.Decision.Profile // which extends it
	}
	if mine != "" {
		who = "Your profile " + profileName(mine)
	}
	return who, ofOurs
}

// askedBy puts the reason that asks into a sentence, without its full stop.
func askedBy(r approval.Request, reason profiles.Reason) string {
	who, ofOurs := asking(r, reason)
	switch reason.Kind {
	case profiles.KindAsklist:
		if reason.Pattern == "*" {
			return who + " asks before every call"
		}
		return who + " asks before every call of " + theirs(canon.Escape(reason.Pattern))
	case profiles.KindRule:
		text := who + " asks"
		switch {
		case reason.Text != "":
			text += ": " + theirs(canon.Escape(reason.Text))
		case strings.HasPrefix(reason.Rule, "rules/"):
			text += " before calls like this"
		case ofOurs && plainWords.MatchString(reason.Rule):
			text += " about " + cmp.Or(ruleSpoken[reason.Rule], reason.Rule)
		default:
			text += " by its rule " + theirs(canon.Escape(reason.Rule))
		}
		switch {
		case ofOurs && reason.Undecided && reason.Detail == "its effects differ":
			text += ", which this may be"
		case ofOurs && reason.Undecided && valuesDiffer.MatchString(reason.Detail):
			text += ", which a part of this may be"
		case reason.Undecided:
			text += ", since this could not be decided: " + say("%s", words(canon.Escape(reason.Detail))).dialog
		}
		return text
	case profiles.KindDefault:
		switch {
		case !strings.HasSuffix(reason.Detail, ": risk"):
			return who + " asks before every call that it does not name"
		case r.Decision.Risk >= profiles.High && !r.Decision.Hinted:
			return "" // the risk says it
		}
		for _, why := range r.Decision.Reasons {
			if why.Kind == profiles.KindRisk && (why.Risk == r.Decision.Risk) != r.Decision.Hinted {
				_, text := riskWords(why)
				return who + " asks: " + text.dialog
			}
		}
		return who + " asks before calls that may do harm"
	default:
		return who + " asks: " + say("%s", words(canon.Escape(reason.Detail))).dialog
	}
}

// valuesDiffer matches why a rule was not decided that holds for some of a call's values.
var valuesDiffer = regexp.MustCompile(`^its (paths|hosts|recipients|places) differ$`)

// ruleSpoken are the names of rules of the builtin templates that are no nouns.
var ruleSpoken = map[string]string{"runs later": "what runs later", "dangerous": "what is dangerous"}

// profileName writes the name of a profile in a sentence.
func profileName(name string) string {
	if at := strings.IndexByte(name, '@'); strings.HasPrefix(name, "builtin:") && at > 0 && plainName.MatchString(name[len("builtin:"):at]) {
		return name[len("builtin:"):at]
	}
	return string(called(canon.Escape(name)))
}

// scriptLine says what the model's script has done and has still in it; empty if there
// is nothing to say.
func (d Description) scriptLine(width int) string {
	lead := "The model's script, unchecked: "
	done := ""
	if d.Done > 0 {
		done = fmt.Sprintf("%s done", canon.Counted(d.Done, "call"))
	}
	switch {
	case len(d.Model.said) > 0 && done != "":
		return listed(lead+done+"; it has ", dialogs(d.Model.said), ", ", "tool", width) + "."
	case len(d.Model.said) > 0:
		return listed(lead+"it has ", dialogs(d.Model.said), ", ", "tool", width) + "."
	case done != "":
		return "The model's script: " + done + "."
	}
	return ""
}
