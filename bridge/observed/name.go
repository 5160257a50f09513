package observed

import (
	"regexp"
	"strings"
	"unicode"

	"codemode-bridge/bridge/canon"
)

// Keys that programs give to fields are names: one identifier, or words
// between "_" or "-". Keys that are data (ids, hashes, mail addresses, file
// names, dates, tokens) mostly are not, and must not be shown: they are values.
//
// isName reports whether a key reads as a name. When in doubt it is data: that
// costs a type some detail, while the other error would show what somebody
// stored.
func isName(key string) bool {
	if len(key) > maxKey || !identifier.MatchString(key) || canon.Redact(key) != key {
		return false
	}
	digits := 0
	for _, run := range digitRuns.FindAllString(key, -1) {
		if len(run) > 3 {
			return false // 2026, 41234
		}
		digits += len(run)
	}
	if digits > 4 {
		return false
	}
	words := splitWords(key)
	letters := 0
	for _, word := range words {
		if !pronounceable(word) {
			return false
		}
		letters += len(word)
	}
	// Random letters of both cases fall into very short words.
	return len(words) < 4 || letters >= 3*len(words)
}

var (
	identifier = regexp.MustCompile(`^[@$_]{0,2}[A-Za-z][A-Za-z0-9]*([_-]{1,2}[A-Za-z0-9]+)*_{0,2}$`)
	digitRuns  = regexp.MustCompile(`[0-9]+`)
	hexWord    = regexp.MustCompile(`^[a-f]{8,}$`)
)

// splitWords are the runs of letters in a key, and camelCase taken apart.
func splitWords(key string) []string {
	var words []string
	start := -1
	flush := func(end int) {
		if start >= 0 {
			words = append(words, strings.ToLower(key[start:end]))
		}
		start = -1
	}
	for i := 0; i < len(key); i++ {
		c := rune(key[i])
		switch {
		case !unicode.IsLetter(c):
			flush(i)
		case start < 0:
			start = i
		case unicode.IsUpper(c) && !unicode.IsUpper(rune(key[i-1])):
			flush(i)
			start = i
		case unicode.IsLower(c) && unicode.IsUpper(rune(key[i-1])) && i-1 > start:
			flush(i - 1)
			start = i - 1
		}
	}
	flush(len(key))
	return words
}

// pronounceable reports whether a word of a key may be a word or an
// abbreviation.
func pronounceable(word string) bool {
	const vowels = "aeiouy"
	if len(word) > 20 || hexWord.MatchString(word) {
		return false
	}
	if len(word) <= 5 {
		return true // url, https, xmlns
	}
	run, any := 0, false
	for _, c := range word {
		if strings.ContainsRune(vowels, c) {
			run, any = 0, true
		} else if run++; run > 6 {
			return false
		}
	}
	return any
}
