package pins

import (
	"strings"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/lockfile"
)

// Kept returns the names by which scripts call tools that the lock file has, so that tools
// keep them: see KeptNames.
func (s *Store) Kept() map[catalog.ToolRef]string {
	lock, _, err := s.Lock()
	if err != nil {
		return nil
	}
	return KeptNames(lock)
}

// KeptNames returns the names by which scripts call the tools of a lock. Nobody needs to
// have accepted it for that: a line cannot give a tool the name of another one, only
// decide which of two has a plain name and which one with a hash.
func KeptNames(lock *lockfile.Lock) map[catalog.ToolRef]string {
	if lock == nil {
		return nil
	}
	all := map[catalog.ToolRef]string{}
	for name, server := range lock.Servers {
		for tool, line := range server.Tools {
			if fits(name, tool, line.Script) {
				all[catalog.ToolRef{Server: name, Tool: tool}] = line.Script
			}
		}
	}
	return all
}

// fits reports whether a script name is one that package catalog could give the tool:
// made of its server's name and its own, each perhaps with its hash. Any other hex digits
// are none: "facade" may be a tool.
func fits(server, tool, script string) bool {
	spell := func(name string) string {
		return strings.Map(func(r rune) rune {
			if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '$') {
				return r
			}
			return '_'
		}, name)
	}
	made := func(part, from, raw string) bool {
		end := strings.LastIndex(part, "_")
		return part == from || catalog.IsHash(part[end+1:], server, raw) && strings.HasPrefix(from, part[:max(end, 0)])
	}
	prefix, rest, ok := strings.Cut(script, "__")
	if whole := spell(server); strings.HasPrefix(script, whole+"__") { // which may have "__" in it
		prefix, rest, ok = whole, script[len(whole)+2:], true
	}
	return ok && made(strings.TrimPrefix(prefix, "_"), strings.TrimPrefix(spell(server), "_"), "") && made(rest, spell(tool), tool)
}
