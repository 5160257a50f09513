package profileview

import (
	"cmp"
	"strings"

	"codemode-bridge/profiles"
)

// means says in lines what is known of what a call means; none if nothing is.
func means(m *profiles.Meaning) (lines []string) {
	if m == nil {
		return nil
	}
	say := func(about string, words ...string) { lines = append(lines, about+": "+strings.Join(words, ", ")) }
	if !m.Accepted {
		lines = append(lines, "nobody has accepted what follows: it can only make the decision stricter")
	}
	say("effects", m.Effects...)
	say("where", m.Where)
	say("net", m.Net)
	if m.Within {
		lines = append(lines, "the box of its server keeps it in the workspace")
	}
	if m.Here {
		lines = append(lines, "the box of its server keeps it on this machine")
	}
	for _, p := range m.Paths {
		words := []string{p.Path, "outside the workspace"}
		if p.Inside {
			words[1] = "in the workspace"
		}
		for _, word := range []string{p.Secret, p.RunsLater, p.Doubt} {
			if word != "" {
				words = append(words, word)
			}
		}
		say(p.Param, words...)
	}
	for _, h := range m.Hosts {
		say(h.Param, "host "+cmp.Or(h.Name, "not known: "+h.Doubt))
	}
	for _, r := range m.Recipients {
		say(r.Param, "recipient "+r.Name)
	}
	for _, c := range m.Commands {
		say("command", c)
	}
	if m.Spends {
		lines = append(lines, "it names an amount of money")
	}
	for _, u := range m.Unknown {
		say(u, "nobody knows what this argument means, and so rules about meaning are undecided")
	}
	return lines
}

// boxed says of a program on this machine that policy counts on no box of it; none where it
// counts on one, or nobody knows what the call means.
func boxed(m *profiles.Meaning, box string) []string {
	if m == nil || box == "" || m.Within || m.Here {
		return nil
	}
	return []string{"its server is " + box + ": nothing keeps it in the workspace or on this machine, and policy counts on neither"}
}
