package elicit

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// letters returns the letters of a text, in lower case. Letters of other scripts, and
// other forms of letters, that look like Latin ones count as those.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		if latin, ok := latinLike[r]; ok {
			return latin
		}
		if !unicode.IsLetter(r) {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
}

// latinLike are letters, in lower case, that look like those of the bridge's choices.
var latinLike = func() map[rune]rune {
	all := map[rune]rune{}
	for latin, others := range map[rune]string{
		'a': "аαɑ", 'c': "сϲ", 'd': "ԁ", 'e': "еєε", 'g': "ɡց", 'i': "іιı", 'n': "ոпηнν", 'o': "оοօ", 'p': "рρ", 's': "ѕꜱ", 't': "тτ", 'y': "уүγυ",
	} {
		for _, r := range others {
			all[r] = latin
		}
	}
	return all
}()
