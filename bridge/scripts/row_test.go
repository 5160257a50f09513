package scripts

import (
	"strings"
	"testing"
)

func TestRow(t *testing.T) {
	good := Script{Name: "weekly", File: "weekly.ts", Description: "Counts\nthe issues", Digest: "abc"}
	broken := Script{File: "odd.ts", Problem: &Problem{Line: 3, Column: 7, Message: "unexpected token"}}
	if r := NewRow(good); r.Summary() != "Counts the issues" || !strings.Contains(r.Declaration, "weekly") || r.Problem != "" {
		t.Errorf("got %+v, %q", r, r.Summary())
	}
	if r := NewRow(broken); !strings.HasPrefix(r.Summary(), "broken: ") || r.Line != 3 || r.Declaration != "" {
		t.Errorf("got %+v, %q", r, r.Summary())
	}
	for want, p := range map[string]*Problem{":3:7": broken.Problem, ":3": {Line: 3}, "": {}} {
		if got := p.Place(); got != want {
			t.Errorf("%+v is at %q, want %q", p, got, want)
		}
	}
	all := []Script{good, broken}
	for name, want := range map[string]string{"weekly": "weekly.ts", "weekly.ts": "weekly.ts", "odd.ts": "odd.ts", "odd": ""} {
		if s, ok := Find(all, name); s.File != want || ok != (want != "") {
			t.Errorf("%s: found %q", name, s.File)
		}
	}
	if got := Call(`a"b`); got != `return await codemode.run("a\"b", input)` {
		t.Errorf("got %s", got)
	}
}
