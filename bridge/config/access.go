package config

import (
	"fmt"
	"path/filepath"

	"codemode-bridge/bridge/access"
)

// access compiles the entries of who may see and call what, once the profiles are known.
func (c *checker) access() {
	if !c.has("/access") {
		c.config.Access = nil
		return
	}
	known := access.Known{Tokens: map[string][]string{}, Place: func(i int) string {
		at := where(c.places, fmt.Sprintf("/access/%d", i), -1)
		line, _ := c.src.Place(at)
		return fmt.Sprintf("%s:%d", filepath.Base(c.src.FileOf(at)), line)
	}}
	if set := c.config.Profiles; set != nil {
		known.Profiles, known.Default = set.Names(), set.Default().Name()
	}
	for _, t := range c.config.HTTP.Tokens {
		known.Tokens[t.Name] = t.Groups
	}
	rules, problems := access.New(c.config.Access, known)
	for _, p := range problems {
		if path := "/access" + p.Pointer; !c.unusable[path] {
			c.at(path, p.Message, p.Hint)
		}
	}
	c.config.from.rules = rules
}

// Rules is what Access means; nil if the file does not have it.
func (c *Config) Rules() *access.Rules { return c.from.rules }
