package knownview

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles/known"
)

// Names and words of servers that keep state for whoever calls: browsers, shells, REPLs,
// debuggers, chains of thought.
var (
	statefulName = regexp.MustCompile(`(?i)(^|[^a-z])(playwright|puppeteer|selenium|webdriver|browser|browser-?use|chrome|chrome-?devtools|sequential-?thinking|repl|shell|bash|terminal|tmux|pty|ssh|jupyter|notebook|ipython|desktop-?commander|gdb|lldb|debugger)([^a-z]|$)`)
	statefulTool = regexp.MustCompile(`(?i)^(browser_\w+|(puppeteer|playwright|page)_(navigate|click|goto)|navigate(_page)?|sequential_?thinking|(start|interact_with|read)_process\w*|(start|open|create|new)_(session|terminal|shell|browser|page)|(set|change)_(working_)?(dir|directory|cwd)|git_set_working_dir|cd|(execute|run)_cell|send_keys|set_breakpoint)$`)
	statefulText = regexp.MustCompile(`(?i)\b(keeps? (its )?state (between|across) calls|persistent (session|shell|process)|stateful (session|shell|server)|variables? (persist|are kept|stay)|current (tab|page) of the browser|in the current (browser|shell|terminal|repl) session|read-eval-print)\b`)
)

// Shared says that a server keeps state for whoever calls and that all sessions share it.
// Started is the command or address by which it is started. It is for a server of which
// nobody has written whether each session has a process of its own.
func Shared(server, started string, r known.Recognition, listed []Listed) (Finding, bool) {
	why := ""
	if tool, ok := r.Server.Stateful(); ok {
		why = "is known to keep state (" + tool + ")"
	} else if r.Server.Name == "" {
		why = seemsStateful(server, started, listed)
	}
	if why == "" {
		return Finding{}, false
	}
	return Finding{
		Text: fmt.Sprintf("it %s, and all windows share one process of it: one sees and changes what another does", canon.Escape(why)),
		Do:   `write "perSession": true for a process for each session; false says that sharing is meant`,
	}, true
}

// seemsStateful says by what a server that nobody knows seems to keep state; empty if it
// does not seem to.
func seemsStateful(server, started string, listed []Listed) string {
	words := strings.Fields(started)
	if len(words) > 0 { // of a path, the program's name counts
		words[0] = words[0][strings.LastIndexAny(words[0], `/\`)+1:]
	}
	// What follows the package, or has the form of a path, is what the server works on.
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" || strings.ContainsAny(w[:1], "-/.~$") })
	for _, word := range append([]string{server}, words[:min(len(words), 2)]...) {
		if statefulName.MatchString(word) {
			return "seems to keep state, by its name (" + canon.Fit(word, 60) + ")"
		}
	}
	for _, l := range listed {
		switch {
		case statefulTool.MatchString(l.Name):
			return "seems to keep state, by its tool " + canon.Fit(l.Name, 60)
		case statefulText.MatchString(l.Description):
			return "seems to keep state, by what its tool " + canon.Fit(l.Name, 60) + " says of itself"
		}
	}
	return ""
}
