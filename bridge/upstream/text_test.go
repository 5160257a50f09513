package upstream

import "testing"

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
