package provenance

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/canon"
)

func argsOf(t *testing.T, text string) canon.Args {
	t.Helper()
	args, err := canon.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// Arguments are written if the script has the whole object, however a literal may be spelled.
func TestWritten(t *testing.T) {
	for args, script := range map[string]string{
		`{}`:                                 `f()`,
		`{"a":"b"}`:                          `f({a:'b'})`,
		`{"a":"c"}`:                          `g({a: {}}); f( { "a" : ` + "`c`" + ` , } )`,
		`{"a":"\"é\n😀/"}`:                    `f({a: "\"\u00e9\n\ud83d\ude00\/"})`,
		`{"a":"é","b":"$x"}`:                 "f({b: `$x`,\n  a: 'é'})",
		`{"a":[1,-2.5,true,null,{"b":[]}]}`:  `f({a: [1, -2.5, true, null, {b: []},],})`,
		`{"to":["x@y.z"],"body":"it's two"}`: `mail__send({to: ["x@y.z"], body: "it's two"})`,
	} {
		if !new(Memory).Written(script, Sending{Call: 1, Args: argsOf(t, args), Tells: true}) {
			t.Errorf("%s does not count as written in %s", args, script)
		}
	}
	for _, row := range []struct{ args, script, why string }{
		{`{"a":"b"}`, `const a = "b"`, "no object has it"},
		{`{"a":"cafe"}`, `const all = "0123cafe4567"; f({a: all.slice(4, 8)})`, "it is cut out of a text"},
		{`{"a":["c","a","f","e"]}`, `const all = ["a", "c", "e", "f"]; f({a: []})`, "the letters stand there alone"},
		{`{"a":[true,false,true]}`, `f({a: [true, false]})`, "bits are not written"},
		{`{"a":"b"}`, `f({a: "b" + c, d: 1})`, "something is added to it"},
		{`{"a":"b"}`, `f({a: "b", c: 1})`, "the object has more"},
		{`{"a":"b","c":1}`, `f({a: "b"}); g({c: 1})`, "they are two objects"},
		{`{"a":"b","c":1}`, `f({a: "b", a: "b"})`, "one is there twice"},
		{`{"a":"${b}"}`, "f({a: `${b}`})", "it is computed"},
		{`{"a":1}`, `f({a: 12})`, "the number is another"},
		{`{"a":"b"}`, `f({a: "b"`, "it has no end"},
		{`{"a":"\\"}`, `f({a: "\`, "an escape has no end"},
		{`{"a":"x"}`, `f({a: "\u00`, "a code has no end"},
		{`{"a":"x"}`, `f({a: "\ud83d"})`, "half a character"},
	} {
		if new(Memory).Written(row.script, Sending{Call: 1, Args: argsOf(t, row.args), Tells: true}) {
			t.Errorf("%s counts as written in %s: %s", row.args, row.script, row.why)
		}
	}
}

// A script chooses which of its literals it sends: that is worth little, since few such calls count.
func TestFewChoicesCount(t *testing.T) {
	var m Memory
	args := argsOf(t, `{"a":"b"}`)
	counts := func(call int, tells bool) bool {
		return m.Written(`f({a: "b"})`, Sending{Call: call, Args: args, Tells: tells})
	}
	for call := 1; call <= MaxWritten; call++ {
		if !counts(0, true) || !counts(call, true) || !counts(call, true) {
			t.Errorf("call %d does not count", call)
		}
	}
	if counts(MaxWritten+1, true) || counts(0, true) {
		t.Error("one more counts")
	}
	if !counts(1, true) || !counts(MaxWritten+2, false) {
		t.Error("what counted before, or tells nobody anything, does not count")
	}
}

// What was left at a server may go on from there with a call that is written: a commit that is pushed.
func TestWhatWasLeftIsNotWritten(t *testing.T) {
	const script = `commit({message: key}); push({to: "origin"})`
	commit, push := argsOf(t, `{"message":"yek"}`), argsOf(t, `{"to":"origin"}`)
	for _, row := range []struct {
		left Sending
		want bool // the push counts as written
	}{
		{Sending{Call: 1, Server: "git", Args: commit, Leaves: true}, false},
		{Sending{Call: 1, Server: "other", Args: commit, Leaves: true}, true},
		{Sending{Call: 0, Server: "git", Args: commit, Leaves: true}, true}, // it was not made
		{Sending{Call: 1, Server: "git", Args: commit}, true},               // nothing private was read before
		{Sending{Call: 1, Server: "git", Args: push, Leaves: true}, true},   // it stands in the script itself
	} {
		var m Memory
		m.Written(script, row.left)
		if got := m.Written(script, Sending{Call: 2, Server: "git", Args: push, Tells: true}); got != row.want {
			t.Errorf("after %+v: %v", row.left, got)
		}
		if !m.Written(script, Sending{Call: 3, Server: "git", Args: push}) {
			t.Error("what tells nobody is not written")
		}
	}
}

// A script that is made to be hard to look through is given up.
func TestLookingHasAnEnd(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 30) + `1` + strings.Repeat(`}`, 30)
	for before, want := range map[int]bool{10: true, maxLooks: false} {
		script := strings.Repeat("{a:", before) + ";" + deep
		if got := new(Memory).Written(script, Sending{Call: 1, Args: argsOf(t, deep), Tells: true}); got != want {
			t.Errorf("with %d braces before it: %v", before, got)
		}
	}
}
