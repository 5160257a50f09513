package config

import (
	"slices"
	"strings"

	"codemode-bridge/bridge/secrets"
)

// A configuration is read twice where it names secrets: first by Parse, which judges
// their form alone, so that nothing is read or run for an edit that somebody has to
// confirm first; and then by WithSecrets.

// References returns the secrets that the values at or below JSON pointers name, those of
// disabled servers excepted; without pointers, all of them.
func (c *Config) References(below ...string) []secrets.Reference {
	var all []secrets.Reference
	for _, n := range c.from.named {
		here := func(at string) bool { return atOrBelow(n.path, at) }
		if (len(below) == 0 || slices.ContainsFunc(below, here)) && !slices.Contains(all, n.Reference) {
			all = append(all, n.Reference)
		}
	}
	return all
}

// atOrBelow reports whether a JSON pointer is at or below another.
func atOrBelow(path, at string) bool { return path == at || strings.HasPrefix(path, at+"/") }

// Commands returns the commands that are run for secrets, as they are written.
func (c *Config) Commands() (all []string) {
	for _, r := range c.References() {
		if r.Kind == secrets.Exec {
			all = append(all, r.Name)
		}
	}
	return all
}

// WithSecrets returns the configuration with the secrets filled in that were found. A
// server of which one is missing, or unusable, has [Server.Unready], and the others work;
// anywhere else that is a mistake, with its place. Changes that were made to c since it
// was read are not in the result.
func (c *Config) WithSecrets(found map[secrets.Reference]secrets.Secret) (*Config, error) {
	return c.from.again(found)
}

// SecretTexts returns the secrets that have been filled in, at or below JSON pointers if
// there are any, to be hidden wherever they occur. Of one with several lines, a line alone counts, too.
func (c *Config) SecretTexts(below ...string) []string {
	var all []string
	for _, r := range c.References(below...) {
		text := c.from.found[r].Reveal()
		all = append(all, text)
		if lines := strings.Split(text, "\n"); len(lines) > 1 {
			for _, line := range lines {
				if line = strings.TrimSpace(line); len(line) >= longLine && !strings.HasPrefix(line, "-----") {
					all = append(all, line)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(text string) bool { return text == "" })
}

// longLine is the length from which a line of a secret is one itself.
const longLine = 16

// WhyUnready is the first reason why the server is not ready; empty if it is.
func (s *Server) WhyUnready() string {
	if len(s.Unready) == 0 {
		return ""
	}
	return s.Unready[0].Error()
}

// unready says of each server which secret keeps it from starting, and returns the
// problems that are not about such a server.
func (c *checker) unready(root string, named []placed, found map[secrets.Reference]secrets.Secret) (others Problems) {
	others = c.problems
	for _, name := range c.config.ServerNames() {
		at := spot{path: root}.below(name).path
		s := c.config.Servers[name]
		for _, n := range named {
			if _, asked := found[n.Reference]; !asked && atOrBelow(n.path, at) {
				s.Unready = append(s.Unready, c.src.Problem(where(c.places, n.path, -1), n.path, "nobody has asked for this secret", ""))
			}
		}
		if found == nil {
			continue
		}
		var own Problems
		for _, p := range others {
			if atOrBelow(p.Path, at) {
				own = append(own, p)
			}
		}
		s.Unready = append(s.Unready, own...).Sorted()
		others = slices.DeleteFunc(others, func(p *FieldError) bool { return atOrBelow(p.Path, at) })
	}
	return others
}

// serverRoot is where the file has its servers.
func (f *findings) serverRoot() string {
	if !f.sound("/servers") && f.has("/mcpServers") {
		return "/mcpServers"
	}
	return "/servers"
}
