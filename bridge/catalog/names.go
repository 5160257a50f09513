package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// MaxName is the longest script name in bytes. Some clients drop longer names.
const MaxName = 128

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

// nameTools gives every tool its script name, by the rules of the package
// comment, and returns the tools by script name and path.
func nameTools(tools []*Tool) map[string]*Tool {
	byName := make(map[string]*Tool, len(tools))
	paths := make(map[string]int, len(tools))
	for _, t := range tools {
		paths[t.path]++
	}
	var rest []*Tool // those that need a suffix
	for _, t := range tools {
		if paths[t.path] == 1 && (t.Server == "" || legal(t.path)) {
			t.Script = t.path
			byName[t.path] = t
			continue
		}
		rest = append(rest, t)
		if paths[t.path] == 1 && !Reserved(t.path) {
			byName[t.path] = t
		}
	}
	// All of a set of equal names go on to the next round together, so that
	// none of them depends on which tool was there first. The tools are
	// finite and the names of the rounds are not, so this ends.
	for round := 1; len(rest) > 0; round++ {
		count := make(map[string]int, len(rest))
		for _, t := range rest {
			t.Script = suffixed(t, round)
			count[t.Script]++
		}
		var again []*Tool
		for _, t := range rest {
			if count[t.Script] > 1 || paths[t.Script] > 0 || byName[t.Script] != nil {
				again = append(again, t)
				continue
			}
			byName[t.Script] = t
		}
		rest = again
	}
	return byName
}

// legal reports whether name can be written after "codemode." and means
// nothing else there.
func legal(name string) bool {
	if name == "" || len(name) > MaxName || Reserved(name) {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !identifierByte(name[i]) || i == 0 && name[0] >= '0' && name[0] <= '9' {
			return false
		}
	}
	return true
}

func identifierByte(c byte) bool {
	letter, digit := c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9'
	return letter || digit || c == '_' || c == '$'
}

// suffixed makes an identifier of the tool's path and a hash of (server, raw
// name): 6 hex digits in the first round, 6 more in each further one, up to 60;
// then another 60 each time.
func suffixed(t *Tool, round int) string {
	seed := binary.BigEndian.AppendUint64(nil, uint64(max(0, round-10)))
	seed = binary.BigEndian.AppendUint64(seed, uint64(len(t.Server)))
	sum := sha256.Sum256(append(append(seed, t.Server...), t.Name...))
	tail := "_" + hex.EncodeToString(sum[:])[:min(6*round, 60)]

	var b strings.Builder
	for _, r := range t.path {
		if b.Len() >= MaxName-len(tail) {
			break
		}
		switch {
		case r >= 0x80 || !identifierByte(byte(r)):
			r = '_'
		case b.Len() == 0 && r >= '0' && r <= '9':
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), "_") + tail
}
