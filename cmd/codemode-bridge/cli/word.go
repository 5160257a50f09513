package cli

import (
	"runtime"
	"strings"
)

// Word writes a text as one word of a command line that a person may paste into a shell.
func Word(text string) string { return word(text, runtime.GOOS == "windows") }

func word(text string, windows bool) string {
	plain := "_-./:@%+=,"
	if windows {
		plain += `\~`
	}
	is := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(plain, r)
	}
	switch home := strings.TrimPrefix(text, "~/"); {
	case text != "" && strings.TrimFunc(text, is) == "":
		return text
	case windows: // a file's name has no quotation marks there
		return `"` + text + `"`
	case home != text: // which a shell writes out only where it is not quoted
		return "~/" + word(home, false)
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
