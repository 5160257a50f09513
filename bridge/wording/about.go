package wording

import (
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
)

// The roles that say whom or what a call is about, the most telling first. Arguments
// that have them stand before all others.
var tellingRoles = []string{"recipient", "path", "host", "command", "amount", "place"}

// guessedNames are names of arguments that usually have a role, the more telling
// first.
var guessedNames = map[string]string{
	"recipient": "to recipient recipients cc bcc email address phone user assignee",
	"path":      "path paths file files filename filepath source src destination dest target folder dir directory uri",
	"host":      "url urls href host hostname domain endpoint server link",
	"command":   "command cmd script code sql expression function args",
	"amount":    "amount quantity count total price cents",
	"place":     "owner repo repository project channel database db table bucket workspace branch id",
}

// A guess is the role of an argument by its name, and how telling the name is.
type guess struct {
	role string
	at   int
}

// guessedRoles are the roles of arguments of which nothing is known but their names.
// They only put arguments in order.
var guessedRoles = func() map[string]guess {
	roles := map[string]guess{}
	for role, names := range guessedNames {
		for at, name := range strings.Fields(names) {
			roles[name] = guess{role, at}
		}
	}
	return roles
}()

// guessed returns what the name of an argument says of it.
func guessed(key string) guess {
	words := nameWords(key)
	if len(words) == 0 {
		return guess{}
	}
	if g, ok := guessedRoles[strings.ToLower(strings.Join(words, ""))]; ok {
		return g
	}
	return guessedRoles[strings.ToLower(words[len(words)-1])]
}

// roleOf returns the role of an argument; guessed from its name if nothing is known.
func roleOf(a approval.About, key string) string {
	if role, ok := a.Roles[key]; ok {
		return role
	}
	if a.Accepted {
		return ""
	}
	return guessed(key).role
}

// rankOf orders arguments by what they say.
func rankOf(a approval.About, key string) int {
	if at := slices.Index(tellingRoles, roleOf(a, key)); at >= 0 {
		return at
	}
	return len(tellingRoles)
}

// toolVerbs are the words of tools' names that say what is done, as a question begins.
var toolVerbs = wordsOf(`add answer append apply archive assign cancel click close comment commit copy create delete deploy
	disable download drag drop edit enable evaluate exec execute extract fetch fill fork get hover insert install invoke
	kill launch list load log merge modify move navigate open patch pay post press publish pull push put query read
	refund remove rename replace reply reset resize restart restore revert revoke run save scrape search select send set
	share start stop submit subscribe switch sync tag take terminate transfer trigger type unlock update upload upsert
	visit wait write`)

// pays are the verbs whose object is an amount.
var pays = wordsOf("pay refund transfer send")

// programs are words with which some servers begin the names of all of their tools.
var programs = wordsOf("browser git github gitlab slack notion api db sql redis google aws")

// implied are the last words of tools' names that a value of the role says anyway:
// write_file is "Write PATH".
var implied = map[string]map[string]bool{
	"path":    wordsOf("file files path text media"),
	"command": wordsOf("command code script sql shell query"),
	"host":    wordsOf("url page website site"),
}

// effectVerbs begin the question about a tool whose name has no verb.
var effectVerbs = map[string]string{"read": "read", "write": "change", "delete": "delete", "execute": "run", "send": "send", "spend": "pay"}

