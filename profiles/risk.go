package profiles

import "strings"

// dangerWords make a tool high wherever they stand in its name, title or
// description, also with -s and -ing (deletes, deleting).
var dangerWords = wordSet(`
	delete deletes deleting
	remove removes removing
	drop drops dropping
	write writes writing
	exec execs execute executes executing
	command commands
	shell shells
	send sends sending
	pay pays paying`)

// readWords make a tool low when they stand in its name and nothing else
// speaks.
var readWords = wordSet(`get list read search find describe query count show view status`)

// actWords take that away again when they stand in front of the reading word
// (set_status, create_view) or behind "and" or "or" (get_or_create): then the
// tool is one of which nothing is known. Behind a reading word they are nouns
// (get_commit, list_orders).
var actWords = wordSet(`
	add append apply approve archive assign book buy call cancel change clear click close commit copy create
	deploy destroy disable edit enable erase fill generate grant import insert install invoke kill lock make merge
	modify move open order overwrite patch post publish purge push put rename replace reply reset restart revoke
	rotate run save sell set start stop submit subscribe terminate toggle transfer trigger truncate type uninstall
	unlock unset update upload upsert wipe`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// maxWord is longer than any word we know; longer ones are skipped.
const maxWord = 16

// eachWord calls f with each word of text in lower case until f returns
// false. Words end at anything but letters and digits, between letters and
// digits, and at the humps of camelCase (HTTPSend is http, send). The slice is
// only valid during the call.
func eachWord(text string, f func(word []byte) bool) {
	const (
		other = iota
		lower
		upper
		digit
	)
	class := func(c byte) int {
		switch {
		case 'a' <= c && c <= 'z', c >= 0x80: // beyond ASCII all are letters
			return lower
		case 'A' <= c && c <= 'Z':
			return upper
		case '0' <= c && c <= '9':
			return digit
		}
		return other
	}
	var buf [maxWord]byte
	n, last := 0, other
	for i := 0; i < len(text); i++ {
		c := text[i]
		k := class(c)
		hump := k == upper && (last == lower || last == upper && i+1 < len(text) && class(text[i+1]) == lower)
		if n > 0 && (k == other || hump || (k == digit) != (last == digit)) {
			if n < maxWord && !f(buf[:n]) {
				return
			}
			n = 0
		}
		if k != other && n < maxWord {
			if buf[n] = c; k == upper {
				buf[n] |= 0x20
			}
			n++
		}
		last = k
	}
	if n > 0 && n < maxWord {
		f(buf[:n])
	}
}

// firstDanger returns the first danger word of text.
func firstDanger(text string) (found string) {
	eachWord(text, func(w []byte) bool {
		if dangerWords[string(w)] {
			found = string(w)
		}
		return found == ""
	})
	return found
}

// readVerb returns the reading word that says what the tool of this name does.
func readVerb(name string) (verb string) {
	joined := false // the word before was "and" or "or"
	eachWord(name, func(w []byte) bool {
		s := string(w)
		if actWords[s] && (verb == "" || joined) {
			verb = ""
			return false
		}
		if readWords[s] && verb == "" {
			verb = s
		}
		joined = s == "and" || s == "or" || s == "then"
		return true
	})
	return verb
}

// toolRisk is what the tool itself, without any rule, says of its risk:
// spoken, with the reasons, by annotations and dangerous words, and zero if
// there are none; quiet is what holds where no rule speaks, beneath spoken.
// An upstream can raise the two and, unless it is trusted, lower neither.
func toolRisk(c *Call, unknown Risk) (spoken Risk, why []Reason, quiet Reason) {
	if c.Server == "" {
		return 0, nil, Reason{Kind: KindRisk, Risk: Low, Detail: "discovery function of the bridge"}
	}
	say := func(r Risk, detail string) {
		spoken = max(spoken, r)
		why = append(why, Reason{Kind: KindRisk, Risk: r, Detail: detail})
	}
	if h := c.Annotations.Destructive; h != nil && *h {
		say(High, "destructiveHint")
	}
	if h := c.Annotations.OpenWorld; h != nil && *h {
		say(Medium, "openWorldHint")
	}
	if w := firstDanger(c.Tool); w != "" {
		say(High, `"`+w+`" in the name`)
	} else if w := firstDanger(c.Title); w != "" {
		say(High, `"`+w+`" in the title`)
	} else if w := firstDanger(c.Description); w != "" {
		say(High, `"`+w+`" in the description`)
	}
	switch h := c.Annotations.ReadOnly; {
	case readVerb(c.Tool) != "":
		quiet = Reason{Kind: KindRisk, Risk: Low, Detail: `"` + readVerb(c.Tool) + `" in the name`}
	case h != nil && *h && c.TrustAnnotations:
		quiet = Reason{Kind: KindRisk, Risk: Low, Detail: "readOnlyHint of a trusted server"}
	default:
		quiet = Reason{Kind: KindRisk, Risk: unknown, Detail: "nothing is known of the tool"}
	}
	return spoken, why, quiet
}
