package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/tsdecl"
	"codemode-bridge/profiles"
)

// The discovery functions, tools of the reserved server "".
const (
	SearchTools   = "search_tools"
	GetTools      = "get_tools"
	GetToolSchema = "get_tool_schema"
)

// discovery are their definitions.
var discovery = []Definition{
	{
		Name:  SearchTools,
		Title: "Search tools",
		Description: "Find tools and saved scripts by words of their names, descriptions and parameters; best first, [] if nothing fits. " +
			"The best come with declarations. Without a limit the answer is short.",
		Input: json.RawMessage(`{"type":"object","required":["query"],"additionalProperties":false,"properties":{` +
			`"query":{"type":"string","minLength":1,"maxLength":1000,"description":"What the tool should do, in a few words, such as: create issue"},` +
			`"server":{"type":"string","description":"Only tools of this server"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":50,"description":"Tools to give at most; without it, as many as fit in 400 tokens"}}}`),
		Output: json.RawMessage(`{"type":"array","items":{"type":"object","required":["name","summary"],"properties":{` +
			`"name":{"type":"string"},"summary":{"type":"string"},"declaration":{"type":"string"},` +
			`"unmatched":{"type":"array","items":{"type":"string"},"description":"Words of the query that this tool doesn't have"}}}}`),
		Annotations: honest,
	},
	{
		Name:        GetTools,
		Title:       "List tools",
		Description: "List tools by server, then saved scripts, page by page. At most five tools come with declarations.",
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
			`"server":{"type":"string","description":"Only tools of this server"},` +
			`"cursor":{"type":"string","description":"next of the page before"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":200,"default":40,"description":"Tools a page"}}}`),
		Output: json.RawMessage(`{"type":"object","required":["tools","total"],"properties":{` +
			`"servers":{"type":"array","items":{"type":"object","required":["server","tools"],"properties":{"server":{"type":"string"},"tools":{"type":"integer"}}}},` +
			`"tools":{"type":"array","items":{"type":"object","required":["name","summary"],"properties":{` +
			`"name":{"type":"string"},"summary":{"type":"string"},"declaration":{"type":"string"}}}},` +
			`"total":{"type":"integer"},"next":{"type":"string","description":"Cursor of the next page"}}}`),
		Annotations: honest,
	},
	{
		Name:        GetToolSchema,
		Title:       "Declaration of a tool",
		Description: "The TypeScript declaration of one tool or saved script, with JSDoc.",
		Input: json.RawMessage(`{"type":"object","required":["name"],"additionalProperties":false,"properties":{` +
			`"name":{"type":"string","minLength":1,"description":"Name of the tool, such as github__create_issue"}}}`),
		Output: json.RawMessage(`{"type":"object","required":["name","summary","declaration"],"properties":{` +
			`"name":{"type":"string"},"summary":{"type":"string"},"declaration":{"type":"string"}}}`),
		Annotations: honest,
	},
}

// honest are the annotations of a function that only reads what we hold.
var honest = func() profiles.Annotations {
	yes, no := true, false
	return profiles.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no}
}()

// An ArgumentError says what is wrong with the arguments of a discovery
// function.
type ArgumentError struct {
	Function string
	Message  string // such as: query must be a non-empty string
}

func (e *ArgumentError) Error() string { return e.Function + ": " + e.Message }

// Discover answers a discovery function from the view; the shapes of answers
// stand in the package comment. The caller has decided that the function may be
// called. The note is a line about the answer that has no place in it, for whoever asked:
// why there is nothing, and which servers could not be searched; "" if there is nothing to
// say. Arguments are read strictly: an unknown name, a wrong type or a
// missing argument is an *ArgumentError, and so is an outdated cursor or an unknown
// server. An unknown tool is an *UnknownError.
func Discover(v *View, function string, args json.RawMessage) (answer json.RawMessage, note string, err error) {
	what, note, err := discover(v, function, args)
	if err != nil {
		return nil, "", err
	}
	answer, err = writeAnswer(function, what)
	return answer, note, err
}

