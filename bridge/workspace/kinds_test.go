package workspace

import (
	"path"
	"strings"
	"testing"
)

// The patterns of kinds mean what they would to path.Match.
func TestFits(t *testing.T) {
	names := []string{"", "env", ".env", ".env.local", "a.env", "service-account-1.json", "serviceaccount.json", "a.tfstate.backup", "x-firebase-adminsdk-y.json", ".eslintrc.js", "babel.config.ts", "id_rsa", "a.b.config.js"}
	for _, kinds := range [][]kind{secrets, later} {
		for _, k := range kinds {
			for _, pattern := range k.patterns {
				for want := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
					for _, name := range append(names, strings.ReplaceAll(want, "*", "x"), strings.ReplaceAll(want, "*", ""), "x"+want) {
						if ok, err := path.Match(want, name); ok != fits(want, name) || err != nil {
							t.Errorf("%q and %q: %v, want %v, %v", want, name, fits(want, name), ok, err)
						}
					}
				}
			}
		}
	}
}
