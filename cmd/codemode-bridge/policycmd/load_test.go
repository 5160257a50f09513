package policycmd

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/policydoc"
	"codemode-bridge/profiles"
)

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func loader(t *testing.T) *Loader {
	t.Helper()
	home := t.TempDir()
	return Open(func(name string) (string, bool) {
		if name == "HOME" {
			return home, true
		}
		return "", false
	}, profiles.Options{})
}

const team = `{
	"evaluation": {"defaultProfile": "p", "profiles": {"p": {"denylist": ["git__push"], "asklist": ["git__*"], "default": "ask"}}},
	"newTools": "quarantine",
	"sandbox": {"calls": 50, "fresh": true},
	"audit": {"durability": "all"},
	"access": [{"principals": ["ann"], "profiles": ["p"]}],
	"approvals": {"approvers": [{"name": "ann", "role": "admin", "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}], "separateApprover": true, "perRun": 3},
	"servers": {"git": {"command": "git-mcp", "sampling": "ask", "tools": {"deny": ["reset"]}}}
}`

// What an included document says cannot be loosened by the file that includes it; what is stricter, or
// what the document says nothing of, is the file's.
func TestWhatAFileMaySay(t *testing.T) {
	for text, want := range map[string]string{
		`"servers": {"mine": {"command": "x"}}`:                                                      "",
		`"evaluation": {"profiles": {"p": {"denylist": ["git__push", "git__tag"]}}}`:                 "",
		`"evaluation": {"workspace": "/srv/work"}`:                                                   "",
		`"evaluation": {"profiles": {"q": {"extends": "p"}}}`:                                        "",
		`"sandbox": {"calls": 10}`:                                                                   "",
		`"approvals": {"listen": "127.0.0.1:7000", "perRun": 2}`:                                     "",
		`"servers": {"git": {"tools": {"deny": ["reset", "clean"]}}}`:                                "",
		`"log": {"level": "debug"}`:                                                                  "",
		`"newTools": "quarantine"`:                                                                   "",
		`"evaluation": {"profiles": {"p": {"denylist": []}}}`:                                        `denylist: "git__push" is gone (hint: the document is at `,
		`"evaluation": {"profiles": {"p": {"allowlist": ["fs__read"]}}}`:                             "loosen",
		`"evaluation": {"profiles": {"p": {"default": "allow"}}}`:                                    "default: allow instead of ask",
		`"evaluation": {"profiles": {"p": {"rules": [{"tools": ["git__log"], "action": "allow"}]}}}`: "loosen",
		`"evaluation": {"profiles": {"mine": {"default": "allow"}}}`:                                 "profile mine: it is new",
		`"evaluation": {"enabled": false}`:                                                           "nobody is asked any more",
		`"evaluation": {"defaultProfile": "o", "profiles": {"o": {"default": "allow"}}}`:             "loosen",
		`"newTools": "allow"`:                                                                        "newTools is allow",
		`"servers": {"mine": {"command": "x", "newTools": "allow"}}`:                                 "newTools is allow",
		`"mcpServers": {"mine": {"command": "x", "newTools": "allow"}}`:                              "newTools is allow",
		`"sandbox": {"calls": 51}`:                                                                   "may be 50 at most",
		`"sandbox": {"fresh": false}`:                                                                "not true any more",
		`"audit": {"durability": "default"}`:                                                         "durability",
		`"access": []`:                                                                               "",
		`"access": [{"principals": ["*"], "profiles": ["p"]}]`:                                       "loosen",
		`"approvals": {"separateApprover": false}`:                                                   "loosen",
		`"approvals": {"perRun": 4}`:                                                                 "may be 3 at most",
		`"approvals": {"approvers": [{"name": "eve", "role": "admin", "sha256": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}]}`: "eve",
		`"servers": {"git": {"command": "evil"}}`:        "runs or reaches something else",
		`"servers": {"git": {"env": {"PATH": "/evil"}}}`: "runs or reaches something else",
		`"servers": {"git": {"sampling": "allow"}}`:      "sampling allow",
		`"servers": {"git": {"trustAnnotations": true}}`: "trusted",
		`"servers": {"git": {"tools": {"deny": []}}}`:    "more of its tools",
	} {
		folder := t.TempDir()
		write(t, folder, "team/policy.json", team)
		path := write(t, folder, "config.json", "{\n\"include\": [\"team/policy.json\"],\n"+text+"}")
		l := loader(t)
		cfg, err := l.File(t.Context(), path, "")
		if want == "" {
			if err != nil || cfg.Servers["git"] == nil {
				t.Errorf("%s\n%v", text, err)
			}
			continue
		}
		var loosens *LoosensError
		if !errors.As(err, &loosens) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+":3:") || !strings.Contains(err.Error(), filepath.Join(folder, "team/policy.json")+":") {
			t.Errorf("%s\n%v, want %q, with both places", text, err, want)
			continue
		}
		if loosens.Held == nil {
			t.Errorf("%s: the documents cannot hold without it", text)
		} else if base, err := loosens.Held.Texts().Keeping(1, nil, l.Env, l.Policy); err != nil || len(looser(base, loosens.Held)) > 0 {
			t.Errorf("%s: what holds instead is looser, too", text)
		}
	}
}

