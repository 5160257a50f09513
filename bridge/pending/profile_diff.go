package pending

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/profiles"
)

// profileDiff returns the lines in which the effective profiles differ, with two
// lines of context around each.
func profileDiff(old, cfg *profiles.Set) []string {
	names := slices.Concat(old.Names(), cfg.Names())
	slices.Sort(names)
	var all []string
	for _, name := range slices.Compact(names) {
		if lines := lineDiff(profileLines(old, name), profileLines(cfg, name), 2); len(lines) > 0 {
			all = append(append(all, "@ profile "+name), lines...)
		}
	}
	if was, is := old.Default().Name(), cfg.Default().Name(); was != is {
		all = append(all, "@ defaultProfile", fmt.Sprintf("-%q", was), fmt.Sprintf("+%q", is))
	}
	return all
}

// profileLines returns an effective profile as lines of JSON; none if there is no
// such profile.
func profileLines(s *profiles.Set, name string) []string {
	p, ok := s.Profile(name)
	if !ok {
		return nil
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p.Effective()); err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// lineDiff returns the lines that differ, marked - and +, with some lines of context
// around them.
func lineDiff(a, b []string, around int) []string {
	// common[i][j] is how many lines a[i:] and b[j:] have in common, in order.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var lines []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, " "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "-"+a[i])
			i++
		default:
			lines = append(lines, "+"+b[j])
			j++
		}
	}
	near := func(at int) bool {
		from, to := max(0, at-around), min(len(lines), at+around+1)
		return slices.ContainsFunc(lines[from:to], func(l string) bool { return l[0] != ' ' })
	}
	var shown []string
	for at, l := range lines {
		if near(at) {
			shown = append(shown, l)
		}
	}
	return shown
}
