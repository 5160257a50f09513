package wording

import (
	"cmp"
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
)

// An object is something that a question is about: a value, or two that are one name
// together, and the words before it.
type object struct {
	before string
	at     []int // fields; two of them are an owner and what they own
	here   bool  // it is the workspace: in words of ours
}

// objects returns what the question about a call is about, the most telling first.
func objects(i approval.Item, fields []Field) []object {
	a := about{i, fields, doing(i)}
	if !i.About.Accepted || a.words == nil {
		return nil // the question names the tool
	}
	if cut := a.of("command"); len(cut) > 0 && (a.words[0] != "navigate" || len(a.of("host")) == 0) {
		return []object{{at: cut[:1]}}
	}
	if to, much := a.of("recipient"), a.of("amount"); len(to) > 0 && len(much) > 0 && pays[verb(i)] {
		return []object{{at: much[:1]}, {before: "to ", at: to[:1]}}
	}
	if to := a.of("recipient"); len(to) > 0 && sends[verb(i)] && !slices.Contains(a.words, "to") {
		return []object{{before: "to ", at: to[:1]}}
	}
	if paths := a.paths(); len(paths) == 1 && paths[0].here {
		return append(a.places(), paths...)
	} else if len(paths) > 0 {
		return paths
	}
	places := a.places()
	if hosts := a.of("host"); len(hosts) > 0 && (len(places) == 0 || a.goes()) && !a.makes() {
		return []object{{before: a.toward("navigate", "go", "connect"), at: hosts[:1]}}
	}
	if to := a.of("recipient"); len(to) > 0 && len(places) < 2 {
		before := cmp.Or(a.toward("assign"), "for ")
		if _, noun := nounOf(fields[to[0]].key); containers[noun] > 0 || slices.Contains(a.words, "to") {
			before = "in "
		}
		return append(places, object{before: before, at: to[:1]})
	}
	return places
}

// goes reports whether a call opens the address that it names.
func (a about) goes() bool {
	return slices.Contains([]string{"navigate", "go", "open", "visit", "fetch", "read", "get", "scrape", "crawl"}, a.words[0])
}

// makes reports whether a call makes or changes something of which an address is only
// a part.
func (a about) makes() bool {
	return len(a.words) > 1 && slices.Contains([]string{"create", "update", "add", "edit", "set", "buy"}, a.words[0]) &&
		!slices.Contains([]string{"webhook", "hook", "page", "site", "link", "bookmark"}, a.words[len(a.words)-1])
}

// toward returns "to " after any of the verbs.
func (a about) toward(verbs ...string) string {
	if slices.Contains(verbs, a.words[0]) {
		return "to "
	}
	return ""
}

// about is a call of which a question is made.
type about struct {
	item   approval.Item
	fields []Field
	words  []string // what it does
}

// of returns the fields that have a role and a value.
func (a about) of(role string) (all []int) {
	for n, f := range a.fields {
		if a.item.About.Roles[f.key] == role && !slices.Contains([]string{"null", "[]", `""`}, f.value) {
			all = append(all, n)
		}
	}
	return all
}

// sends are the verbs whose recipient somebody sends something to.
var sends = wordsOf("send post reply forward share publish notify invite message mail submit text draft pay transfer")

// saves are the verbs whose path says where something new is put.
var saves = wordsOf("download save export take generate")

// destinations are names of paths to which something is moved.
var destinations = []string{"destination", "dest", "to", "target", "new_path", "newPath"}

// paths returns the paths that a question is about, and the workspace they are in if an
// argument names it.
func (a about) paths() []object {
	all := a.of("path")
	home := slices.IndexFunc(all, func(n int) bool { return a.fields[n].home })
	switch {
	case len(all) == 0:
		return nil
	case home >= 0 && len(all) == 1:
		return []object{{before: "in ", at: all, here: true}}
	case home >= 0:
		here := object{before: "in ", at: []int{all[home]}, here: true}
		return []object{{at: []int{slices.Delete(all, home, home+1)[0]}}, here}
	case len(all) == 1 && a.worksIn(a.fields[all[0]].key):
		return append(a.places(), object{before: "in ", at: all})
	case len(all) == 2 && slices.Contains(destinations, a.fields[all[0]].key):
		slices.Reverse(all)
	case len(all) != 2 || !slices.Contains(destinations, a.fields[all[1]].key):
		if last := a.words[len(a.words)-1]; len(a.words) > 1 && !implied["path"][last] && saves[a.words[0]] {
			return []object{{before: "to ", at: all[:1]}}
		}
		return []object{{at: all[:1]}}
	}
	return []object{{at: all[:1]}, {before: "to ", at: all[1:]}}
}