func wordsOf(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// doing returns what a tool does in words, the verb first; none if its name does not
// say so and its effects are several.
func doing(i approval.Item) []string {
	words := nameWords(strings.ToLower(strings.Join(nameWords(i.Tool), " ")))
	server := nameWords(strings.ToLower(strings.Join(nameWords(i.Server), " ")))
	for len(words) > 1 && (programs[words[0]] || slices.Contains(server, words[0])) {
		words = words[1:]
	}
	switch {
	case len(words) > 0 && len(words) <= 4 && toolVerbs[words[0]] && len(strings.Join(words, " ")) <= 40:
		return words
	case len(i.About.Effects) == 1 && effectVerbs[i.About.Effects[0]] != "":
		return []string{effectVerbs[i.About.Effects[0]]}
	}
	return nil
}

// verb returns the first word of what a call does, or "" if there are none.
func verb(i approval.Item) string {
	if words := doing(i); len(words) > 0 {
		return words[0]
	}
	return ""
}

// objects returns the fields that a question is about, and the words before each.
func objects(i approval.Item, fields []Field) (about []int, before []string) {
	of := func(role string) (all []int) {
		for n, f := range fields {
			if i.About.Roles[f.key] == role && f.value != "null" {
				all = append(all, n)
			}
		}
		return all
	}
	paths := of("path")
	if to, much := of("recipient"), of("amount"); len(to) > 0 && len(much) > 0 && pays[verb(i)] {
		return []int{much[0], to[0]}, []string{"", "to "}
	}
	for _, one := range []struct{ role, word string }{{"command", ""}, {"recipient", "to "}, {"path", ""}, {"host", ""}, {"place", "in "}} {
		found := of(one.role)
		switch {
		case len(found) == 0:
		case one.role == "path" && len(paths) == 2:
			if slices.Contains([]string{"destination", "dest", "to", "target", "new_path", "newPath"}, fields[paths[0]].key) {
				slices.Reverse(paths)
			}
			return paths, []string{"", "to "}
		case one.role == "place":
			return found[:min(len(found), 2)], []string{one.word, "/"}
		case one.role == "host" && slices.Contains([]string{"navigate", "go", "connect"}, verb(i)):
			return found[:1], []string{"to "}
		default:
			return found[:1], []string{one.word}
		}
	}
	return nil, nil
}

// questionOf returns the question whether to make a call, without its mark, and which
// fields it has whole. It is made of what the call means where that is known.
func questionOf(i approval.Item, fields []Field, width int) (text phrase, told []int) {
	words := doing(i)
	if !i.About.Accepted || words == nil {
		if i.Server == "" {
			return say("Call %s", named(canon.Escape(i.Tool))), nil
		}
		return say("Call tool %s of server %s", named(canon.Escape(i.Tool)), named(canon.Escape(i.Server))), nil
	}
	objects, before := objects(i, fields)
	if len(objects) == 0 {
		return say("%s with %s", ours(capital(strings.Join(words, " "))), named(canon.Escape(i.Server))), nil
	}
	role := i.About.Roles[fields[objects[0]].key]
	for len(words) > 1 && implied[role][words[len(words)-1]] {
		words = words[:len(words)-1]
	}
	text = say("%s ", ours(capital(strings.Join(words, " "))))
	for n, at := range objects {
		if n > 0 && before[n] != "/" {
			text = say("%s ", text)
		}
		f := fields[at]
		value, whole := f.within(width / len(objects))
		shown := phrase{f.quoted(width / len(objects)), value}
		if whole {
			told = append(told, at)
		} else { // all that there is room for stands below
			shown = say("this %s", ours(roleNouns[i.About.Roles[f.key]]))
		}
		text = say("%s%s%s", text, ours(before[n]), shown)
	}
	return text, told
}

// roleNouns name a value that is too long for a question.
var roleNouns = map[string]string{"recipient": "recipient", "path": "path", "host": "address", "command": "command", "amount": "amount", "place": "place"}

// A factSaid is a sentence about a fact, with what it is about: a risk for the same
// reason is not said once more.
type factSaid struct {
	about string
	text  phrase // without the capital and the full stop
}

// factsOf says what is known of where the values of a call lead: of those that the
// question is about as "it", and of others by their names.
func factsOf(i approval.Item, fields []Field) []factSaid {
	var all []factSaid
	add := func(about string, p phrase) {
		if !slices.ContainsFunc(all, func(f factSaid) bool { return f.text == p }) {
			all = append(all, factSaid{about, p})
		}
	}
	objects, _ := objects(i, fields)
	var paths []approval.Fact
	for _, f := range i.About.Facts {
		if told(fields, f) {
			f.Leads = ""
		}
		outer, _, _ := strings.Cut(f.Param, ".")
		it := say("it")
		if !slices.ContainsFunc(objects, func(n int) bool { return fields[n].key == outer }) {
			it = say("its %s", argument(f.Param))
		}
		if f.Doubt != "" {
			add("doubt", say("programs may take %s for another %s: %s", it, ours(roleNouns[f.Role]), words(canon.Escape(f.Doubt))))
		}
		switch f.Role {
		case "path":
			switch {
			case it.plain == "it":
				paths = append(paths, f)
			case !slices.ContainsFunc(fields, func(field Field) bool { return field.key == outer }): // the server was told it earlier
				within := "in"
				if !f.Inside {
					within = "outside"
				}
				add(within, say("it works in %s, %s your workspace", canon.Escape(f.Leads), ours(within)))
			case !f.Inside && f.Leads != "":
				add("outside", say("%s is %s, outside your workspace", it, canon.Escape(f.Leads)))
			case !f.Inside:
				add("outside", say("%s is outside your workspace", it))
			}
			if f.Secret != "" {
				add("secret", say("%s names %s", it, words(canon.Escape(f.Secret))))
			}
			if f.RunsLater != "" {
				add("later", say("%s", words(canon.Escape(f.RunsLater))))
			}
		case "host":
			if f.New {
				add("host", say("first call to this host"))
			}
		case "recipient":
			if f.New && slices.ContainsFunc(doing(i), func(w string) bool { return w == "mail" || w == "email" }) {
				add("recipient", say("first mail to this address"))
			} else if f.New {
				add("recipient", say("first message to this recipient"))
			}
		}
	}
	return append(wherePaths(paths), all...)
}

// wherePaths says where the paths that a question is about lead.
func wherePaths(paths []approval.Fact) []factSaid {
	outside := slices.DeleteFunc(slices.Clone(paths), func(f approval.Fact) bool { return f.Inside })
	within, about := ours("in your workspace"), "inside"
	switch {
	case len(paths) == 0:
		return nil
	case len(outside) == len(paths):
		within, about = "outside your workspace", "outside"
	case len(outside) > 0:
		return []factSaid{{"outside", say("its %s is outside your workspace", argument(outside[0].Param))}}
	}
	switch {
	case len(paths) == 1 && paths[0].Leads != "":
		return []factSaid{{about, say("it is %s, %s", canon.Escape(paths[0].Leads), within)}}
	case len(paths) == 1:
		return []factSaid{{about, say("it is %s", within)}}
	case len(paths) == 2:
		return []factSaid{{about, say("both are %s", within)}}
	default:
		return []factSaid{{about, say("all of it is %s", within)}}
	}
}

// told reports whether the argument at a fact's name says itself where it leads, or
// may not be shown.
func told(fields []Field, fact approval.Fact) bool {
	outer, _, _ := strings.Cut(fact.Param, ".")
	return slices.ContainsFunc(fields, func(f Field) bool {
		return f.key == outer && (f.Hidden > 0 || strings.Contains(f.json(), canon.Literal(canon.Escape(fact.Leads))))
	})
}

// capital writes the first letter of a sentence of ours as a capital.
func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
