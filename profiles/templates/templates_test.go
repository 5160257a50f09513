package templates

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"
)

// load makes a profile of a template, as `profiles add` does. Its examples are
// run by that.
func load(t *testing.T, text string) (*profiles.Profile, profiles.ProfileSpec) {
	t.Helper()
	cfg, err := config.Parse("config.json", []byte(`{"evaluation": {"profiles": {"p": `+text+`}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := cfg.Profiles.Profile("p")
	return p, *cfg.Evaluation.Profiles["p"]
}

func TestEveryTemplateLoads(t *testing.T) {
	all := All()
	if len(all) < 5 {
		t.Fatalf("there are %d templates", len(all))
	}
	for _, one := range all {
		t.Run(one.Name, func(t *testing.T) {
			if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(one.Name) || !strings.HasSuffix(one.Summary, ".") || !strings.HasPrefix(one.Text, "{") {
				t.Errorf("%q, %q", one.Name, one.Summary)
			}
			_, spec := load(t, one.Text)
			for i, r := range spec.Rules {
				if r.Name == nil || r.Examples == nil || len(r.Examples.Match) == 0 || len(r.Examples.NoMatch) == 0 {
					t.Errorf("rule %d has no name or lacks examples", i)
				}
			}
			if found, ok := Find(one.Name); !ok || found != one {
				t.Errorf("found %v, %v", found, ok)
			}
		})
	}
	if _, ok := Find("nosuch"); ok {
		t.Error("there is a template that is not there")
	}
}

// What the templates are for, as rows.
func TestTemplatesDecide(t *testing.T) {
	for _, row := range []struct{ template, tool, args, want string }{
		{"read-only", "github__list_issues", `{}`, "allow"},
		{"read-only", "github__create_issue", `{}`, "deny"},
		{"read-only", "fs__get_and_delete", `{}`, "deny"},
		{"read-only", "search_tools", `{}`, "allow"},
		{"read-only", "db__query", `{"sql":"select 1; drop table x"}`, "deny"},
		{"read-only", "db__query", `{"sql":"select 1"}`, "allow"},

		{"supervised-files", "filesystem__read_text_file", `{"path":"a.txt"}`, "allow"},
		{"supervised-files", "filesystem__read_text_file", `{"path":"/home/ann/.aws/credentials"}`, "deny"},
		{"supervised-files", "filesystem__read_text_file", `{"path":"a/../../.env"}`, "deny"},
		{"supervised-files", "filesystem__write_file", `{"path":"a.txt"}`, "ask"},
		{"supervised-files", "filesystem__write_file", `{"path":"/etc/hosts"}`, "deny"},
		{"supervised-files", "filesystem__write_file", `{"path":"C:\\Windows\\x"}`, "deny"},
		{"supervised-files", "github__list_issues", `{}`, "allow"},
		{"supervised-files", "mail__send", `{}`, "ask"},

		{"git-safe", "git__git_status", `{}`, "allow"},
		{"git-safe", "git__git_commit", `{}`, "ask"},
		{"git-safe", "github__merge_pull_request", `{}`, "ask"},
		{"git-safe", "github__update_ref", `{"force":true}`, "deny"},
		{"git-safe", "github__delete_file", `{}`, "deny"},
		{"git-safe", "mail__send", `{}`, "ask"},

		{"mail-ask", "gmail__search_messages", `{}`, "allow"},
		{"mail-ask", "gmail__create_draft", `{}`, "allow"},
		{"mail-ask", "gmail__send_message", `{"to":"a@b.c"}`, "ask"},
		{"mail-ask", "gmail__delete_message", `{}`, "deny"},
		{"mail-ask", "gmail__create_filter", `{}`, "deny"},

		{"paranoid", "time__now", `{}`, "ask"},
		{"paranoid", "sh__run_command", `{}`, "manual"},
		{"paranoid", "search_tools", `{}`, "allow"},
	} {
		one, ok := Find(row.template)
		if !ok {
			t.Fatalf("there is no template %s", row.template)
		}
		p, _ := load(t, one.Text)
		call := profiles.Call{Tool: row.tool}
		if server, tool, ok := strings.Cut(row.tool, "__"); ok {
			call.Server, call.Tool = server, tool
		}
		d := json.NewDecoder(strings.NewReader(row.args))
		d.UseNumber()
		if err := d.Decode(&call.Args); err != nil {
			t.Fatal(err)
		}
		decision := p.Decide(call)
		got := decision.Disposition.String()
		if decision.Manual {
			got = "manual"
		}
		if got != row.want {
			t.Errorf("%s: %s %s: %s, want %s (%s)", row.template, row.tool, row.args, got, row.want, fmt.Sprint(decision.Reasons))
		}
	}
}
