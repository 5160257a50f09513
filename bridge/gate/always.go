package gate

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/profiles"
)

// always returns the rule that would allow calls like c in every run to come; nil if
// none is proposed. It is as narrow as what a wider answer binds, and holds only where
// it is known what calls mean. Nothing is proposed where the profile asks by a list or
// a rule, which a rule that allows would not outweigh, nor for what deletes, runs code,
// spends, or carries something away.
func (c *call) always(cover approval.Cover) *profiles.RuleSpec {
	d, m := c.decision, c.meaning
	if !cover.Offered() || !d.Remember || d.Risk == profiles.Critical || d.Profile == "" || m == nil || !m.Accepted || len(m.Unknown) > 0 || m.Leaves() && len(m.Carries) > 0 {
		return nil
	}
	if slices.ContainsFunc(d.Reasons, func(why profiles.Reason) bool {
		return why.Disposition == profiles.Ask && why.Kind != profiles.KindDefault
	}) {
		return nil
	}
	if len(m.Effects) == 0 || slices.ContainsFunc(m.Effects, func(e string) bool { return !slices.Contains([]string{"read", "write", "send"}, e) }) {
		return nil
	}
	rule := profiles.RuleSpec{Effects: m.Effects, Known: new(true), Action: new("allow")}
	var terms []string
	if cover.Kind == c.tool.Name {
		rule.Tools = []string{literalGlob(c.tool.Server + "__" + c.tool.Name)}
		names := append(slices.Collect(maps.Keys(c.args.Value())), cover.Free...)
		slices.Sort(names)
		list, err := json.Marshal(slices.Compact(names))
		if err != nil {
			return nil
		}
		terms = append(terms, "args.all(name, name in "+string(list)+")")
	} else {
		rule.Tools = []string{literalGlob(c.tool.Server) + "__*"}
		if rule.Effects = []string{"read"}; cover.Kind != "read" {
			rule.Effects = []string{"read", "write"}
		}
	}
	where := placeOf(m)
	if where == "" {
		return nil
	}
	rule.Where = []string{where}
	for _, b := range cover.Bound {
		term, ok := c.binds(&rule, b)
		if !ok {
			return nil
		}
		if term != "" {
			terms = append(terms, term)
		}
	}
	if len(terms) > 0 {
		rule.When = &profiles.When{Expr: strings.Join(terms, " && ")}
	}
	text, err := json.Marshal(rule)
	if err != nil {
		return nil
	}
	rule.Name = new(fmt.Sprintf("always-%x", sha256.Sum256(text))[:len("always-")+8])
	return &rule
}

// placeOf returns the place of a call as rules say it; empty if one of its paths is
// outside the workspace: a rule about a folder there would have files of secrets in it,
// and those that run later.
func placeOf(m *profiles.Meaning) string {
	if m.Where != "workspace" {
		return m.Where
	}
	if len(m.Paths) == 0 {
		return ""
	}
	for _, p := range m.Paths {
		if !p.Inside || p.Doubt != "" || p.Secret != "" || p.RunsLater != "" {
			return ""
		}
	}
	return m.Where
}

// binds adds one bound of a wider answer to a rule, or returns it as a term of the
// rule's condition. It reports false if a rule cannot say it.
func (c *call) binds(rule *profiles.RuleSpec, b approval.Bound) (term string, ok bool) {
	switch b.Kind {
	case approval.UnderFolder:
		paths := []string{literalGlob(b.Value), literalGlob(strings.TrimRight(b.Value, `/\`)) + "/*"}
		if strings.Contains(b.Value, `\`) {
			paths[1] = literalGlob(strings.TrimRight(b.Value, `\`)) + `\\*`
		}
		if rule.Paths != nil && !slices.Equal(rule.Paths, paths) {
			return "", false // a rule would let each path lead to any of the folders
		}
		rule.Paths = paths
		return "", true
	case approval.AtHost:
		if strings.ContainsAny(b.Value, ":/") {
			return "", false // a port or a scheme of its own
		}
		rule.Hosts = append(rule.Hosts, literalGlob(b.Value))
		return "", len(rule.Hosts) == 1
	case approval.ToRecipient:
		rule.Recipients = append(rule.Recipients, literalGlob(strings.ToLower(b.Value)))
		return "", len(rule.Recipients) == 1
	case approval.Mentions:
		return "", false // of a text that may differ
	}
	if b.Param == "store" && b.Value == c.tool.Server {
		return "", true // its tools say that
	}
	value, isText := c.args.Value()[b.Param].(string)
	quoted, err := json.Marshal(value)
	if !isText || err != nil || !isName(b.Param) {
		return "", false
	}
	return "args." + b.Param + " == " + string(quoted), true
}

// isName reports whether an argument's name can stand in an expression as it is.
func isName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// literalGlob returns the pattern that matches a text alone.
func literalGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `,`, `\,`).Replace(text)
}