// worksIn reports whether the path of an argument is a folder in which something is
// done to what other arguments name.
func (a about) worksIn(key string) bool {
	for _, word := range nameWords(strings.ToLower(strings.Join(nameWords(key), " "))) {
		if slices.Contains([]string{"repo", "repository", "cwd", "working", "root"}, word) {
			return true
		}
	}
	return key == "path" && inRepository[a.words[0]] || len(a.words) > 1 && a.words[1] == "block"
}

// inRepository are the verbs of which a path says in which repository.
var inRepository = wordsOf("commit push pull merge rebase checkout reset tag change")

// containers are the kinds of places that hold others, the narrowest first.
var containers = func() map[string]int {
	rank := map[string]int{}
	for n, word := range strings.Fields(`page tab thread channel chat conversation collection table index bucket list board dataset
		database db schema namespace base calendar space project team workspace account org organization`) {
		rank[word] = n + 1
	}
	return rank
}()

// actsOn are the arguments that are the object of a verb, the most telling first.
var actsOn = func() map[string][]string {
	all := map[string][]string{}
	for names, verbs := range map[string]string{
		"element uid ref selector":  "click hover fill tap drag press select type",
		"branch target ref":         "push checkout switch merge rebase",
		"name resource deployment":  "restart scale rollout",
		"pid process session query": "kill terminate",
	} {
		for verb := range strings.FieldsSeq(verbs) {
			all[verb] = strings.Fields(names)
		}
	}
	return all
}()

// places returns the places that a question is about: the thing itself, what it is made
// from, and what it is in.
func (a about) places() (all []object) {
	taken := map[int]bool{}
	take := func(o object) {
		for _, n := range o.at {
			taken[n] = true
		}
		all = append(all, o)
	}
	of := slices.DeleteFunc(a.of("place"), func(n int) bool { // a mode is no place
		f := a.fields[n]
		return f.Hidden > 0 || f.value == "true" || f.value == "false" || strings.HasPrefix(f.value, "{")
	})
	if n := a.thing(of); n >= 0 {
		take(object{at: []int{n}})
	} else if n := a.acted(of); n >= 0 {
		o := object{at: []int{n}}
		switch {
		case a.words[0] == "type" || a.words[0] == "select":
			o.before = "in "
		case len(a.words) > 1 && a.words[0] == "push":
			o.before = "to "
		}
		take(o)
	}
	byNoun := func(nouns ...string) int {
		return slices.IndexFunc(of, func(n int) bool {
			_, noun := nounOf(a.fields[n].key)
			return !taken[n] && slices.Contains(nouns, noun)
		})
	}
	if n := byNoun("from branch", "source branch"); n >= 0 && len(all) > 0 {
		take(object{before: "from ", at: []int{of[n]}})
	}
	if n := byNoun("remote"); n >= 0 && len(all) > 0 && a.words[0] == "push" {
		take(object{before: "to ", at: []int{of[n]}})
	}
	if owner, repo := byNoun("owner"), byNoun("repo", "repository"); repo >= 0 {
		o := object{before: "in ", at: []int{of[repo]}}
		if owner >= 0 {
			o.at = []int{of[owner], of[repo]}
		}
		take(o)
		return all
	}
	within := slices.DeleteFunc(slices.Clone(of), func(n int) bool {
		_, noun := nounOf(a.fields[n].key)
		return taken[n] || containers[noun] == 0
	})
	slices.SortStableFunc(within, func(x, y int) int {
		_, one := nounOf(a.fields[x].key)
		_, other := nounOf(a.fields[y].key)
		return containers[one] - containers[other]
	})
	for _, n := range within {
		if len(all) < 2 {
			take(object{before: a.inside(n, len(all) > 0 && strings.HasPrefix(all[len(all)-1].before, "in ")), at: []int{n}})
		}
	}
	if len(all) == 0 { // what else an id names
		for _, n := range of {
			isID, noun := nounOf(a.fields[n].key)
			switch {
			case !isID || noun == "" || slices.Contains([]string{"new", "old", "parent", "target", "source", "connection"}, noun):
				continue
			case slices.Contains([]string{"assignee", "user", "member", "reviewer", "customer"}, noun):
				return []object{{before: "for ", at: []int{n}}}
			case len(a.words) == 2 && slices.Contains([]string{"delete", "modify", "update", "archive", "read", "get", "move"}, a.words[0]):
				return []object{{at: []int{n}}} // delete_email of a message
			}
			return []object{{before: a.inside(n, false), at: []int{n}}}
		}
	}
	return all
}

