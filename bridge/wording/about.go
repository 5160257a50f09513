package wording

import (
	"path/filepath"
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
var toolVerbs = wordsOf(`add answer append apply archive assign buy cancel change checkout clear click clone close comment commit complete connect copy crawl create delete deploy
	describe diff disable download draft drag drop duplicate edit enable evaluate exec execute export extract fetch fill find force fork generate get hover import insert install invoke
	kill launch list load log map mark merge modify move navigate open patch pause pay post press publish pull push put query read
	rebase refund remove rename replace reply reset resize respond restart restore retrieve revert rotate revoke run save scale scrape search select send set
	share show start stop submit subscribe switch sync tag take terminate transfer trigger type unarchive uninstall unlock unsubscribe update upload upsert
	visit wait write
	aggregate count disconnect emulate explain toggle`)

// pays are the verbs whose object is an amount.
var pays = wordsOf("pay refund transfer send")

// programs are words with which some servers begin the names of all of their tools.
var programs = wordsOf("browser git github gitlab slack notion api db sql redis google aws kubectl hubspot asana puppeteer netlify atlassian")

// implied are the last words of tools' names that a value of the role says anyway:
// write_file is "Write PATH".
var implied = map[string]map[string]bool{
	"path":    wordsOf("file files path text media"),
	"command": wordsOf("command code script sql shell query"),
	"host":    wordsOf("url page website site readable markdown html json txt"),
}

// effectVerbs begin the question about a tool whose name has no verb. Whatever else a
// tool may do, the question names it.
var effectVerbs = map[string]string{"read": "read", "write": "change", "execute": "run"}

func wordsOf(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// doing returns what a tool does in words, the verb first; none if neither its name nor
// its effects say so.
func doing(i approval.Item) []string {
	words := nameWords(strings.ToLower(strings.Join(nameWords(i.Tool), " ")))
	server := nameWords(strings.ToLower(strings.Join(nameWords(i.Server), " ")))
	for len(words) > 1 && !toolVerbs[words[0]] && (programs[words[0]] || slices.Contains(server, words[0])) {
		words = words[1:]
	}
	if len(words) == 0 || len(words) > 6 || len(strings.Join(words, " ")) > 48 {
		return nil
	}
	last := len(words) - 1
	switch {
	case words[0] == "new":
		return append([]string{"open"}, words[1:]...)
	case toolVerbs[words[0]] && !strings.HasPrefix(strings.Join(words, " "), "pull request "):
		return words
	case last > 0 && toolVerbs[words[last]]: // database_delete
		return append([]string{words[last]}, words[:last]...)
	case len(i.About.Effects) != 1:
		return nil
	}
	switch verb := effectVerbs[i.About.Effects[0]]; {
	case verb == "run", verb == "read" && last > 2:
		return []string{verb}
	case verb != "" && last <= 2: // a noun: git_branch
		return append([]string{verb}, words...)
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
	objects := objects(i, fields)
	if len(objects) == 0 {
		if i.Tool == "browser_close" || i.Tool == "browser_resize" {
			words = append(slices.Clone(words), "browser")
		}
		return say("%s with %s", spoken(words), named(canon.Escape(i.Server))), nil
	}
	role := i.About.Roles[fields[objects[0].at[0]].key]
	for len(words) > 1 && !objects[0].here && implied[role][words[len(words)-1]] {
		words = words[:len(words)-1]
	}
	text, a := say("%s", spoken(words)), about{i, fields, words}
	for n, o := range objects {
		shown, whole := a.shown(o, width)
		switch {
		case whole:
			told = append(told, o.at...)
		case n > 0: // there is room for it below
			continue
		default:
			shown = say("this %s", ours(roleNouns[role]))
		}
		text = say("%s %s%s", text, ours(o.before), shown)
		width -= columns(shown.dialog)
	}
	return text, told
}

// spoken writes what a tool does as a question begins.
func spoken(words []string) ours {
	text := strings.Join(words, " ")
	if rest, ok := strings.CutPrefix(text, "checkout"); ok {
		text = "check out" + rest
	}
	return ours(capital(text))
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
	objects := objects(i, fields)
	var paths []approval.Fact
	for _, f := range i.About.Facts {
		outer, _, _ := strings.Cut(f.Param, ".")
		at := slices.IndexFunc(fields, func(field Field) bool { return field.key == outer })
		if f.Role == "host" && at < 0 {
			addPage(f, add)
			continue
		}
		if told(fields, f) {
			f.Leads = ""
		}
		it := say("it")
		if !slices.ContainsFunc(objects, func(o object) bool { return slices.Contains(o.at, at) }) {
			it = say("its %s", argument(f.Param))
		}
		if f.Doubt != "" {
			add("doubt", say("programs may take %s for another %s: %s", it, ours(roleNouns[f.Role]), words(canon.Escape(f.Doubt))))
		}
		switch f.Role {
		case "path":
			switch {
			case at >= 0 && fields[at].home:
			case f.Inside && f.Leads == "" && slices.ContainsFunc(objects, func(o object) bool { return o.here }): // the question says it
			case it.plain == "it":
				paths = append(paths, f)
			case !slices.ContainsFunc(fields, func(field Field) bool { return field.key == outer }): // the server was told it earlier
				within := "in"
				if !f.Inside {
					within = "outside"
				}
				add(within, say("it works in %s, %s your workspace", canon.Escape(f.Leads), ours(within)))
			case !f.Inside && f.Leads != "":
				add("outside", say("%s is %s, outside your workspace", it, leads(f.Leads)))
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
			if f.New {
				add("recipient", firstTo(i, outer))
			}
		}
	}
	return append(wherePaths(paths), all...)
}

// addPage says which page of a browser is open, on which a call acts.
func addPage(f approval.Fact, add func(about string, p phrase)) {
	switch {
	case f.Doubt != "":
		add("host", say("%s", words(canon.Escape(f.Doubt))))
	case f.New:
		add("host", say("the page is at %s, first call to this host", canon.Escape(f.Leads)))
	default:
		add("page", say("the page is at %s", canon.Escape(f.Leads)))
	}
}

// firstTo says that nothing went to whom or what an argument names before.
func firstTo(i approval.Item, key string) phrase {
	_, noun := nounOf(key)
	switch {
	case i.About.Roles[key] == "place" && containers[noun] > 0:
		return say("first call to this %s", ours(noun))
	case i.About.Roles[key] == "place":
		return say("first call to this place")
	case slices.ContainsFunc(doing(i), func(w string) bool { return w == "mail" || w == "email" }):
		return say("first mail to this address")
	}
	return say("first message to this recipient")
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
		var all []factSaid
		for _, f := range outside {
			text := say("its %s is outside your workspace", argument(f.Param))
			if f.Leads != "" {
				text = say("its %s is %s, outside your workspace", argument(f.Param), leads(f.Leads))
			}
			all = append(all, factSaid{"outside", text})
		}
		return all
	}
	switch {
	case len(paths) == 1 && paths[0].Leads != "" && paths[0].Within != "":
		return []factSaid{{"elsewhere", say("it is %s, %s", leads(filepath.ToSlash(paths[0].Within)), within)}}
	case len(paths) == 1 && paths[0].Leads != "":
		return []factSaid{{about, say("it is %s, %s", leads(paths[0].Leads), within)}}
	case len(paths) == 1:
		return []factSaid{{about, say("it is %s", within)}}
	case len(paths) == 2:
		return []factSaid{{about, say("both are %s", within)}}
	default:
		return []factSaid{{about, say("all of it is %s", within)}}
	}
}

// leads makes the path to which another leads an argument of say: it is whole if it can be.
func leads(path string) phrase {
	shown := canon.Escape(path)
	return phrase{shown, theirsWithin(shown, promptLong*promptWidth)}
}

// told reports whether the argument at a fact's name says itself where it leads, or
// may not be shown.
func told(fields []Field, fact approval.Fact) bool {
	outer, _, _ := strings.Cut(fact.Param, ".")
	return slices.ContainsFunc(fields, func(f Field) bool {
		return f.key == outer && (f.Hidden > 0 || f.here != "" || f.home || strings.Contains(f.json(), canon.Literal(canon.Escape(fact.Leads))))
	})
}

// capital writes the first letter of a sentence of ours as a capital.
func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
