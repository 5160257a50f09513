package misfit

// What a name or a text of an argument may be, judged by the words in it: a command, an address,
// a place, a number.

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// ShellSigns are what a shell, or a program that builds a command, reads as more than
// text.
const ShellSigns = "$`;|&<>\n\r\\\"'(){}*?!"

// Commands reports whether a text that is only to select something could be more to a
// program that builds a command of it.
func Commands(text string) bool {
	return strings.HasPrefix(text, "-") || strings.ContainsAny(text, "`;|\n\r") || strings.Contains(text, "$(") || strings.Contains(text, "&&")
}

// Addresses finds the hosts that a text names: in web addresses, in mail addresses,
// and by themselves under the names that people know.
var Addresses = regexp.MustCompile(`//([^\s/?#"'<>)\]}` + "`" + `]+)` +
	`|[^\s@<>"',;:/()]@([A-Za-z0-9.-]+\.[A-Za-z]{2,})` +
	`|\b((?:[A-Za-z0-9-]+\.)+(?:com|net|org|io|dev|app|ai|co|info|biz|xyz|cloud|site|online|example))\b`)

// contentNames and itemNames are the words that say what an argument of an unknown
// tool is.
var (
	contentNames = []string{"body", "text", "content", "title", "query", "message", "description", "comment", "summary", "subject", "note", "search", "prompt"}
	itemNames    = []string{"number", "iid", "page", "limit", "offset", "count", "size", "line", "lines", "index", "head", "tail", "perpage"}
	amountNames  = []string{"amount", "price", "total", "cost", "sum", "quantity", "fee", "unit", "cents"}
)

// Words in the names of tools: of those that run what they are given, whatever their
// arguments are called, and of those that take something away.
var (
	runningNames  = []string{"sql", "execute", "exec", "run", "eval", "evaluate", "command", "shell", "script", "terminal", "graphql", "cypher", "invoke"}
	deletingNames = []string{"delete", "remove", "drop", "purge", "destroy", "erase", "close", "archive", "trash", "cancel", "revoke", "kill", "pay", "buy", "order", "transfer", "merge"}
)

// Runs reports whether a tool is called as if it ran what it is given.
func Runs(tool string) bool {
	return slices.ContainsFunc(Of(tool), func(word string) bool { return slices.Contains(runningNames, word) })
}

// Deletes reports whether a tool is called as if it took something away.
func Deletes(tool string) bool {
	return slices.ContainsFunc(Of(tool), func(word string) bool { return slices.Contains(deletingNames, word) })
}

// statements are the words that a command in a query language begins with, if another of
// its words follows somewhere.
var statements = regexp.MustCompile(`(?is)^[\s({;]*(?:(?:select|delete)\b.*\bfrom\b|(?:insert|replace|merge|load)\b.*\binto\b|(?:match|unwind)\b.*\b(?:return|set|delete|remove)\b|with\s+\S+\s+as\s*\(|explain\s+\w+|copy\s+\S+\s+(?:from|to)\b` +
	`|(?:drop|alter|create|truncate|rename|grant|revoke|attach|detach|vacuum|pragma|set)\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:table|database|schema|view|materialized|index|user|role|function|procedure|trigger|extension|sequence|constraint|all|global|session|[a-z_]+\s*=)` +
	`|update\b.*\bset\b|(?:call|exec|execute)\s+\w+|(?:mutation|subscription)\b.*\{)`)

// IsStatement reports whether a text could be a command in a query language.
func IsStatement(text string) bool { return statements.MatchString(text) }

// IsContent reports whether a name says that the argument is text.
func IsContent(name string) bool {
	words := Of(name)
	return len(words) > 0 && slices.Contains(contentNames, words[len(words)-1])
}

// IsItem reports whether a name says that the argument counts something, or is the
// number of an item in a place that is named beside it.
func IsItem(name string) bool {
	words := Of(name)
	return len(words) > 0 && slices.Contains(itemNames, words[len(words)-1]) && !IsAmount(name)
}

// IsAmount reports whether a name says that the argument is worth something.
func IsAmount(name string) bool {
	return slices.ContainsFunc(Of(name), func(w string) bool { return slices.Contains(amountNames, w) })
}

// Of returns the words of a name, in lower case: "issueNumber" and
// "issue_number" have two.
func Of(name string) []string {
	var parted strings.Builder
	lower := false
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			parted.WriteByte(' ')
		case unicode.IsUpper(c) && lower:
			parted.WriteByte(' ')
			parted.WriteRune(unicode.ToLower(c))
		default:
			parted.WriteRune(unicode.ToLower(c))
		}
		lower = unicode.IsLower(c) || unicode.IsDigit(c)
	}
	return strings.Fields(parted.String())
}

// LooksLikeAPlace reports whether a whole text could be a path, an address or the name
// of something rather than words.
func LooksLikeAPlace(text string) bool {
	trimmed := strings.TrimSpace(text)
	if strings.ContainsAny(trimmed, " \n") {
		return strings.HasPrefix(trimmed, "/") || strings.HasPrefix(trimmed, "~") || strings.HasPrefix(trimmed, ".")
	}
	return strings.ContainsAny(trimmed, `/\@:~`) || strings.Contains(trimmed, ".") && !strings.HasSuffix(trimmed, ".") || strings.HasPrefix(trimmed, "#")
}

func IsNumber(v any) bool {
	_, ok := v.(json.Number)
	return ok
}

// TextsIn returns all texts of a value, names of members included.
func TextsIn(v any) (all []string) {
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, element := range v {
			all = append(all, TextsIn(element)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(append(all, name), TextsIn(v[name])...)
		}
	}
	return all
}

// IsOdd reports whether the name of a place could be taken for more than a name: a flag,
// or what a shell replaces or runs. Many servers pass names on to a program.
func IsOdd(name string) bool {
	flag := strings.HasPrefix(name, "-") && strings.Trim(name[1:], "0123456789") != "" // else a number
	return flag || strings.ContainsAny(name, "`;|\n\r\x00") || strings.Contains(name, "$(") || strings.Contains(name, "${") || strings.Contains(name, "&&")
}

// PlainName returns a parameter without the numbers of elements: "to.0" is "to".
func PlainName(param string) string {
	var parts []string
	for part := range strings.SplitSeq(param, ".") {
		if _, err := strconv.Atoi(part); err != nil {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}
