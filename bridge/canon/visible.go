package canon

import "strings"

// Visible returns s with every character that cannot be seen written out.
func Visible(s string) string {
	return strings.ToValidUTF8(s, "\uFFFD")
}
