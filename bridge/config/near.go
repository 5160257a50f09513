package config

import (
	"fmt"
	"strings"
)

// near returns the candidate that word was most likely meant to be, or "".
// A candidate is near when it differs in case or in "-" and "_" alone, or in
// at most a third of its letters.
func near(word string, candidates []string) string {
	best, bestDistance := "", len(word)+1
	if len(word) > 64 {
		return ""
	}
	for _, c := range candidates {
		if fold(c) == fold(word) {
			return c
		}
		d := distance(fold(word), fold(c))
		if limit := (max(len(word), len(c)) + 2) / 3; d <= limit && d < bestDistance && d < min(len(word), len(c)) {
			best, bestDistance = c, d
		}
	}
	return best
}

func didYouMean(word string, candidates []string) string {
	if c := near(word, candidates); c != "" {
		return fmt.Sprintf("did you mean %q?", c)
	}
	return ""
}

var noDashes = strings.NewReplacer("-", "", "_", "")

func fold(s string) string { return noDashes.Replace(strings.ToLower(s)) }

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b (Damerau and Levenshtein, restricted).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