func discover(v *View, function string, args json.RawMessage) (answer any, note string, err error) {
	switch function {
	case SearchTools:
		a, err := readArguments(function, args, "query", "server", "limit")
		if err != nil {
			return nil, "", err
		}
		q := SearchQuery{Query: a.text("query", true, 1000), Server: a.text("server", false, 256), Limit: a.count("limit", MaxLimit)}
		a.server(v, &q.Server)
		if a.err != nil {
			return nil, "", a.err
		}
		found := v.Search(q)
		return found.Tools, found.Note(q), nil
	case GetTools:
		a, err := readArguments(function, args, "server", "cursor", "limit")
		if err != nil {
			return nil, "", err
		}
		q := PageQuery{Server: a.text("server", false, 256), Cursor: a.text("cursor", false, 256), Limit: a.count("limit", maxPage)}
		a.server(v, &q.Server)
		if a.err != nil {
			return nil, "", a.err
		}
		page, err := v.Page(q)
		if err != nil {
			return nil, "", &ArgumentError{function, err.Error()}
		}
		if absent := ListAbsent(v.Absent(), 300); absent != "" && q.Server == "" && q.Cursor == "" {
			note = "not listed: " + absent
		}
		return page, note, nil
	case GetToolSchema:
		a, err := readArguments(function, args, "name")
		if err != nil {
			return nil, "", err
		}
		name := a.text("name", true, 1000)
		if a.err != nil {
			return nil, "", a.err
		}
		t, err := v.find(name)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", function, err)
		}
		return Item{Name: t.Script, Summary: t.Summary(), Declaration: v.catalog.show(t, tsdecl.Options{Doc: true})}, "", nil
	}
	return nil, "", &UnknownError{tsdecl.Plain(function, MaxName), v.Near(function, 3)}
}

// arguments are the arguments of one call, read by name. The first thing that
// is wrong is kept in err.
type arguments struct {
	function string
	values   map[string]json.RawMessage
	err      error
}

func readArguments(function string, raw json.RawMessage, known ...string) (*arguments, error) {
	a := &arguments{function: function}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, &a.values); err != nil || a.values == nil {
		return nil, &ArgumentError{function, "the argument must be one object with " + strings.Join(known, ", ")}
	}
	names := make([]string, 0, len(a.values))
	for name := range a.values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, &ArgumentError{function, fmt.Sprintf("there is no argument %q: it takes %s", tsdecl.Plain(name, 60), strings.Join(known, ", "))}
		}
	}
	return a, nil
}

func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.err = &ArgumentError{a.function, fmt.Sprintf(format, args...)}
	}
}

// given reports whether the argument is there. undefined and null are not.
func (a *arguments) given(name string) bool {
	raw, ok := a.values[name]
	return ok && string(raw) != "null"
}

func (a *arguments) text(name string, required bool, limit int) string {
	if !a.given(name) {
		if required {
			a.fail("%s must be a non-empty string", name)
		}
		return ""
	}
	var s string
	switch err := json.Unmarshal(a.values[name], &s); {
	case err != nil && required, err == nil && required && strings.TrimSpace(s) == "":
		a.fail("%s must be a non-empty string", name)
	case err != nil:
		a.fail("%s must be a string", name)
	case utf8.RuneCountInString(s) > limit:
		a.fail("%s must have at most %d characters, it has %d", name, limit, utf8.RuneCountInString(s))
	}
	return s
}

func (a *arguments) count(name string, limit int) int {
	if !a.given(name) {
		return 0
	}
	var f float64 // so that 10.0, which is how some clients write 10, will do
	if err := json.Unmarshal(a.values[name], &f); err != nil || f != float64(int(f)) || f < 1 || f > float64(limit) {
		a.fail("%s must be a whole number from 1 to %d", name, limit)
		return 0
	}
	return int(f)
}

// server replaces a server's name by the configured one, from which it may differ as
// Servers says. The error for one without tools says why it has none; that for an unknown
// name lists the others.
func (a *arguments) server(v *View, name *string) {
	if *name == "" || a.err != nil {
		return
	}
	meant := v.catalog.Servers(*name)
	for _, s := range v.Servers() {
		if slices.Contains(meant, s.Server) {
			*name = s.Server
			return
		}
	}
	for _, s := range v.Absent() {
		if s.Server == *name || slices.Contains(meant, s.Server) {
			a.fail("not listed: %s", ListAbsent([]Absent{s}, 300))
			return
		}
	}
	a.fail("no server is called %q. %s", tsdecl.Plain(*name, 60), v.Describe(300))
}
