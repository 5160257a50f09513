package profiles

import "strings"

// dangerWords make a tool high risk wherever they occur in its name, title or
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

// readWords make a tool low risk if they occur in its name and nothing says
// otherwise.
var readWords = wordSet(`get list read search find describe query count show view status`)

// actWords undo that if they come before the reading word (set_status,
// create_view) or after "and" or "or" (get_or_create): then nothing is known of
// the tool. After a reading word they are nouns (get_commit, list_orders).
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

// maxWord is the length above which words are skipped; every word we know is
// shorter.
const maxWord = 16

// eachWord calls f with each word of text in lower case until f returns false.
// Words end at anything but letters and digits, between letters and digits, and
// at the humps of camelCase (HTTPSend is http, send). The slice is only valid
// during the call.
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

// readVerb returns the reading word that says what the tool with this name does.
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

// toolRisk returns what is known of the tool's own risk, without any rule: danger
// is what its annotations state; guessed is what its words suggest, and the
// annotation that it reaches beyond this machine; quiet is what holds if there is
// neither. An upstream can raise them but, unless it is trusted, not lower them.
func toolRisk(c *Call, unknown Risk) (danger, guessed []Reason, quiet Reason) {
	if c.Server == "" {
		return nil, nil, Reason{Kind: KindRisk, Risk: Low, Detail: "discovery function of the bridge"}
	}
	if isTrue(c.Annotations.Destructive) {
		danger = append(danger, Reason{Kind: KindRisk, Risk: High, Detail: "destructiveHint"})
	}
	if isTrue(c.Annotations.OpenWorld) {
		guessed = append(guessed, Reason{Kind: KindRisk, Risk: Medium, Detail: "openWorldHint"})
	}
	for _, text := range []struct{ where, text string }{{"name", c.Tool}, {"title", c.Title}, {"description", c.Description}} {
		if w := firstDanger(text.text); w != "" {
			guessed = append(guessed, Reason{Kind: KindRisk, Risk: High, Detail: `"` + w + `" in the ` + text.where})
			break
		}
	}
	quiet = Reason{Kind: KindRisk, Risk: unknown, Detail: "nothing is known of the tool"}
	if verb := readVerb(c.Tool); verb != "" {
		quiet.Risk, quiet.Detail = Low, `"`+verb+`" in the name`
	} else if isTrue(c.Annotations.ReadOnly) && c.TrustAnnotations {
		quiet.Risk, quiet.Detail = Low, "readOnlyHint of a trusted server"
	}
	return danger, guessed, quiet
}

// reads reports whether the call changes nothing, judging by the tool itself.
func (c *Call) reads() bool {
	danger, guessed, quiet := toolRisk(c, High)
	return len(danger) == 0 && len(guessed) == 0 && quiet.Risk == Low
}

// repeatable reports whether it is known that the call may be made twice: it is a
// discovery function, which does nothing, or a trusted server says so.
func (c *Call) repeatable() bool {
	return c.Server == "" || c.TrustAnnotations && (isTrue(c.Annotations.ReadOnly) || isTrue(c.Annotations.Idempotent))
}
