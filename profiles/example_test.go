package profiles_test

import (
	"encoding/json"
	"fmt"
	"log"

	"codemode-bridge/profiles"
)

// read parses a section of the configuration, as package config does after it
// has checked its keys.
func read(text string) *profiles.Set {
	var spec profiles.Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		log.Fatal(err)
	}
	set, problems := profiles.Parse(spec)
	if problems != nil {
		log.Fatal(problems)
	}
	return set
}

// The strictest match decides, whatever the order.
func ExampleProfile_Decide() {
	set := read(`{"profiles": {"supervised": {
		"asklist":  ["filesystem__write_*"],
		"denylist": ["filesystem__delete_*"],
		"rules": [{"tools": ["filesystem__*"], "when": "clean(args.path).startsWith('/etc/')", "action": "deny", "reason": "system configuration"}]
	}}}`)
	supervised, _ := set.Profile("supervised")
	for _, call := range []profiles.Call{
		{Server: "filesystem", Tool: "read_file", Args: map[string]any{"path": "notes.md"}},
		{Server: "filesystem", Tool: "write_file", Args: map[string]any{"path": "notes.md"}},
		{Server: "filesystem", Tool: "write_file", Args: map[string]any{"path": "/tmp/../etc/hosts"}},
	} {
		d := supervised.Decide(call)
		fmt.Printf("%s %s: %s\n", call.Tool, call.Args["path"], d.Disposition)
		fmt.Println("  ", d.Because())
	}
	// Output:
	// read_file notes.md: allow
	//    default: allow [profile supervised]
	// write_file notes.md: ask
	//    asklist: "filesystem__write_*" [profile supervised]
	// write_file /tmp/../etc/hosts: deny
	//    rule rules/0 (deny): system configuration [profile supervised]
}

// A script is judged by the policy that it began with and by today's.
func ExampleStricter() {
	call := profiles.Call{Server: "mail", Tool: "send"}
	before, _ := read(`{"profiles": {"p": {"asklist": ["mail__*"]}}}`).Profile("p")
	today, _ := read(`{"profiles": {"p": {}}}`).Profile("p")
	fmt.Println(today.Decide(call).Disposition, profiles.Stricter(before.Decide(call), today.Decide(call)).Disposition)
	// Output: allow ask
}

// What an edit loosens waits for an approver.
func ExampleLooser() {
	before := read(`{"profiles": {"p": {"denylist": ["mail__*"], "asklist": ["fs__*"]}}}`)
	after := read(`{"profiles": {"p": {"denylist": ["mail__*", "pay__*"]}}}`)
	for _, why := range profiles.Looser(before, after) {
		fmt.Println(why)
	}
	// Output:
	// profile p: asklist: "fs__*" is gone
}
