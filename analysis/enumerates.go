package analysis

import (
	"regexp"
	"strings"
	"sync"
)

var (
	mention = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bcodemode\b`) })
	// named matches what follows a mention that names a tool: .a__b, .server.tool, ["a__b"],
	// or one of our own functions, which is called.
	named = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*(?:\??\.\s*(?:\w+__[\w$]+|\w+\s*(?:\(|\??\.\s*\w))|(?:\?\.)?\[\s*["'][^"'\\]+["']\s*\])`)
	})
)

// Enumerates reports whether a script may ask which tools there are by other means than
// the discovery functions: whether it does anything with the object codemode but name its
// members. It looks at the text alone, and is true if in doubt: also where a comment
// says more about codemode.
func Enumerates(source string) bool {
	for _, at := range mention().FindAllStringIndex(source, -1) {
		if !named().MatchString(source[at[1]:]) {
			return true
		}
	}
	return strings.Contains(source, "\\u") // an identifier may be written so
}
