package catalog_test

import (
	"encoding/json"
	"fmt"

	"codemode-bridge/bridge/catalog"
)

var servers = []catalog.Server{
	{Name: "chrome-devtools", Tools: []catalog.Definition{{Name: "take-screenshot", Description: "Takes a picture of the page"}}},
	{Name: "github", Tools: []catalog.Definition{
		{Name: "create_issue", Description: "Opens an issue", Input: json.RawMessage(`{"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}`)},
		{Name: "list_issues", Description: "Lists the issues of a repository"},
	}},
}

// A name in scripts is a legal identifier that no other tool has; policy goes
// by the server's own names.
func ExampleBuild() {
	for _, tool := range catalog.Build(servers).Tools() {
		if tool.Server != "" {
			fmt.Println(tool.Script, "is", tool.Path())
		}
	}
	// Output:
	// chrome_devtools__take_screenshot is chrome-devtools__take-screenshot
	// github__create_issue is github__create_issue
	// github__list_issues is github__list_issues
}

// A view searches what a profile may know, and nothing else.
func ExampleView_Search() {
	all := catalog.Build(servers).View(nil)
	reading := catalog.Build(servers).View(func(_, tool string) bool { return tool != "create_issue" })
	for _, view := range []*catalog.View{all, reading} {
		found := view.Search(catalog.SearchQuery{Query: "open issue quickly"})
		for _, tool := range found.Tools {
			fmt.Println(tool.Name, "-", tool.Summary)
		}
		fmt.Println("no tool has", found.Unmatched)
	}
	// Output:
	// github__create_issue - Opens an issue
	// github__list_issues - Lists the issues of a repository
	// no tool has [quickly]
	// github__list_issues - Lists the issues of a repository
	// no tool has [open quickly]
}
