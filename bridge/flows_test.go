package bridge

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"codemode-bridge/profiles"
)

// A rule about flows by content sees what an earlier run left behind a handle, in a later one.
func TestFlowsSeeHandlesOfEarlierRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := asks(func(p *profiles.ProfileSpec) {
			p.Default, p.Asklist = new("allow"), nil
			p.Flows = []profiles.FlowSpec{{From: new("private"), To: new("external"), Action: new("deny"), By: new("content")}}
		})
		b, _, _ := counting(t, spec, 0)
		client := b.connect(t, nil)
		made := eval(t, client, `return Array.from({length: 30000}, (_, i) => "row " + i + " of what nobody else may know")`)
		_, rest, _ := strings.Cut(made, `"handle":"`)
		id, _, ok := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("no handle: %.300s", made)
		}
		const send = `const text = await codemode.read(%q, "[7]"); try { await codemode.b__echo({text: %s}); return "sent" } catch (e) { return "refused" }`
		if got := eval(t, client, fmt.Sprintf(send, id, `"something else that is as long as the row"`)); got != `"sent"` {
			t.Errorf("something else: %s", got)
		}
		if got := eval(t, client, fmt.Sprintf(send, id, "text")); got != `"refused"` {
			t.Errorf("what the handle stands for: %s", got)
		}
	})
}

// What a saved script reads is read by the run that calls it and by its session, and what was read
// before counts for the calls of a saved script.
func TestContextSurvivesSavedScripts(t *testing.T) {
	const send = `try { await codemode.a__echo({text: "hello"}); return "sent" } catch (e) { return e.name }`
	for name, scripts := range map[string][]string{
		"read by a saved script":              {`await codemode.run("twice", {n: 1}); ` + send},
		"read by a saved script, a run ago":   {`return await codemode.run("twice", {n: 1})`, send},
		"sent by a saved script":              {`await codemode.a__echo({n: 1}); try { await codemode.run("twice", {n: 1}); return "sent" } catch (e) { return e.name }`},
		"sent by a saved script, a run later": {`return await codemode.a__echo({n: 1})`, `try { await codemode.run("twice", {n: 1}); return "sent" } catch (e) { return e.name }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := asks(func(p *profiles.ProfileSpec) {
				p.Default, p.Asklist = new("allow"), nil
				p.Flows = []profiles.FlowSpec{{From: new("private"), To: new("external"), Action: new("deny"), By: new("context")}}
			})
			b := newBench(t, spec)
			withSaved(t, b, spec)
			client := b.connect(t, nil)
			var got string
			for _, script := range scripts {
				got = eval(t, client, script)
			}
			if got != `"ToolCallDeniedError"` {
				t.Errorf("the call after it: %s", got)
			}
		})
	}
}
