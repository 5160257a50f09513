package upstream

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestRedactor(t *testing.T) {
	r := newRedactor(Spec{
		Env:     map[string]string{"TOKEN": `se"cret-1`, "DEBUG": "true"},
		PassEnv: []string{"PASSED"},
		Headers: map[string]string{"Authorization": "Bearer secret-2"},
		URL:     "https://user:secret-3@host/mcp?key=secret%204&n=1",
	}, []string{"PASSED=secret-5", "OTHER=visible-6"})
	for in, want := range map[string]string{
		`got se"cret-1`:             "got [hidden]",
		`{"t":"se\"cret-1"}`:        `{"t":"[hidden]"}`,
		"Bearer secret-2":           "[hidden]",
		"token=secret-2;":           "token=[hidden];",
		"https://user:secret-3@h":   "https://user:[hidden]@h",
		"key=secret+4 or secret 4":  "key=[hidden] or [hidden]",
		"secret-5 visible-6 true 1": "[hidden] visible-6 true 1",
	} {
		if got := r.show(in, 100); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}

// What a program of ours reports is logged at its level, without secrets and with
// what does not print made visible; its last error is kept. What it did not write as
// a report is kept as the last lines of any program are.
func TestReports(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	said := tail{own: true, shown: newRedactor(Spec{Child: Child{Own: true}, Env: map[string]string{"A": "{everything}"}, Secrets: []string{"secret-1"}}, nil)}
	said.read(strings.NewReader(`{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":"left out","why":"\u001b[31m secret-1 {everything}"}
{"level":"DEBUG","msg":"too much"}
{"level":"ERROR","msg":"first","err":"this"}
{"level":"ERROR","msg":"last","err":"that"}
{"level":"WARN"}
panic: no report`), log)
	text := logged.String()
	if want := `level=WARN msg="left out" why="\\x1b[31m [hidden] {everything}"` + "\n"; !strings.HasSuffix(text, want) || strings.Count(text, "\n") != 1 {
		t.Errorf("logged %s, want %s", text, want)
	}
	if got := said.reason(); got != "that" {
		t.Errorf("the reason is %q", got)
	}
	if got, want := said.last(), `; its stderr ends: {"level":"WARN"} | panic: no report`; got != want {
		t.Errorf("the last lines are %q, want %q", got, want)
	}
}
