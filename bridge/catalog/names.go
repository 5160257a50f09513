package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// MaxName is the longest script name in bytes. Some clients drop longer names.
const MaxName = 128

// maxPrefix is the longest part of a script name that stands for the server.
const maxPrefix = 64

// A ToolRef is what tells a tool from all others, whatever scripts call it: the
// configured server, and the raw name that the server gives the tool. Policy
// matches it.
type ToolRef struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// Reserved reports whether name can't be the name of a server, nor a script
// name: the members of codemode itself, and what JavaScript looks up on any
// object. (As names of properties JavaScript's keywords do no harm.)
func Reserved(name string) bool { return reserved[name] }

var reserved = map[string]bool{
	"raw": true, "read": true, "run": true, "resources": true, "prompts": true,
	"search_tools": true, "get_tools": true, "get_tool_schema": true,

	"then": true, "constructor": true, "prototype": true, "toJSON": true, "__proto__": true,
	"toString": true, "toLocaleString": true, "valueOf": true, "hasOwnProperty": true,
	"isPrototypeOf": true, "propertyIsEnumerable": true, "__defineGetter__": true,
	"__defineSetter__": true, "__lookupGetter__": true, "__lookupSetter__": true,
}

// A naming gives tools their script names, by the rules of the package comment. It
// is made of nothing but the configuration: what is connected makes no difference.
type naming struct {
	prefix map[string]string  // by server: what its tools' names begin with, before "__"
	kept   map[ToolRef]string // the names in Sources.Kept that hold
	owner  map[string]ToolRef // the inverse of kept
}

// newNaming takes the names of the servers in their order, each once.
func newNaming(servers []string, kept map[ToolRef]string) *naming {
	n := &naming{prefix: make(map[string]string, len(servers)), kept: map[ToolRef]string{}, owner: map[string]ToolRef{}}
	rank := make(map[string]int, len(servers))
	for i, s := range servers {
		rank[s] = i
	}
	refs := slices.SortedFunc(maps.Keys(kept), func(a, b ToolRef) int {
		return cmp.Or(cmp.Compare(rank[a.Server], rank[b.Server]), strings.Compare(a.Server, b.Server), strings.Compare(a.Tool, b.Tool))
	})
	holds := map[string]bool{} // servers whose tools keep names with the plain prefix
	for _, ref := range refs {
		name := kept[ref]
		_, configured := rank[ref.Server]
		if _, given := n.owner[name]; given || !configured || !legal(name) {
			continue
		}
		n.kept[ref], n.owner[name] = name, ref
		if strings.HasPrefix(name, identifier(ref.Server)+"__") {
			holds[ref.Server] = true
		}
	}
	// No prefix is a member of codemode, and none with its "__" begins another one: so the tools of two servers
	// can't have the same name, whatever they are.
	whole, part := map[string]bool{}, map[string]bool{}
	free := func(prefix string) bool {
		for _, begin := range beginnings(prefix) {
			if whole[begin] {
				return false
			}
		}
		return len(prefix) <= maxPrefix && !part[prefix+"__"] && !Reserved(prefix)
	}
	for _, keeps := range []bool{true, false} {
		for _, s := range servers {
			if holds[s] != keeps {
				continue
			}
			prefix := identifier(s)
			for round := 1; !free(prefix); round++ { // ends: the prefixes that are taken are finite
				prefix = identifier(shorten(severalUnderscores.ReplaceAllString(spell(s), "_"), digits(s, "", round), maxPrefix-1))
			}
			n.prefix[s] = prefix
			whole[prefix+"__"] = true
			for _, begin := range beginnings(prefix) {
				part[begin] = true
			}
		}
	}
	return n
}

// lent reports whether the tools of another server have names that begin with the name of
// this one: then such a name means one of those, even before they are listed.
func (n *naming) lent(server string) bool {
	for other, prefix := range n.prefix {
		if other != server && prefix == server {
			return true
		}
	}
	return false
}

var severalUnderscores = regexp.MustCompile("__+")

