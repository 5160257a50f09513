package upstream

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/sandbox/confine"
)

// A program in a box fails where its box ends, and says so in its own words, if at all.
// This file reads them, and says which edit would let the program go on.

var (
	// refusal matches what programs write of a path that they could not use.
	refusal = regexp.MustCompile(`(?i)EACCES|EROFS|EPERM|ENOENT|permission denied|read-only file system|operation not permitted|no such file or directory|not allowed|access denied`)
	// changing matches those that are about a change.
	changing = regexp.MustCompile(`(?i)EACCES|EROFS|permission denied|read-only file system|mkdir|write|creat|rename|unlink`)
	// absolute matches absolute paths.
	absolute = regexp.MustCompile(`/[^\s'"` + "`" + `:,;()\[\]<>|]+`)
	// unreached matches hosts that a program could not reach.
	unreached = regexp.MustCompile(`(?:ENOTFOUND|EAI_AGAIN) ([A-Za-z0-9.-]+)`)
	noNetwork = regexp.MustCompile(`ENETUNREACH|EHOSTUNREACH|ECONNREFUSED|(?i:network is unreachable|connection refused)`)
)

// maxRefusals bounds how many refusals an error names.
const maxRefusals = 3

// beyond says what a child was refused by its box, as far as its last lines and its relay
// tell, and what lets it do that; empty without a box.
func (p *process) beyond(server string) string {
	if p.box == nil {
		return ""
	}
	refused, ways := p.refusals(p.said.shownLines(), p.status().Refused)
	if len(refused) == 0 {
		ways = []string{"--write DIR", "--net HOST"}
	}
	return "; it runs in a box: " + p.boxed.Box.String() + said(server, refused, ways)
}

// beyondIn is beyond for one text of the child, an error; empty if the box is not why.
func (p *process) beyondIn(server, text string) string {
	if p == nil || p.box == nil {
		return ""
	}
	refused, ways := p.refusals([]string{text}, nil)
	if len(refused) == 0 {
		return ""
	}
	return "; it runs in a box: " + p.boxed.Box.String() + said(server, refused, ways)
}

func said(server string, refused, ways []string) string {
	text := ""
	if len(refused) > 0 {
		text = ", which may have kept it from " + strings.Join(refused, ", ")
	}
	for i, way := range ways {
		ways[i] = fmt.Sprintf("codemode-bridge servers allow %s %s", server, way)
	}
	return text + "; if it needs more: " + strings.Join(ways, ", or ")
}

// refusals finds what a program was refused, in the lines that it wrote and the hosts
// that its relay has refused, and the options of servers allow that give it that.
func (c *contained) refusals(lines, hosts []string) (refused, ways []string) {
	add := func(what, way string) {
		if len(refused) < maxRefusals && !slices.Contains(refused, what) {
			refused = append(refused, what)
		}
		if len(ways) < maxRefusals && !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	for _, host := range hosts {
		add("reaching "+host, "--net "+writtenHost(host))
	}
	for _, line := range lines {
		if !c.boxed.Box.Net.Any {
			for _, found := range unreached.FindAllStringSubmatch(line, -1) {
				add("reaching "+found[1], "--net "+found[1])
			}
			if noNetwork.MatchString(line) && c.boxed.Box.Net.None() {
				add("reaching the network", "--net HOST")
			}
		}
		if refusal.MatchString(line) {
			for _, path := range absolute.FindAllString(line, -1) {
				if what, way := c.needs(strings.TrimRight(path, "./"), changing.MatchString(line)); what != "" {
					add(what, way)
				}
			}
		}
	}
	return refused, ways
}

// needs says what a program was refused with a path that it names, if its box is why.
func (c *contained) needs(path string, change bool) (what, way string) {
	in := func(folders []string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool { return within(path, folder) })
	}
	is, err := os.Stat(path)
	switch {
	case path == "" || in(c.allowed.Write):
		return "", ""
	case change && err == nil, err != nil && isFolder(filepath.Dir(path)): // what is not there can't be meant to be read
		dir := path
		if err != nil || !is.IsDir() {
			dir = filepath.Dir(path)
		}
		if dir == string(filepath.Separator) {
			return "", ""
		}
		return "writing " + path, "--write " + dir
	case err == nil && !in(c.allowed.Read) && !confine.OfSystem(path):
		return "reading " + path, "--read " + path
	}
	return "", ""
}

func isFolder(path string) bool {
	is, err := os.Stat(path)
	return err == nil && is.IsDir()
}

// writtenHost is a refused host as a configuration names it, without the usual port.
func writtenHost(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil && port == "443" {
		return name
	}
	return host
}
