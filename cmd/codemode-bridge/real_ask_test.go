//go:build real

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A script under a supervised profile reads and then writes a file: the read is made, the
// write is put to the person at the client, whatever the client's kind and transport, and
// made only after their approval.
func TestRealAsk(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		for _, kind := range []string{"sdk", "legacy", "modern"} {
			for _, decision := range []string{"once", "no", ""} {
				name := transport + "/" + kind + "/" + decision
				if decision == "" {
					name += "cannot ask"
				}
				t.Run(name, func(t *testing.T) { realAsk(t, transport, kind, decision) })
			}
		}
	}
}

func realAsk(t *testing.T, transport, kind, decision string) {
	r := newReal(t)
	var config map[string]any
	text, err := os.ReadFile(r.config)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	config["servers"] = map[string]any{"filesystem": config["servers"].(map[string]any)["filesystem"]}
	config["evaluation"] = map[string]any{"defaultProfile": "supervised",
		"profiles": map[string]any{"supervised": map[string]any{"asklist": []string{"filesystem__write_*"}, "default": "risk"}}}
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, r.config, string(text))

	j := r.job(t, transport)
	j.Decision = decision
	written := filepath.Join(r.files, "written.txt")
	j.Steps = []clientStep{{Op: "list"}, evalStep(`
		const before = await codemode.filesystem__read_text_file({path: input.read});
		try {
			await codemode.filesystem__write_file({path: input.write, content: "by a script"});
			return "written";
		} catch (e) {
			return e.name + " " + e.reason;
		}`, map[string]string{"read": filepath.Join(r.files, "hello.txt"), "write": written})}
	a := r.client(t, kind, j)

	want := map[string]string{"once": `"written"`, "no": `"ToolCallDeniedError elicitation_declined"`, "": `"ToolCallDeniedError elicitation_unsupported"`}[decision]
	if got := a.Steps[1].value(t, "eval"); got != want {
		t.Errorf("the script returned %s, want %s", got, want)
	}
	if _, err := os.Stat(written); (err == nil) != (decision == "once") {
		t.Errorf("after %q the file is there: %v", decision, err == nil)
	}
	asked := 1
	if decision == "" {
		asked = 0
	}
	if len(a.Asked) != asked {
		t.Fatalf("asked %d times: %q", len(a.Asked), a.Asked)
	}
	for _, question := range a.Asked {
		for _, part := range []string{"write_file", "server `filesystem`", "written.txt", "by a script", "Your profile supervised asks before every call of", "HIGH: "} {
			if !strings.Contains(question, part) {
				t.Errorf("%q is missing from the question\n%s", part, question)
			}
		}
	}
	var names []string
	for _, tool := range a.Steps[0].Result.Tools {
		names = append(names, tool.Name)
	}
	// The only profile is the default: eval stands for both.
	if all := strings.Join(names, " "); !strings.Contains(all, "eval") || strings.Contains(all, "codemode_eval_supervised") {
		t.Errorf("the tools are %q", names)
	}
}
