package main

import (
	"encoding/json"
	"testing"

	"codemode-bridge/profiles/flow"
)

// ordinary returns the calls of a session's scripts.
func (s session) ordinary() (all []call) {
	for _, e := range s.Evals {
		all = append(all, e.Calls...)
	}
	return all
}

// What one session reads is not found in what another sends: they are about other work, so each
// find would be a false one. It is found in fewer than one of a hundred calls.
func TestFlowsFindNothingInOtherWork(t *testing.T) {
	all, err := sessions(theSessions)
	if err != nil {
		t.Fatal(err)
	}
	calls, falsely, read := 0, 0, 0
	for _, reader := range all {
		var m flow.Memory
		for n, c := range reader.ordinary() {
			reply, err := json.Marshal(map[string]any{"text": c.Answer, "structured": c.Structured})
			if err != nil {
				t.Fatal(err)
			}
			m.Read(n, reply)
			read += len(reply)
		}
		for _, sender := range all {
			if sender.Name == reader.Name {
				continue
			}
			for _, c := range sender.ordinary() {
				var args any
				if err := json.Unmarshal(c.Args, &args); len(c.Args) > 0 && err != nil {
					t.Fatal(err)
				}
				server, _ := c.split()
				calls++
				if found := m.Find(0, server, args); len(found.Finds) > 0 {
					falsely++
					t.Logf("%s sends what %s has read: %s %s: %+v", sender.Name, reader.Name, c.Tool, c.Args, found.Finds[0])
				}
			}
		}
	}
	if read < 10_000 || calls < 1000 || falsely*100 >= calls {
		t.Errorf("%d of %d calls are found, of %d bytes", falsely, calls, read)
	}
}
