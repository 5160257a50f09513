package scripts_test

import (
	"fmt"

	"codemode-bridge/bridge/scripts"
)

// A saved script begins with a header that says what it does and takes.
func ExampleParse() {
	good := scripts.Parse([]byte("// description: Open issues, oldest first.\n// input: {\"type\": \"object\", \"properties\": {\n//   \"repo\": {\"type\": \"string\"}}}\nreturn [];\n"))
	fmt.Println(good.Description, good.Problem == nil)

	bad := scripts.Parse([]byte("// descripton: Open issues.\nreturn [];\n"))
	fmt.Println(bad.Problem.Line, bad.Problem.Message)
	// Output:
	// Open issues, oldest first. true
	// 1 unknown key "descripton" in the header; it has description, input and output (a line that goes on is indented by two)
}
