package source_test

import (
	"fmt"

	"codemode-bridge/sandbox/source"
)

// What models put around a script is taken away, and types with it.
func ExampleRead() {
	script, err := source.Read("Here is the script:\n```ts\nconst n: number = 1;\nreturn n + 1;\n```\n")
	fmt.Println(err == nil, script.LineOf(3))

	_, err = source.Read("return [1, 2;")
	fmt.Println(err.Message)
	fmt.Println(err.Frame)

	// Output:
	// true const n: number = 1;
	// expected "]" but found ";"
	// > 1 | return [1, 2;
	//     |             ^
}
