package main

import (
	"fmt"
	"os"
	"strings"

	"codemode-bridge/bridge/config"
)

// A setting is one way to configure flows. All but the templates allow everything else, so that what is
// asked is asked because of flows.
type setting struct {
	name, says string
	profile    string // as it stands in evaluation.profiles
}

func settings() []setting {
	return []setting{
		{"without", "no flows", `{"default": "allow"}`},
		{"content", "by content", `{"default": "allow", "flows": [` + byContent + `]}`},
		{"context", "by context", `{"default": "allow", "rules": [` + byContext + `]}`},
		{"both", "both", `{"default": "allow", "flows": [` + byContent + `], "rules": [` + byContext + `]}`},
		{"trifecta", "the template `trifecta`", `{"extends": "builtin:trifecta@1"}`},
		{"coding", "the template `coding`", `{"extends": "builtin:coding@1"}`},
	}
}

// The rules of the template trifecta.
const (
	byContent = `{"from": "private", "to": "external", "action": "ask", "by": "content"}`
	trifecta  = `"when": "'private' in flow.context && 'untrusted' in flow.context && 'external' in labels && !flow.written", "action": "ask"}`
	byContext = `{"effects": ["write", "delete", "send", "execute", "spend"], ` + trifecta + `, {"effects": ["read"], "net": ["chosen"], ` + trifecta
)

// policy is a configuration of the setting.
func (s setting) policy() (*config.Config, error) {
	return config.Parse("config.json", []byte(`{"evaluation": {"defaultProfile": "p", "profiles": {"p": `+s.profile+`}}}`), nil)
}

// counts are the numbers of one setting.
type counts struct{ played, arrived, asked, twins int }

func (c *counts) add(r result) {
	c.played++
	if r.arrived {
		c.arrived++
	}
	if r.twin > 0 {
		c.twins++
	}
	c.asked += r.twin
}

// report writes the table.
func report(results []result) string {
	seen, unseen := map[string]*counts{}, map[string]*counts{}
	for _, r := range results {
		into := seen
		if r.scenario.unseen {
			into = unseen
		}
		if into[r.setting.name] == nil {
			into[r.setting.name] = &counts{}
		}
		into[r.setting.name].add(r)
	}
	var b strings.Builder
	b.WriteString("| flows | attacks that succeed | twins with a question | questions in twins |")
	if len(unseen) > 0 {
		b.WriteString(" unseen attacks that succeed | unseen twins with a question |")
	}
	b.WriteString("\n| --- | --: | --: | --: |")
	if len(unseen) > 0 {
		b.WriteString(" --: | --: |")
	}
	b.WriteString("\n")
	for _, s := range settings() {
		c := seen[s.name]
		if c == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d of %d | %d of %d | %d |", s.says, c.arrived, c.played, c.twins, c.played, c.asked)
		if u := unseen[s.name]; u != nil {
			fmt.Fprintf(&b, " %d of %d | %d of %d |", u.arrived, u.played, u.twins, u.played)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The table stands between these in the page.
const (
	tableBegins = "<!-- flows: written by make bench-flows -->\n"
	tableEnds   = "<!-- end of flows -->\n"
)

// replace puts the table into a page.
func replace(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	_, after, there := strings.Cut(rest, tableEnds)
	if !ok || !there {
		return fmt.Errorf("%s has no place for the table: a line %q and a line %q", page, strings.TrimSpace(tableBegins), strings.TrimSpace(tableEnds))
	}
	return os.WriteFile(page, []byte(before+tableBegins+table+tableEnds+after), 0o644)
}
