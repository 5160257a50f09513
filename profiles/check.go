package profiles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ToolFacts are what is known of one tool before any call of it.
type ToolFacts struct {
	Server, Tool       string
	Title, Description string
	Annotations        Annotations
	TrustAnnotations   bool
	// Input is the tool's input schema; nil if it is not known.
	Input json.RawMessage
	// Labels are what rules about flows call it.
	Labels Labels
}

func (t *ToolFacts) call() Call {
	return Call{Server: t.Server, Tool: t.Tool, Title: t.Title, Description: t.Description,
		Annotations: t.Annotations, TrustAnnotations: t.TrustAnnotations}
}

// A Warning is something in the configuration that is legal but probably not
// intended. Its path is like that of a [Problem].
type Warning struct {
	Path    string `json:"path"`
	Profile string `json:"profile"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (w Warning) String() string {
	s := w.Path + ": " + w.Message
	if w.Hint != "" {
		s += " (" + w.Hint + ")"
	}
	return s
}

// Check warns of entries and rules that have no effect on the given tools: they
// match none, are always overruled by a stricter one, or have a condition that can
// never be decided. Each is reported in the profile where it is written, sorted by
// path.
func (s *Set) Check(tools []ToolFacts) []Warning {
	var all []Warning
	for _, name := range s.Names() {
		c := &checker{p: s.profiles[name], spec: s.spec.Profiles[name], tools: tools}
		c.run()
		c.observed()
		all = append(all, c.warnings...)
	}
	slices.SortStableFunc(all, func(a, b Warning) int { return strings.Compare(a.Path, b.Path) })
	return all
}

type checker struct {
	p        *Profile
	spec     *ProfileSpec // as it is written
	tools    []ToolFacts
	warnings []Warning
}

func (c *checker) warn(at, message, hint string) {
	c.warnings = append(c.warnings, Warning{Path: at, Profile: c.p.name, Message: message, Hint: hint})
}

func (c *checker) run() {
	for _, list := range []struct {
		says    Disposition
		entries []listEntry
	}{{Deny, c.p.deny}, {Ask, c.p.ask}, {Allow, c.p.allow}} {
		for i, e := range list.entries {
			if e.profile != c.p.name {
				continue // reported where it is written
			}
			c.entry(e.at, []pattern{e.pattern}, list.says, false)
			for _, other := range list.entries[:i] {
				if other.text == e.text {
					c.warn(e.at, fmt.Sprintf("%q is on this list already, at %s", e.text, other.at), "")
					break
				}
			}
		}
	}
	for _, r := range c.p.rules {
		if r.profile != c.p.name {
			continue
		}
		matched := c.entry(r.at, r.tools, r.action.disposition(), r.action == ActionManual)
		for i, p := range r.tools {
			if len(r.tools) > 1 && len(matched) > 0 && len(c.matching([]pattern{p})) == 0 {
				c.unmatched(fmt.Sprintf("%s/tools/%d", r.at, i), p)
			}
		}
		c.decidable(r, matched)
		c.contradicted(r, matched)
	}
	c.flows()
	if c.p.setsDefault && c.p.hasAllowlist && c.p.defaultAction != defaultDeny {
		c.warn(pointer("/profiles", c.p.name)+"/default",
			fmt.Sprintf("default %q has no effect: there is an allowlist, so what is on no list is denied", defaultActionWords[c.p.defaultAction]), "")
	}
}

// flows warns of rules about flows whose labels no known tool has.
func (c *checker) flows() {
	for _, f := range c.p.flows {
		if f.profile != c.p.name {
			continue
		}
		for key, label := range map[string]string{"from": f.from, "to": f.to} {
			if !slices.ContainsFunc(c.tools, func(t ToolFacts) bool { return t.Labels.has(label) != no }) {
				c.warn(pointer("/profiles", c.p.name)+"/"+f.label+"/"+key, fmt.Sprintf("no known tool is labelled %q, so the flow does nothing", label),
					`servers have "labels", and their tools "tools": {"labels": ...}`)
			}
		}
	}
}

// matching returns the known tools that one of the patterns matches.
func (c *checker) matching(patterns []pattern) []*ToolFacts {
	var found []*ToolFacts
	for i := range c.tools {
		if _, ok := anyMatch(patterns, qualified(c.tools[i].Server, c.tools[i].Tool)); ok {
			found = append(found, &c.tools[i])
		}
	}
	return found
}

// entry warns if the patterns match nothing, or if every tool that they match is
// also matched by something stricter.
func (c *checker) entry(at string, patterns []pattern, says Disposition, manual bool) []*ToolFacts {
	matched := c.matching(patterns)
	if len(matched) == 0 {
		if len(patterns) == 1 {
			c.unmatched(at, patterns[0])
		} else {
			c.warn(at, "no known tool matches any of its patterns", "")
		}
		return nil
	}
	if says == 0 || says == Deny {
		return matched
	}
	by := ""
	for _, t := range matched {
		over := c.overruled(qualified(t.Server, t.Tool), says, manual)
		if over == "" {
			return matched
		}
		by = over
	}
	c.warn(at, fmt.Sprintf("shadowed: on every tool that it matches, %s is stricter", by), "")
	return matched
}

// overruled names an unconditional entry that is stricter on this tool.
func (c *checker) overruled(name string, says Disposition, manual bool) string {
	for i := range c.p.deny {
		if c.p.deny[i].match(name) {
			return fmt.Sprintf("%q of the denylist", c.p.deny[i].text)
		}
	}
	for _, r := range c.p.rules {
		if d := r.action.disposition(); r.when == nil && (d > says || d == Ask && says == Ask && r.action == ActionManual && !manual) {
			if _, ok := anyMatch(r.tools, name); ok {
				return fmt.Sprintf("rule %s (%s)", r.label, r.action)
			}
		}
	}
	if says == Allow {
		for i := range c.p.ask {
			if c.p.ask[i].match(name) {
				return fmt.Sprintf("%q of the asklist", c.p.ask[i].text)
			}
		}
	}
	return ""
}

// unmatched warns of a pattern that matches no tool and suggests what was meant.
func (c *checker) unmatched(at string, p pattern) {
	var names []string
	for i := range c.tools {
		names = append(names, qualified(c.tools[i].Server, c.tools[i].Tool))
	}
	hint := near(p.text, names)
	if hint == "" && strings.Contains(p.text, ".") && len(c.matching([]pattern{withUnderscores(p.text)})) > 0 {
		hint = fmt.Sprintf("did you mean %q?", withUnderscores(p.text).text)
	}
	for _, n := range names {
		// A name for scripts has "_" for what no identifier can have.
		if _, ok := anyMatch([]pattern{p}, asIdentifier(n)); ok {
			hint = fmt.Sprintf("patterns match the names that servers give, not those in scripts: this is %q", n)
			break
		}
	}
	if _, one := p.name(); one && hint == "" {
		for _, n := range names {
			if strings.HasSuffix(n, "__"+p.text) {
				hint = fmt.Sprintf("did you mean %q?", n)
				break
			}
		}
	}
	c.warn(at, fmt.Sprintf("no known tool matches %q", p.text), hint)
}

// asIdentifier writes a name as scripts do.
func asIdentifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '$' || r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r
		}
		return '_'
	}, name)
}

// withUnderscores returns the pattern with server.tool written as server__tool.
func withUnderscores(text string) pattern {
	p, err := compilePattern(strings.Replace(text, ".", "__", 1))
	if err != nil {
		return pattern{text: text, alternatives: []alternative{{literal: text}}}
	}
	return p
}

// decidable warns if the condition looks at parameters that none of the
// matched tools has, or at nothing at all.
func (c *checker) decidable(r *rule, matched []*ToolFacts) {
	if e, ok := r.when.(*expression); ok && e.constant {
		c.warn(r.at+"/when", "the condition looks at nothing of the call, so it is always the same", "")
		return
	}
	if len(matched) == 0 || r.when == nil {
		return
	}
	for _, param := range r.when.needs() {
		var known []string
		missing := 0
		for _, t := range matched {
			names, closed := parameters(t.Input)
			if !closed || slices.Contains(names, param) {
				break
			}
			known = append(known, names...)
			missing++
		}
		if missing == len(matched) {
			counts := "true, so it applies to every call"
			if r.action.disposition() == Allow {
				counts = "false, so it applies to no call"
			}
			c.warn(r.at+"/when", fmt.Sprintf("can never be decided: no tool that it matches has a parameter %q; it counts as %s", param, counts), near(param, known))
		}
	}
}

// contradicted warns if a rule states a lower risk than the tool's own
// annotations, below which no rule goes.
func (c *checker) contradicted(r *rule, matched []*ToolFacts) {
	if r.risk == 0 {
		return
	}
	for _, t := range matched {
		call := t.call()
		danger, _, _ := toolRisk(&call, c.p.unknown)
		if most := strictest(danger); most.Risk > r.risk {
			c.warn(r.at+"/risk", fmt.Sprintf("%s contradicts the %s of %s: its calls stay %s", r.risk, most.Detail, call.Path(), most.Risk), "")
			return
		}
	}
}

// parameters returns the names of a tool's parameters; closed reports whether the
// schema lists them all.
func parameters(schema json.RawMessage) (names []string, closed bool) {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil {
		return nil, false
	}
	for key := range s {
		switch key {
		case "type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$id", "$defs", "definitions", "examples", "default", "$comment":
		default:
			return nil, false // allOf, $ref, patternProperties, ...: may add some
		}
	}
	var properties map[string]json.RawMessage
	if json.Unmarshal(s["properties"], &properties) != nil {
		return nil, false
	}
	// In theory a schema without additionalProperties permits them; for a tool's
	// parameters that is hardly ever intended. A schema that says true means it.
	if string(s["additionalProperties"]) != "" && string(s["additionalProperties"]) != "false" {
		return nil, false
	}
	return sortedKeys(properties), true
}
