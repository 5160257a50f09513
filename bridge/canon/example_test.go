package canon_test

import (
	"fmt"
	"log"

	"codemode-bridge/bridge/canon"
)

// Two spellings of the same arguments have one frozen form and one digest. A
// number keeps all of its digits.
func ExampleParse() {
	one, err := canon.Parse([]byte(`{"path": "a\u002fb", "id": 12345678901234567890}`))
	if err != nil {
		log.Fatal(err)
	}
	other, err := canon.Parse([]byte(`{"id":12345678901234567890,"path":"a/b"}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(one.Bytes()), one.Digest() == other.Digest())

	_, err = canon.Parse([]byte(`{"path": "notes.md", "path": "/etc/shadow"}`))
	fmt.Println(err)
	// Output:
	// {"id":12345678901234567890,"path":"a/b"} true
	// reading arguments at /path: the name occurs twice in its object
}

// People and the log see arguments without their secrets.
func ExampleDisplay() {
	args, err := canon.Parse([]byte(`{"to": "ann@example.com", "password": "hunter2", "body": "pay\u202eyap"}`))
	if err != nil {
		log.Fatal(err)
	}
	shown := canon.Display(args, canon.DisplayOptions{})
	fmt.Println(string(shown.JSON))
	fmt.Println("hidden:", shown.Hidden)
	// Output:
	// {"body":"pay\\u{202E}yap","password":"[hidden]","to":"ann@example.com"}
	// hidden: 1
}

// What a terminal would obey and what a person cannot see is written out.
func ExampleEscape() {
	fmt.Println(canon.Escape("done\x1b[2J\u200b, grüße"))
	// Output: done\u{1B}[2J\u{200B}, grüße
}