// beginnings are the parts of prefix+"__" that end in "__" where they begin it, the
// whole included.
func beginnings(prefix string) []string {
	var all []string
	for i := range len(prefix) + 1 {
		if name := prefix + "__"; name[i:i+2] == "__" {
			all = append(all, name[:i+2])
		}
	}
	return all
}

// name gives the tools of one server, sorted by raw name, their script names.
func (n *naming) name(tools []*Tool) {
	if len(tools) == 0 {
		return
	}
	prefix := n.prefix[tools[0].Server] + "__"
	plain := make([]string, len(tools))
	first := make(map[string]*Tool, len(tools)) // which tool gets the plain name
	for i, t := range tools {
		written := spell(t.Name)
		plain[i] = prefix + written
		if _, keeps := n.kept[t.Ref()]; keeps {
			continue
		}
		if first[plain[i]] == nil || written == t.Name {
			first[plain[i]] = t
		}
	}
	given := make(map[string]bool, len(tools))
	var rest []*Tool // those that need a suffix
	for i, t := range tools {
		if name, keeps := n.kept[t.Ref()]; keeps {
			t.Script, given[name] = name, true
			continue
		}
		_, taken := n.owner[plain[i]]
		if taken || first[plain[i]] != t || !legal(plain[i]) {
			rest = append(rest, t)
			continue
		}
		t.Script, given[plain[i]] = plain[i], true
	}
	// All of a set of equal names go on to the next round together, so that
	// none of them depends on which tool was there first. The tools are
	// finite and the names of the rounds are not, so this ends.
	for _, name := range plain {
		given[name] = true
	}
	for round := 1; len(rest) > 0; round++ {
		count := make(map[string]int, len(rest))
		for _, t := range rest {
			t.Script = prefix + shorten(spell(t.Name), digits(t.Server, t.Name, round), MaxName-len(prefix))
			count[t.Script]++
		}
		var again []*Tool
		for _, t := range rest {
			_, taken := n.owner[t.Script]
			if taken || count[t.Script] > 1 || given[t.Script] || !legal(t.Script) {
				again = append(again, t)
				continue
			}
			given[t.Script] = true
		}
		rest = again
	}
}

// legal reports whether name can be written after "codemode." and means
// nothing else there.
func legal(name string) bool {
	if name == "" || len(name) > MaxName || Reserved(name) {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !identifierByte(name[i]) || i == 0 && digit(name[0]) {
			return false
		}
	}
	return true
}

func identifierByte(c byte) bool { return letter(c) || digit(c) || c == '_' || c == '$' }

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// spell writes each character that no ASCII identifier has as "_".
func spell(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x80 || !identifierByte(byte(r)) {
			return '_'
		}
		return r
	}, name)
}

// identifier is spell for what a name begins with.
func identifier(name string) string {
	if name != "" && digit(name[0]) {
		return "_" + spell(name)
	}
	return spell(name)
}

// shorten joins stem and tail by "_", in at most limit bytes.
func shorten(stem, tail string, limit int) string {
	if stem = strings.TrimRight(stem[:min(len(stem), limit-len(tail)-1)], "_"); stem == "" {
		return tail
	}
	return stem + "_" + tail
}

// digits are of a hash of the pair (server, raw name): 6 hex digits in the first
// round, 6 more in each further one, up to 60; then another 60 each time.
func digits(server, tool string, round int) string {
	seed := binary.BigEndian.AppendUint64(nil, uint64(max(0, round-10)))
	seed = binary.BigEndian.AppendUint64(seed, uint64(len(server)))
	sum := sha256.Sum256(append(append(seed, server...), tool...))
	return hex.EncodeToString(sum[:])[:min(6*round, 60)]
}

// IsHash reports whether text is what tells the name of a tool, or that of a server if tool
// is empty, from others that are written alike.
func IsHash(text, server, tool string) bool {
	round := len(text) / 6
	return round > 0 && round <= 10 && text == digits(server, tool, round)
}

// formerly is the name that releases up to the last one gave a tool whose path is no
// legal name; empty for all others.
func formerly(t *Tool) string {
	if t.Server == "" || legal(t.path) {
		return ""
	}
	return shorten(identifier(t.path), digits(t.Server, t.Name, 1), MaxName)
}