// An overlay loosens nothing either.
func TestOverlayOverADocument(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "p.json", team)
	path := write(t, folder, "c.json", `{"include": ["p.json"]}`)
	over := write(t, folder, "c.prod.json", `{"evaluation": {"profiles": {"p": {"denylist": []}}}}`)
	if _, err := loader(t).File(t.Context(), path, over); err == nil || !strings.HasPrefix(err.Error(), over+":1:") || !strings.Contains(err.Error(), "is gone") {
		t.Error(err)
	}
	write(t, folder, "c.prod.json", `{"evaluation": {"profiles": {"p": {"denylist": ["git__*"]}}}}`)
	if cfg, err := loader(t).File(t.Context(), path, over); err == nil || cfg != nil { // git__push is covered, but by another text
		if err != nil && !strings.Contains(err.Error(), "loosen") {
			t.Error(err)
		}
	}
}

func TestFiles(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"deep/a.json": `{"include": ["b.json"]}`, "deep/b.json": `{"newTools": "quarantine"}`,
		"self.json": `{"include": ["self.json"]}`, "x.json": `{"include": ["y.json"]}`, "y.json": `{"include": ["x.json"]}`,
		"1.json": `{"include": ["2.json"]}`, "2.json": `{"include": ["3.json"]}`, "3.json": `{"include": ["4.json"]}`, "4.json": `{"include": ["5.json"]}`, "5.json": `{}`,
		"bad.json": "{\n  \"newTools\": \"perhaps\"}", "broken.json": "{\n  oops}", "closed.json": `{"closed": true, "servers": {"time": {"builtin": "time"}}}`,
	} {
		write(t, folder, name, text)
	}
	for text, want := range map[string]string{
		`{"include": ["deep/a.json"]}`:                                     "",
		`{"include": ["2.json"]}`:                                          "",
		`{"include": ["1.json"]}`:                                          "4.json:1:14: files are included more than 4 deep",
		`{"include": ["self.json"]}`:                                       "self.json:1:14: " + filepath.Join(folder, "self.json") + " includes itself",
		`{"include": ["x.json"]}`:                                          "includes itself",
		`{"include": ["c.json"]}`:                                          "c.json:1:14: " + filepath.Join(folder, "c.json") + " includes itself",
		`{"include": ["none.json"]}`:                                       "c.json:1:14: the included file cannot be read",
		`{"include": ["deep"]}`:                                            "is not a file",
		`{"include": ["bad.json"]}`:                                        "bad.json:2:15: ",
		`{"include": ["broken.json"]}`:                                     "broken.json:2:3: ",
		`{"include": ["a", "a", 7]}`:                                       "c.json:1:24: ",
		`{"include": [{"url": "https://x.example/p"}]}`:                    "exactly one of sha256 and key",
		`{"include": ["deep/b.json", "bad.json"]}`:                         "bad.json:2:15: ",
		`{"include": ["closed.json"], "log": {"level": "warn"}}`:           "",
		`{"include": ["closed.json"], "servers": {"x": {"command": "x"}}}`: "no servers but its own",
		`{"include": ["closed.json"], "closed": false, "servers": {"x": {"command": "x"}}}`: "no servers but its own",
	} {
		path := write(t, folder, "c.json", text)
		_, err := loader(t).File(t.Context(), path, "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
}

// From a centre: at first it must be there, then its copy holds, and the file cannot loosen it.
func TestFromACentre(t *testing.T) {
	private, public, err := policydoc.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := policydoc.ParsePrivate(private)
	if err != nil {
		t.Fatal(err)
	}
	document, envelope := "", []byte(nil)
	publish := func(text string, serial int64) {
		e, err := policydoc.Sign([]byte(text), key, serial, policydoc.Validity{})
		if err != nil {
			t.Fatal(err)
		}
		if envelope, err = json.Marshal(e); err != nil {
			t.Fatal(err)
		}
		document = text
	}
	centre := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sig") {
			w.Write(envelope)
		} else {
			w.Write([]byte(document))
		}
	}))
	defer centre.Close()
	folder, l := t.TempDir(), loader(t)
	l.Now = true
	path := write(t, folder, "c.json", "{\"include\": [{\"url\": \""+centre.URL+"/p.json\", \"key\": \""+public+"\"}],\n\"evaluation\": {\"profiles\": {\"mine\": {\"default\": \"ask\"}}}}")
	if _, err := l.File(t.Context(), path, ""); err == nil || !strings.HasPrefix(err.Error(), path+":1:14: ") || !strings.Contains(err.Error(), "nothing runs without it") {
		t.Fatalf("before anything is signed: %v", err)
	}
	publish(`{"evaluation": {"defaultProfile": "p", "profiles": {"p": {"default": "ask"}}}}`, 1)
	first, err := l.File(t.Context(), path, "")
	if err != nil || first.Included().Documents[0].Serial != 1 {
		t.Fatal(err)
	}
	// stricter than the file by now: the file is refused, and the document holds
	publish(`{"evaluation": {"defaultProfile": "p", "profiles": {"p": {"default": "deny"}}}}`, 2)
	_, err = l.File(t.Context(), path, "")
	var loosens *LoosensError
	if !errors.As(err, &loosens) || loosens.Held == nil || loosens.Held.Profiles.Names()[0] != "p" || len(loosens.Held.Profiles.Names()) != 1 {
		t.Fatalf("a stricter document: %v", err)
	}
	again, err := loosens.Held.Texts().Parse(l.Env, l.Policy)
	if err != nil || len(again.Profiles.Names()) != 1 {
		t.Errorf("what holds is not what is kept of it: %v", err)
	}
	publish(`{"include": ["x.json"]}`, 3)
	if _, err := l.File(t.Context(), path, ""); err == nil || !strings.Contains(err.Error(), "may include nothing") {
		t.Errorf("a document that includes: %v", err)
	}
	publish(`{"evaluation": {"defaultProfile": "p", "profiles": {"p": {"default": "ask"}}}}`, 4)
	if _, err := l.File(t.Context(), path, ""); err != nil {
		t.Fatal(err)
	}
	centre.Close()
	if cfg, err := l.File(t.Context(), path, ""); err != nil || cfg.Included().Documents[0].Serial != 4 {
		t.Errorf("offline: %v", err)
	}
}

