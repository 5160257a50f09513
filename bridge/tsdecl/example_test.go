package tsdecl_test

import (
	"encoding/json"
	"fmt"

	"codemode-bridge/bridge/tsdecl"
)

const issue = `{"type": "object", "required": ["owner", "title"], "properties": {
	"owner": {"type": "string", "description": "who the repository belongs to"}, "title": {"type": "string", "maxLength": 256},
	"labels": {"type": "array", "items": {"type": "string"}}, "state": {"enum": ["open", "closed"]}}}`

// The short form is one line for a model to read.
func ExampleFunc() {
	fmt.Println(tsdecl.Func("github__create_issue", json.RawMessage(issue), nil, tsdecl.Options{}))
	// Output:
	// codemode.github__create_issue(args: {owner: string; title: string; labels?: string[]; state?: "open" | "closed"}): Promise<string>
}

// The long form has what the schema says in words.
func ExampleFunc_doc() {
	fmt.Println(tsdecl.Func("github__create_issue", json.RawMessage(issue), nil, tsdecl.Options{Doc: true, Description: "Opens an issue."}))
	// Output:
	// /** Opens an issue. */
	// codemode.github__create_issue(args: {
	//   /** who the repository belongs to */
	//   owner: string;
	//   /** @maxLength 256 */
	//   title: string;
	//   labels?: string[];
	//   state?: "open" | "closed";
	// }): Promise<string>
}
