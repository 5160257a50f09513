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

func (n *Names) has(name string) bool    { return contains(n.list, name) }
func (n *Names) server(name string) bool { return contains(n.servers, name) }

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
