package realm

import (
	"bytes"
	"sort"
	"strings"

	"codemode-bridge/sandbox/wire"
)

// Names are what `codemode` offers: one copy for all runs of a revision, so
// that ten thousand tools cost a run nothing.
type Names struct {
	Revision string
	list     []string // sorted
	servers  []string // sorted
}

// ReadNames reads a Names frame.
func ReadNames(h wire.Names, body []byte) *Names {
	n := &Names{Revision: h.Revision, servers: append([]string(nil), h.Servers...)}
	if len(body) > 0 {
		for _, name := range bytes.Split(body, []byte{0}) {
			n.list = append(n.list, string(name))
		}
	}
	sort.Strings(n.list)
	sort.Strings(n.servers)
	return n
}

// has reports whether a tool is called so, or would be if it were written as an
// identifier: server__tool as policy has it.
func (n *Names) has(name string) bool {
	return contains(n.list, name) || contains(n.list, identifier(name))
}

func (n *Names) server(name string) bool { return n.prefix(name) != "" }

// prefix returns what the names of a server's tools begin with; empty if there is no
// such server. The server's own name may have what no identifier can have.
func (n *Names) prefix(server string) string {
	for _, name := range []string{server, identifier(server)} {
		if contains(n.servers, name) {
			return name
		}
	}
	return ""
}

// identifier writes name as an identifier, as the parent does.
func identifier(name string) string {
	written := strings.Map(func(r rune) rune {
		if r == '$' || r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r
		}
		return '_'
	}, name)
	if written != "" && written[0] >= '0' && written[0] <= '9' {
		return "_" + written
	}
	return written
}

// of returns the tools of a server, without their prefix.
func (n *Names) of(server string) (tools []string) {
	prefix := server + "__"
	for i := sort.SearchStrings(n.list, prefix); i < len(n.list) && strings.HasPrefix(n.list[i], prefix); i++ {
		tools = append(tools, n.list[i][len(prefix):])
	}
	return tools
}

func contains(sorted []string, s string) bool {
	i := sort.SearchStrings(sorted, s)
	return i < len(sorted) && sorted[i] == s
}
