package catalog

import (
	"strings"

	"codemode-bridge/bridge/tsdecl"
)

// Signatures lists all visible tools, a line for each server, with what they take as
// [tsdecl.Signature] writes it. It reports whether they fit in limit bytes; if not, it
// gives none.
//
//	filesystem => {content}: list_directory({path}), read_text_file({path, head?: number})
//	memory: create_entities({entities: {name, observations: string[]}[]}) => {entities[]}, read_note({name})
//
// The first part is what stands before "__" in a script. Behind => are the fields of the
// answer: of all tools of the server that say nothing else, or of one; what has none
// answers with text. What its server calls deprecated is left out, and what was observed:
// the text stays the same for the same definitions. The last line has the saved scripts.
func (v *View) Signatures(limit int) (string, bool) {
	var b strings.Builder
	for rest := v.Tools(); len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Server == rest[0].Server {
			n++
		}
		if !v.signServer(&b, rest[:n], limit) {
			return "", false
		}
		rest = rest[n:]
	}
	var saved []string
	for _, t := range v.seen().listed[len(v.Tools()):] {
		if t.broken() {
			continue
		}
		takes := ")"
		if len(t.Input) > 0 {
			text, ok := tsdecl.Signature(t.Input, limit)
			if !ok {
				return "", false
			}
			takes = ", " + strings.TrimPrefix(text, "(")
		}
		saved = append(saved, strings.TrimSuffix(t.Script, ")")+takes)
	}
	if len(saved) > 0 {
		b.WriteString("saved scripts, called as codemode.run: " + strings.Join(saved, ", ") + "\n")
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) > limit {
		return "", false
	}
	return text, true
}

// signServer writes the line of one server.
func (v *View) signServer(b *strings.Builder, tools []*Tool, limit int) bool {
	prefix := v.catalog.Prefix(tools[0].Server)
	var signed, answers []string
	room := limit - b.Len()
	for _, t := range tools {
		if t.Deprecated() {
			continue
		}
		name, ok := strings.CutPrefix(t.Script, prefix+"__")
		if !ok {
			return false // it keeps the name that it had under another one
		}
		takes, ok := tsdecl.Signature(t.Input, limit)
		if !ok {
			return false
		}
		if room -= len(name + takes); room < 0 {
			return false
		}
		signed, answers = append(signed, name+takes), append(answers, tsdecl.Answer(t.Output))
	}
	if len(signed) == 0 {
		return true
	}
	most := usual(answers)
	b.WriteString(prefix)
	if most != "text" {
		b.WriteString(" => " + most)
	}
	for i, one := range signed {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(one)
		if answers[i] != most {
			b.WriteString(" => " + answers[i])
		}
	}
	b.WriteString("\n")
	return b.Len() <= limit+1
}

// usual is the answer that spares the most if it is said once; of several, the first.
func usual(answers []string) (most string) {
	spares := map[string]int{}
	for _, one := range answers {
		spares[one] += len(" => " + one)
	}
	for _, one := range answers {
		if spares[one] > spares[most] {
			most = one
		}
	}
	return most
}