// A document at an address that the main file names lies below all files, wherever it stands in the list: a file that
// is named before it, or what that includes, cannot loosen it from below.
func TestAnAddressLiesBelowFiles(t *testing.T) {
	const said = `{"closed": true, "newTools": "quarantine", "evaluation": {"defaultProfile": "p", "profiles": {"p": {"denylist": ["git__push"], "default": "deny"}}}, "servers": {"git": {"command": "git-mcp"}}}`
	for text, want := range map[string]string{
		`{"evaluation": {"profiles": {"p": {"denylist": ["git__push", "git__tag"]}}}}`: "",
		`{"evaluation": {"profiles": {"p": {"allowlist": ["git__*"]}}}}`:               "loosen",
		`{"evaluation": {"profiles": {"free": {"default": "allow"}}}}`:                 "loosen",
		`{"servers": {"mine": {"command": "x"}}}`:                                      "no servers but its own",
		`{"mcpServers": {"git": {"env": {"PATH": "/evil"}}}}`:                          "loosen",
		`{"include": ["OTHER"]}`:                                                       "loosen",
	} {
		centre := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/other" {
				w.Write([]byte(`{"evaluation": {"profiles": {"p": {"allowlist": ["git__*"]}}}}`))
			} else {
				w.Write([]byte(said))
			}
		}))
		defer centre.Close()
		folder, l := t.TempDir(), loader(t)
		other := `{"url": "` + centre.URL + `/other", "sha256": "` + policydoc.Digest([]byte(`{"evaluation": {"profiles": {"p": {"allowlist": ["git__*"]}}}}`)) + `"}`
		write(t, folder, "team.json", strings.Replace(text, `"OTHER"`, other, 1))
		path := write(t, folder, "c.json", `{"include": ["team.json", {"url": "`+centre.URL+`/p.json", "sha256": "`+policydoc.Digest([]byte(said))+`"}]}`)
		_, err := l.File(t.Context(), path, "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
}

// Whoever signs a document has approved what it loosens; an edit of the file beside it is judged as ever.
func TestSignedAnew(t *testing.T) {
	with := func(serial int64, key, text string) config.Texts {
		return config.Texts{Name: "/c.json", File: `{}`, Included: config.Included{Documents: []config.Document{{Name: "u", Ref: "u", Text: text, Key: key, Serial: serial}}}.String()}
	}
	cfg, err := with(2, "k", `{"newTools": "allow"}`).Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		was  config.Texts
		anew bool
	}{{with(1, "k", `{}`), true}, {with(1, "other", `{}`), false}, {with(3, "k", `{}`), false}, {with(1, "", `{}`), false}} {
		if got := cfg.SignedAnew(row.was); (got == cfg.Texts()) != row.anew || !row.anew && got != row.was {
			t.Errorf("%+v became %+v", row.was, got)
		}
	}
}
