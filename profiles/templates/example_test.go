package templates_test

import (
	"fmt"

	"codemode-bridge/profiles/templates"
)

func ExampleFind() {
	template, ok := templates.Find("read-only")
	fmt.Println(ok, template.Summary)
	fmt.Println(template.Profile())
	// Output:
	// true Looks and changes nothing: reading is allowed where it is known that a call only reads, all else is denied.
	// { "extends": "builtin:read-only@1" }
}
