package source

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled when it is first asked for. A worker
// starts for a session and may run one small script: most of its patterns are about scripts that
// fail, and compiling them all took a tenth of its start.
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
