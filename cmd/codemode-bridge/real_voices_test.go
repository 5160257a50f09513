//go:build real

package main_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// What real servers say and ask in the middle of a script reaches real clients of both
// eras, labelled as the server's.
func TestRealServersSpeak(t *testing.T) {
	for _, way := range [][2]string{{"sdk", "stdio"}, {"legacy", "http"}, {"modern", "stdio"}, {"modern", "http"}} {
		t.Run(way[0]+"/"+way[1], func(t *testing.T) { realServersSpeak(t, way[0], way[1]) })
	}
}

func realServersSpeak(t *testing.T, kind, transport string) {
	r := newReal(t)
	var config struct {
		Servers map[string]map[string]any `json:"servers"`
	}
	text, err := os.ReadFile(r.config)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]any{"watch": config.Servers["watch"]}
	for name, keys := range map[string]map[string]any{
		"everything": {"roots": []string{"file:///home/me/work"}},
		"shy":        {"elicitation": "deny"},
		"asks":       {"sampling": "ask"},
		"borrows":    {"sampling": "allow"},
	} {
		keys["command"], keys["args"] = config.Servers["everything"]["command"], config.Servers["everything"]["args"]
		servers[name] = keys
	}
	if text, err = json.Marshal(map[string]any{"servers": servers}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, r.config, string(text))

	j := r.job(t, transport)
	j.Decision, j.Answers, j.Model, j.Logs = "once", map[string]any{"name": "Ada", "answer": "yes"}, "forty-two", "info"
	sampling := func(server string) clientStep {
		return evalStep(`
			const tool = input + "__trigger-sampling-request";
			try { return await codemode[tool]({prompt: "What is six by seven?"}) } catch (e) { return e.message }`, server)
	}
	works := evalStep(`return await codemode["everything__trigger-long-running-operation"]({duration: 1.2, steps: 3})`, nil)
	works.Progress = true
	const asks = `const text = async (tool) => { try { return await codemode[tool]({}) } catch (e) { return e.message } };
		return await text(input + "__trigger-elicitation-request")`
	j.Steps = []clientStep{
		works,
		evalStep(asks, "everything"),
		evalStep(asks, "shy"),
		sampling("everything"), sampling("asks"), sampling("borrows"),
		evalStep(`return await codemode["everything__get-roots-list"]({})`, nil),
		evalStep(`return await codemode.watch__log({})`, nil),
		evalStep(`
			const all = (await codemode.resources.list("everything")).resources;
			const read = await codemode.resources.read("everything", all[0].uri);
			const prompt = await codemode.prompts.get("everything", "args-prompt", {city: "Oslo"});
			return [all.length > 0, JSON.stringify(read).length > 10, JSON.stringify(prompt).includes("Oslo")];`, nil),
	}
	a := r.client(t, kind, j)
	got := func(i int) string { return a.Steps[i].value(t, "step") }
	holds := func(what, text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is not in %s", what, part, text)
			}
		}
	}

	var said []string
	for _, p := range a.Steps[0].Progress {
		said = append(said, p.Message)
	}
	// The last report comes with the answer, and a client that reads both at once forgets
	// the call before it looks at the report. TestAServersTalkReachesTheClient checks that
	// it is sent.
	holds("progress", strings.Join(said, "\n"), "everything: 1 of 3", "everything: 2 of 3")
	holds("a form", got(1), "- Name: Ada")
	holds("a form that is not asked", got(2), "there is no tool")
	holds("no sampling by default", got(3), "there is no tool")
	holds("sampling after a question", got(4), "forty-two")
	holds("sampling that is allowed", got(5), "forty-two")
	holds("roots", got(6), "file:///home/me/work")
	holds("a log", got(7), "logged")
	holds("resources and prompts", got(8), "[true,true,true]")

	if len(a.Asked) != 2 {
		t.Fatalf("asked %d times: %q", len(a.Asked), a.Asked)
	}
	holds("the form's question", a.Asked[0], "The server `\"everything\"` asks, not codemode-bridge:\n• `\"Please provide", "This approves no call.")
	holds("the question before sampling", a.Asked[1], "The server `\"asks\"` wants to ask your model", "• `\"user: Resource trigger-sampling-request context: What is six by seven?")
	if len(a.Lent) != 2 {
		t.Fatalf("the model was asked %d times", len(a.Lent))
	}
	holds("what the model reads", a.Lent[0].SystemPrompt, "written by the MCP server asks, not by the user", "You are a helpful test server.")
	holds("what the model reads", a.Lent[1].SystemPrompt, "written by the MCP server borrows")
	logged := slices.DeleteFunc(a.Logged, func(l clientLog) bool { return l.Logger == "everything" }) // it logs when it has received the roots
	if len(logged) != 1 || logged[0].Logger != "watch" || logged[0].Level != "warning" || logged[0].Data != `low on ink\x1b[2J` {
		t.Errorf("logged %+v", a.Logged)
	}
}
