package templates_test

import (
	"fmt"

	"codemode-bridge/profiles/templates"
)

func ExampleFind() {
	template, ok := templates.Find("read-only")
	fmt.Println(ok, template.Summary)
	// Output:
	// true Looks and changes nothing: tools with a reading name are allowed, all others denied.
}