// inside returns the words before a place that is named by its kind.
func (a about) inside(n int, more bool) string {
	_, noun := nounOf(a.fields[n].key)
	switch {
	case more:
		return "of " + noun + " "
	case noun == "page" || noun == "tab":
		return "on " + noun + " "
	case noun == "channel" && strings.HasPrefix(a.fields[n].text, "#"):
		return "in "
	}
	return "in " + noun + " "
}

// thing returns the field that names what a tool says it does something to: the
// issue_number of update_issue; -1 if there is none.
func (a about) thing(places []int) int {
	if len(a.words) < 2 {
		return -1
	}
	what := " " + strings.Join(a.words[1:], " ")
	for n, f := range a.fields {
		role := a.item.About.Roles[f.key]
		if role != "place" && role != "plain" || f.Hidden > 0 || strings.IndexAny(f.value, "[{tfn") == 0 {
			continue
		}
		isID, noun := nounOf(f.key)
		switch {
		case noun == "pull" && isID:
			noun = "pull request"
		case noun == "path":
			noun = "file"
		}
		if noun != "" && strings.HasSuffix(what, " "+noun) && (isID || role == "place") {
			return n
		}
	}
	if slices.Contains([]string{"create", "add", "insert", "list", "search", "post"}, a.words[0]) {
		return -1
	}
	at := slices.IndexFunc(places, func(n int) bool { return a.fields[n].key == "id" })
	if at < 0 {
		return -1
	}
	return places[at]
}

// acted returns the field that names what a verb acts on; -1 if there is none.
func (a about) acted(places []int) int {
	for _, name := range actsOn[a.words[0]] {
		at := slices.IndexFunc(places, func(n int) bool {
			_, noun := nounOf(a.fields[n].key)
			return noun == name || a.fields[n].key == name
		})
		if at >= 0 {
			return places[at]
		}
	}
	return -1
}

// nounOf returns what the name of an argument says that its value names: the issue of
// issue_number, and whether that is by a number or another sign.
func nounOf(key string) (isID bool, noun string) {
	words := nameWords(key)
	for n := range words {
		words[n] = strings.ToLower(words[n])
	}
	for last := len(words) - 1; last >= 0 && slices.Contains([]string{"id", "ids", "key", "number", "slug", "name", "gid", "iid", "or"}, words[last]); last-- {
		isID, words = true, words[:last]
	}
	return isID, strings.Join(words, " ")
}

// shown writes an object in width columns, and reports whether it is all there.
func (a about) shown(o object, width int) (text phrase, whole bool) {
	if o.here {
		return say("your workspace"), true
	}
	fields := make([]Field, len(o.at))
	for n, at := range o.at {
		fields[n] = a.fields[at]
	}
	f := fields[0]
	if len(fields) == 2 {
		if whose, what := fields[0].plainName(), fields[1].plainName(); whose != "" && what != "" {
			f = textField("", whose+"/"+what, []byte(canon.Literal(whose+"/"+what)))
		} else {
			one, wholeOne := a.shown(object{at: o.at[:1]}, width/2)
			two, wholeTwo := a.shown(object{at: o.at[1:]}, width/2)
			return say("%s/%s", one, two), wholeOne && wholeTwo
		}
	}
	value, whole := f.within(width)
	return phrase{f.quoted(width), value}, whole
}

// plainName returns the value if it is the name of an owner or of something they own,
// and reads as nothing else.
func (f Field) plainName() string {
	if !f.Text || f.Hidden > 0 || f.Cut || f.text == "" || strings.Trim(f.text, plainLetters+".") != "" {
		return ""
	}
	return f.text
}
