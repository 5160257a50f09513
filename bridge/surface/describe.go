package surface

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/catalog"
)

// maxDescription bounds an eval tool's description, in bytes: some clients
// cut what is longer.
const maxDescription = 2048

// What stands in every description is what a model must know before its first script. The
// rest is said where it first matters: in the answer of a script that is paused or has
// failed, with a result that was too large, with media. bridge/rules_test.go lists the
// rules, and has each said in such a run.
const (
	describeHead = "Runs JavaScript/TypeScript that calls tools of MCP servers, many in one script (loop, filter, Promise.all). Only what you return enters the conversation: return just what is needed.\n"

	describeMore      = "Details: codemode.search_tools({query}).\n"
	describeDeclared  = "Answers typed string are text; json(x) parses it.\n"
	describeSigned    = "TOOLS: await codemode.server__tool({...}). Untyped arguments are strings. Answers are text (json(x) parses it), or the object after =>, a tool's own or else its server's.\n"
	describeSearching = "FIND: await codemode.search_tools({query: \"create issue\", server?}) -> [{name, summary, declaration}], [] if nothing fits. Never guess names or arguments: if unsure, return the declarations and call in your next script.\n" +
		"CALL: await codemode.server__tool({arg: 1}). Most answers are text; json(x) parses it.\n"

	describeRules = "Failed calls throw ToolError. Some calls wait for a person. ToolCallDeniedError is final unless .retryable: take no other route, tell the user its reason.\n" +
		"No fetch, import or files here: use tools."

	maxAbsent = 160 // bytes of the line about servers that are not ready
)

// describe writes an eval tool's description: the same bytes for the same tools. All
// tools are listed by their declarations if these fit, or else by their signatures; then,
// and if no server is missing, listed is set: no search is needed. Else the description
// says which servers there are and how to search.
func describe(view *catalog.View) (text string, listed bool) {
	tail := offered(view) + "EXAMPLE\n" + example(view) + describeRules
	absent := catalog.ListAbsent(view.Absent(), maxAbsent)
	if absent != "" {
		tail = "NOT READY: " + absent + "\n" + tail
	}
	room := maxDescription - len(describeHead) - len(tail)
	if all, ok := view.Declarations(room - len("TOOLS\n\n") - len(describeDeclared)); ok && all != "" {
		return describeHead + "TOOLS\n" + strings.TrimRight(all, "\n") + "\n" + describeDeclared + tail, absent == ""
	}
	more := ""
	if slices.Contains(view.Names(), catalog.SearchTools) {
		more = describeMore
	}
	if all, ok := view.Signatures(room - len(describeSigned+more+"\n")); ok && all != "" {
		return describeHead + describeSigned + all + "\n" + more + tail, absent == ""
	}
	servers := view.Describe(room - len(describeSearching) - 1)
	return describeHead + strings.TrimRight(servers, "\n") + "\n" + describeSearching + tail, false
}

// offered says how to read what the servers have besides tools, if any has it.
func offered(view *catalog.View) (text string) {
	resources, prompts := view.Offers()
	if resources {
		text += "Resources: codemode.resources.list(server?), .read(server, uri).\n"
	}
	if prompts {
		text += "Prompts: codemode.prompts.list(server?), .get(server, name, args).\n"
	}
	return text
}

// example is a script that could run here: with tools that the view shows, or with none of
// any server if it shows no two that go together and no tool that reads one thing.
func example(view *catalog.View) string {
	issues, tickets := view.Having("list_issues", "owner", "repo", "state"), view.Having("list_issues", "assignee")
	if issues != nil && tickets != nil && issues.Server != tickets.Server {
		return fmt.Sprintf(`const [open, mine] = (await Promise.all([
  codemode.%s({owner:"a", repo:"b", state:"open"}), codemode.%s({assignee:"me"})])).map(json);
return open.filter(i => !mine.some(m => m.title === i.title)).map(i => ({n: i.number, t: i.title}));
`, issues.Script, tickets.Script)
	}
	if issues != nil {
		return fmt.Sprintf(`const issues = json(await codemode.%s({owner:"a", repo:"b", state:"open"}));
return issues.filter(i => !i.assignee).map(i => ({n: i.number, t: i.title}));
`, issues.Script)
	}
	if tool, argument := reader(view); tool != nil {
		call := fmt.Sprintf(`await codemode.%s({%s: "a"})`, tool.Script, argument)
		switch field := tool.OnlyText(); {
		case field != "":
			return "return (" + call + ")." + field + ".slice(0, 99);\n"
		case len(tool.Output) == 0:
			return "return (" + call + ").slice(0, 99);\n"
		}
		return "return " + call + ";\n"
	}
	return `const items = json(await codemode.server__list({open: true}));
return items.filter(i => i.size > 10).map(i => i.name);
`
}

// reader finds a tool that reads one thing by one text, and the name of that argument.
func reader(view *catalog.View) (tool *catalog.Tool, argument string) {
	verbs := []string{"read", "get", "fetch", "query", "search", "find", "list", "convert"}
	type candidate struct {
		tool     *catalog.Tool
		argument string
		verb     int
	}
	var all []candidate
	for _, t := range view.Tools() {
		name := strings.ToLower(t.Name)
		verb := slices.IndexFunc(verbs, func(v string) bool { return strings.HasPrefix(name, v) || strings.Contains(name, "_"+v) })
		if a := theArgument(t); verb >= 0 && a != "" && !media.MatchString(name) && len(t.Script) <= 60 && t.Unread == "" && !t.Deprecated() {
			all = append(all, candidate{t, a, verb})
		}
	}
	if len(all) == 0 {
		return nil, ""
	}
	best := slices.MinFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.verb, b.verb), strings.Compare(a.tool.Server, b.tool.Server), strings.Compare(a.tool.Name, b.tool.Name))
	})
	return best.tool, best.argument
}

// media finds tools whose answers are no text.
var media = regexp.MustCompile(`media|image|audio|video|screenshot|binary`)

// theArgument is the only argument that a tool requires, if it is a text and its name can
// stand in a script as it is.
func theArgument(t *catalog.Tool) string {
	var schema struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if json.Unmarshal(t.Input, &schema) != nil || len(schema.Required) != 1 {
		return ""
	}
	name := schema.Required[0]
	if schema.Properties[name].Type != "string" || len(name) > 20 || reservedWords[name] {
		return ""
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_') {
			return ""
		}
	}
	return name
}

// reservedWords can't be the parameter of a function that the example has.
var reservedWords = map[string]bool{
	"class": true, "const": true, "delete": true, "default": true, "enum": true, "export": true, "for": true, "function": true, "if": true,
	"import": true, "in": true, "new": true, "package": true, "return": true, "static": true, "super": true, "switch": true, "this": true,
	"typeof": true, "var": true, "void": true, "while": true, "with": true, "yield": true, "await": true, "interface": true, "let": true,
	"private": true, "protected": true, "public": true, "do": true, "else": true, "case": true, "break": true, "catch": true, "continue": true,
	"debugger": true, "extends": true, "false": true, "finally": true, "implements": true, "instanceof": true, "null": true, "throw": true,
	"true": true, "try": true, "eval": true, "arguments": true, "codemode": true, "json": true, "all": true,
}
