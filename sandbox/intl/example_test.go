package intl_test

import (
	"fmt"

	"codemode-bridge/sandbox/intl"
)

// What is not known is an error that says what to write instead.
func ExampleNewNumber() {
	euro := map[string]string{"style": "currency", "currency": "EUR"}
	options := func(name string) (string, bool) { v, set := euro[name]; return v, set }

	n, err := intl.NewNumber("en-US", "Intl.NumberFormat", options)
	if err != nil {
		panic(err)
	}
	fmt.Println(n.Format(intl.Float(1234.5)))

	_, err = intl.NewNumber("de-DE", "Intl.NumberFormat", options)
	fmt.Println(err)

	// Output:
	// €1,234.50
	// the locale de-DE is not available here: write "en-US"; for 2024-03-05 use toISOString, and for other forms put the pieces of formatToParts together
}
