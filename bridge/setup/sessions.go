package setup

import (
	"fmt"
	"strings"

	"codemode-bridge/bridge/jsonc"
)

// PerSession returns a server in the form of the configuration with "perSession": true,
// if it is known to keep state for its caller: windows would share one browser, or one
// history of thoughts. Set reports whether it has that then; a server whose text says either
// way stays as it is.
func PerSession(text jsonc.Text) (next jsonc.Text, set bool) {
	r, _ := recognize(text)
	if _, stateful := r.Server.Stateful(); !stateful {
		return text, false
	}
	said, err := jsonc.Section(text, "/perSession")
	if err != nil || said != nil {
		return text, string(said) == "true"
	}
	with, err := jsonc.Insert(text, "/perSession", true)
	if err != nil {
		return text, false
	}
	return with, true
}

// SessionWords says in lines which servers get a process for each session; empty if none
// does.
func SessionWords(servers []*Server) []string {
	var names []string
	for _, s := range servers {
		if _, set := PerSession(s.written()); set && !s.There {
			names = append(names, s.As)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{SessionsOf(names...)}
}

// SessionsOf says what is done about servers that keep state for their callers.
func SessionsOf(names ...string) string {
	keep := "keeps"
	if len(names) > 1 {
		keep = "keep"
	}
	return fmt.Sprintf(`%s %s state for whoever calls: each session gets a process of its own ("perSession": true)`, strings.Join(names, ", "), keep)
}
