package profiles

import (
	"slices"
	"testing"
	"unicode"
)

func TestFoldName(t *testing.T) {
	for _, same := range [][]string{
		{"path", "Path", "PATH"}, {"host", "hoſt", "HOST"}, {"k", "K", "\u212A"}, {"id", "ID", "İd", "ıd"}, {"ς", "σ", "Σ"}, {"µ", "μ", "Μ"}, {"ß", "ẞ"}, {"a-1", "A-1"},
	} {
		for _, other := range same[1:] {
			if FoldName(same[0]) != FoldName(other) {
				t.Errorf("%q and %q fold to %q and %q", same[0], other, FoldName(same[0]), FoldName(other))
			}
		}
	}
	for _, apart := range [][2]string{{"path", "paths"}, {"a_b", "ab"}, {"é", "e"}, {"ss", "ß"}, {"", "a"}} {
		if FoldName(apart[0]) == FoldName(apart[1]) {
			t.Errorf("%q and %q fold to the same", apart[0], apart[1])
		}
	}
	for r := range rune(0x1F000) { // no letters with case beyond
		if folded := FoldName(string(r)); folded != FoldName(string(unicode.SimpleFold(r))) || folded != FoldName(folded) {
			t.Errorf("%U folds to %q, %U to %q", r, folded, unicode.SimpleFold(r), FoldName(string(unicode.SimpleFold(r))))
		}
	}
}

// A server that does not look at the case of names reads Path where a rule
// reads path: such a condition counts as whatever is stricter.
func TestRespelledNamesAreUndecided(t *testing.T) {
	const why = "an argument's name differs from path in case alone"
	for _, when := range []string{
		`"has(args.path) && args.path.startsWith('/etc/')"`,
		`"'path' in args && string(args['path']).startsWith('/etc/')"`,
		`"args.exists(k, k == 'path' && string(args[k]).startsWith('/etc/'))"`,
		`"args.exists(k, k in ['path', 'file'] && string(args[k]).startsWith('/etc/'))"`,
		`[{"param": "path", "matches": "^/etc/"}]`,
	} {
		deniesEtc := profile(t, `{"rules": [{"tools": ["*"], "when": `+when+`, "action": "deny"}]}`)
		decide(t, deniesEtc,
			allow("fs__read", `{"path": "/tmp/x"}`, "default"),
			deny("fs__read", `{"path": "/etc/shadow"}`, ""),
			deny("fs__read", `{"Path": "/etc/shadow"}`, why),
			deny("fs__read", `{"path": "/tmp/x", "Path": "/etc/shadow"}`, why),
			deny("fs__read", `{"path": "/tmp/x", "PATH": ""}`, why),
			allow("fs__read", `{"path": "/tmp/x", "env": {"PATH": "/bin"}}`, "default"),
		)
		allowsTmp := profile(t, `{"default": "ask", "rules": [{"tools": ["*"], "when": `+when+`, "action": "allow"}]}`)
		decide(t, allowsTmp,
			allow("fs__read", `{"path": "/etc/x"}`, ""),
			ask("fs__read", `{"path": "/etc/x", "Path": "/tmp/x"}`, "default"),
		)
	}
	decide(t, profile(t, `{"rules": [{"tools": ["*"], "when": "has(args.to.hosts) && args.to.hosts[0].name == 'a'", "action": "deny"}]}`),
		allow("net__get", `{"to": {"hosts": [{"name": "b"}]}}`, "default"),
		deny("net__get", `{"to": {"hoſts": [{"name": "a"}]}}`, "differs from hosts"),
		deny("net__get", `{"to": {"hosts": [{"name": "b", "Name": "a"}]}}`, "differs from name"),
		allow("net__get", `{"hostS": 1, "to": {"hosts": [{"name": "b"}]}, "x": {"y": {"z": {"Name": 1}}}}`, "default"),
	)
	decide(t, profile(t, `{"rules": [{"tools": ["*"], "when": "args.rows.exists(r, has(r.force) && r.force)", "action": "ask"}]}`),
		allow("db__put", `{"rows": [{"force": false}]}`, "default"),
		ask("db__put", `{"rows": [{"Force": true}]}`, "differs from force"),
	)
}

// What an expression compares values with is no name.
func TestTextsAreNoNames(t *testing.T) {
	decide(t, profile(t, `{"rules": [{"tools": ["*"], "when": "args.type == 'File' || run.tools.exists(t, t == 'Size') || tool == 'Mode'", "action": "deny"}]}`),
		allow("fs__put", `{"type": "dir", "file": "x", "size": 1, "mode": 2, "run": 1, "Tools": 2}`, "default"),
	)
}

func TestCheckOfRespelledNamesFails(t *testing.T) {
	p := profile(t, `{"rules": [{"tools": ["*"], "action": "allow", "check": ["!has(args.force)"]}]}`)
	for args, want := range map[string]bool{`{}`: true, `{"force": true}`: false, `{"Force": true}`: false} {
		results := p.Checks(call(t, "db__drop", args))
		if len(results) != 1 || results[0].Passed != want {
			t.Errorf("%s: %+v, want passed %v", args, results, want)
		}
	}
}

func TestReads(t *testing.T) {
	p := profile(t, `{"rules": [
		{"tools": ["fs__*"], "when": [{"param": "to.path", "matches": "^/"}], "action": "ask", "check": ["args.mode != 'w'"], "hidden": {"api-key": ""}},
		{"tools": ["db__*"], "when": "args.table.contains('x')", "action": "deny"}
	]}`)
	reads := p.Reads("fs", "read")
	var got []string
	for _, name := range []string{"to", "To", "path", "mode", "apiKey", "table", "other"} {
		for depth := 1; depth <= 3; depth++ {
			if reads(name, depth) {
				got = append(got, name+string(rune('0'+depth)))
			}
		}
	}
	want := []string{"to1", "To1", "path2", "mode1", "apiKey1", "apiKey2", "apiKey3"}
	if !slices.Equal(got, want) {
		t.Errorf("it reads %v, want %v", got, want)
	}
	if !(*Profile)(nil).Reads("fs", "read")("x", 1) {
		t.Error("a profile that is gone does not read everything")
	}
}
