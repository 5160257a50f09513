package setup

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/jsonc"

	"github.com/rogpeppe/go-internal/diff"
)

// hidden stands for a secret, and looksSecret for what [canon.Redact] takes for one.
const (
	hidden      = "[hidden]"
	looksSecret = "[hidden: looks like a secret]"
)

// masked returns text without the secrets.
func masked(text string, secrets []string) string {
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, flatJSON(secret), `"`+hidden+`"`)
		text = strings.ReplaceAll(text, "'"+secret+"'", "'"+hidden+"'")
		if len(secret) >= 6 { // shorter ones are parts of other words
			text = strings.ReplaceAll(text, secret, hidden)
			continue
		}
		bare := regexp.MustCompile(`(?m)([:=]\s*)` + regexp.QuoteMeta(secret) + `(\s*(?:$|,|[}\]#]))`)
		text = bare.ReplaceAllString(text, "${1}"+hidden+"${2}")
	}
	return text
}

// Secrets returns what must not be shown of the texts of our own configurations.
func Secrets(texts ...[]byte) []string {
	var all []string
	for _, text := range texts {
		for _, key := range []string{"/servers", "/mcpServers"} {
			section, err := jsonc.Section(text, key)
			if err != nil || section == nil {
				continue
			}
			whole := slices.Concat([]byte(`{"mcpServers": `), section, []byte("\n}"))
			place, err := clients.At(clients.System{}, "config.json", whole)
			if err != nil {
				continue
			}
			servers, err := place.Servers(whole)
			if err != nil {
				continue
			}
			for _, s := range servers {
				all = append(all, s.Secrets...)
			}
		}
	}
	return all
}

// widest is how many characters of a line a Diff has: no terminal shows more.
const widest = 400

// referring matches a member of an object whose value is variables alone. Its name has
// nothing to hide.
var referring = regexp.MustCompile(`("[A-Za-z][A-Za-z0-9_-]{0,39}"\s*:\s*)"` + clients.Variables + `"`)

// redacted is [canon.Redact] for a line of a configuration. What is shown all the same is
// only ever the name of a variable, never what stood in its place.
func redacted(line string) string {
	text := canon.Redact(line)
	if text == line {
		return line
	}
	for _, m := range referring.FindAllStringSubmatch(line, -1) {
		if strings.Count(line, m[1]) == 1 { // else nobody could tell which of them was hidden
			text = strings.Replace(text, m[1]+`"`+looksSecret+`"`, m[0], 1)
		}
	}
	return text
}

// Diff is how a file changes, line by line and without its secrets; empty if it
// does not.
func Diff(name string, before, after []byte, secrets []string) []string {
	show := func(text []byte) []byte {
		plain := strings.ReplaceAll(masked(string(text), secrets), "\r\n", "\n")
		if plain != "" && !strings.HasSuffix(plain, "\n") {
			plain += "\n"
		}
		return []byte(plain)
	}
	var all []string
	lines := strings.SplitAfter(string(diff.Diff(name, show(before), name, show(after))), "\n")
	for i, line := range lines {
		if line = strings.TrimSuffix(line, "\n"); i == 0 || line == "" {
			continue // the first line only names the files
		}
		all = append(all, line[:1]+canon.Fit(canon.EscapeLines(redacted(line[1:])), widest))
	}
	return all
}

// Added is how a text changes by an insertion, line by line, with three lines around
// it. Unlike Diff it shows whole lines, secrets included.
func Added(name string, before, after []byte) []string {
	const around = 3
	old, now := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	from, rest := max(0, head-around), min(tail, around)
	all := []string{"--- " + name, "+++ " + name, fmt.Sprintf("@@ -%d,%d +%d,%d @@", from+1, len(old)-tail+rest-from, from+1, len(now)-tail+rest-from)}
	show := func(mark string, lines []string) {
		for _, line := range lines {
			all = append(all, mark+canon.EscapeLines(line))
		}
	}
	show(" ", old[from:head])
	show("-", old[head:len(old)-tail])
	show("+", now[head:len(now)-tail])
	show(" ", old[len(old)-tail:len(old)-tail+rest])
	return all
}

// Table is servers with everything that they run and use, because the person decides
// by it.
func Table(all []*Server) [][]string {
	rows := [][]string{{"name", "how it runs"}}
	for _, s := range all {
		more := []string{"from " + strings.Join(s.From, ", ")}
		if names := s.VariableNames(); names != "" {
			more = append(more, "given "+names)
		}
		if uses := s.Uses(); len(uses) > 0 {
			more = append(more, "reads ${"+strings.Join(uses, "} ${")+"}")
		}
		if remark := s.Remark(); remark != "" {
			more = append(more, remark)
		}
		runs := s.Runs() + "\n" + strings.Join(more, "; ")
		if words, _ := Known(s.written()); s.Problem == "" && !s.There {
			runs += "\n" + words
		}
		rows = append(rows, []string{canon.Escape(s.Name), runs})
	}
	return rows
}

// PinnedWords says how many tools were pinned, and which servers could not be. Review is
// the command that shows those that have changed since, and again the one that asks the
// others once more.
func PinnedWords(taking []*Server, review, again string) (lines []string) {
	tools, servers := 0, 0
	var without []string
	for _, s := range taking {
		if s.Pinned > 0 {
			tools, servers = tools+s.Pinned, servers+1
		}
		if s.Unpinned != "" {
			without = append(without, "  "+s.As+": "+s.WhyUnpinned())
		}
	}
	if servers > 0 {
		lines = append(lines, fmt.Sprintf("the %s of %s are accepted as they are; new and changed ones stay hidden until: %s", count(tools, "tool"), count(servers, "server"), review))
	}
	if len(without) > 0 {
		lines = append(lines, count(len(without), "server")+" could not be asked for tools, which are accepted as they are when the bridge first sees them, and ask when they change:")
	}
	if lines = append(lines, without...); len(without) > 0 {
		lines = append(lines, fmt.Sprintf("what your clients may call there was not looked at either; once the servers work: %s", again))
	}
	return lines
}
