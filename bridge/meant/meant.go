// Package meant finds the name that somebody most likely meant by one that is not there:
// the key of a configuration, the argument of a tool.
package meant

import (
	"slices"
	"strings"
)

// By returns the candidate that word was most likely meant to be, or "": one that
// differs in case or in "-" and "_" alone; one that means the same (dir, cwd); one that
// word is short for, or the other way round (cmd, command); else the nearest that differs
// in at most a third of its letters.
func By(word string, candidates []string) string {
	if len(word) > 64 {
		return ""
	}
	for _, is := range []func(a, b string) bool{
		func(a, b string) bool { return a == b },
		sameMeaning,
		func(a, b string) bool { return shortFor(a, b) || shortFor(b, a) },
	} {
		for _, c := range candidates {
			if len(c) <= 64 && is(Fold(word), Fold(c)) {
				return c
			}
		}
	}
	best, bestDistance := "", len(word)+1
	for _, c := range candidates {
		if len(c) > 64 {
			continue
		}
		limit := (max(len(word), len(c)) + 2) / 3
		if d := Distance(Fold(word), Fold(c), limit); d <= limit && d < bestDistance && d < min(len(word), len(c)) {
			best, bestDistance = c, d
		}
	}
	return best
}

// meanings are names that are used for one another. A name stands in one group only.
var meanings = [][]string{
	{"command", "cmd", "executable", "binary", "program"}, {"cwd", "dir", "directory", "folder", "workdir", "workingdirectory"},
	{"args", "arguments", "argv", "params", "parameters"}, {"env", "environment", "environ", "envvars", "variables"},
	{"url", "uri", "link", "href", "endpoint", "address"}, {"path", "filepath", "filename", "file"}, {"query", "q", "search", "keywords", "term"},
	{"content", "contents", "text", "body", "data"}, {"message", "msg"}, {"title", "subject", "summary", "headline"}, {"limit", "count", "max", "maxresults", "pagesize", "perpage"},
	{"repo", "repository"}, {"owner", "org", "organization", "organisation"}, {"to", "recipient", "recipients"}, {"id", "identifier"},
	{"number", "num"}, {"timeout", "timeoutms"}, {"description", "desc"},
}

func sameMeaning(a, b string) bool {
	return slices.ContainsFunc(meanings, func(group []string) bool { return slices.Contains(group, a) && slices.Contains(group, b) })
}

// shortFor reports whether short is made of letters of long, in order, and begins like it:
// three or more of them, so that it is no accident.
func shortFor(short, long string) bool {
	if len(short) < 3 || len(short) >= len(long) || short[0] != long[0] {
		return false
	}
	if strings.HasPrefix(long, short) {
		return true
	}
	// A word without its vowels: cmd, msg, pkg.
	if strings.ContainsAny(short[1:], "aeiou") {
		return false
	}
	rest := short
	for i := 0; i < len(long) && rest != ""; i++ {
		if long[i] == rest[0] {
			rest = rest[1:]
		}
	}
	return rest == "" && strings.HasSuffix(long, short[len(short)-1:])
}

var noDashes = strings.NewReplacer("-", "", "_", "")

// Fold takes from a name what does not tell it from others: letter case, "-" and "_".
func Fold(s string) string { return noDashes.Replace(strings.ToLower(s)) }

// Distance is the number of letters to insert, delete, replace or swap with
// their neighbour to make b of a, or limit+1 if that is more than limit
// (Damerau and Levenshtein, restricted).
func Distance(a, b string, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
