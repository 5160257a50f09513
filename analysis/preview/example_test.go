package preview_test

import (
	"fmt"
	"log"

	"codemode-bridge/analysis/preview"
)

// Before a script runs, the tools that it calls are read from its syntax tree.
func ExampleScript() {
	program, at, err := parse(`const {list_issues: list} = codemode.github;
const issues = await list({state: "open"});
for (const i of issues) {
  if (i.stale) await codemode.github__close_issue({number: i.number});
}
return codemode[input.then]({});`)
	if err != nil {
		log.Fatal(err)
	}
	report := preview.Script(program, at)
	for _, c := range report.Calls {
		fmt.Printf("%d:%d %q %s loop %v, may be skipped %v\n", c.Position.Line, c.Position.Column, c.Name, c.Args, c.Loop, c.Branch)
	}
	fmt.Println("computed names:", report.Unknown)
	// Output:
	// 2:22 "github__list_issues" {"state":"open"} loop false, may be skipped false
	// 4:22 "github__close_issue"  loop true, may be skipped true
	// 6:8 "" {} loop false, may be skipped false
	// computed names: 1
}
