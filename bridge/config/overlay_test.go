package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const lowerFile = `{
  // what holds everywhere
  "servers": {"time": {"type": "builtin", "builtin": "time"}},
  "evaluation": {
    "defaultProfile": "p",
    "profiles": {
      "p": {"asklist": ["time__*"], "denylist": ["fs__*"]},
      "q": {"allowlist": ["time__now"]},
    },
  },
}
`

func overlaidWith(over string) (*Config, error) {
	return ParseOverlaid("config.json", []byte(lowerFile), Overlay{"config.prod.json", []byte(over)}, goodEnv)
}

// Two environments, two levels of strictness.
func TestOverlayReplacesKeysOfProfiles(t *testing.T) {
	c, err := overlaidWith(`{
  "$schema": "x",
  "evaluation": {"profiles": {
    "p": {"asklist": ["time__zones"], "default": "deny"}, // stricter here
    "r": {"extends": "p"},
  }},
}`)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Evaluation.Profiles["p"]
	if got := fmt.Sprint(p.Asklist, p.Denylist, *p.Default, c.Profiles.Names(), *c.Evaluation.DefaultProfile, c.Schema); got != "[time__zones] [fs__*]deny[p q r]p" {
		t.Errorf("the profiles are %s", got)
	}
	plain := mustParse(t, "config.json", lowerFile)
	if plain.Profiles.Revision() == c.Profiles.Revision() {
		t.Error("the revision is that of the file without its overlay")
	}
	if plain.Digest != c.Digest || c.OverlayDigest() == (Digest{}) || !strings.HasSuffix(c.Overlay, "config.prod.json") {
		t.Errorf("digest %s, overlay %s, %s", c.Digest, c.Overlay, c.OverlayDigest())
	}
	for _, row := range []struct{ pointer, want string }{
		{"/evaluation/profiles/p/asklist/0", "config.prod.json:4:23"},
		{"/evaluation/profiles/p/denylist/0", "config.json:7:50"},
		{"/evaluation/profiles/r", "config.prod.json:5:5"},
		{"/evaluation/profiles/q/allowlist/7", "config.json:8:26"},
		{"/nothing/at/all", "config.json:1:1"},
	} {
		file, line, column := c.Place(row.pointer)
		if got := fmt.Sprintf("%s:%d:%d", file, line, column); got != row.want {
			t.Errorf("%s is at %s, want %s", row.pointer, got, row.want)
		}
	}
	if !c.Has("/evaluation/profiles/r/extends") || c.Has("/evaluation/profiles/q/extends") {
		t.Error("Has is wrong")
	}
}

// An overlay for a file without policy makes one.
func TestOverlayOfNothing(t *testing.T) {
	c, err := ParseOverlaid("a.json", []byte(`{}`), Overlay{"a.x.json", []byte(`{"evaluation": {"profiles": {"p": {"default": "ask"}}}}`)}, goodEnv)
	if err != nil || *c.Evaluation.Profiles["p"].Default != "ask" {
		t.Errorf("%v, %+v", err, c)
	}
}

// Every mistake is placed in the file that it is in.
func TestMistakesOfOverlays(t *testing.T) {
	for _, row := range []struct{ over, want string }{
		{`{"servers": {}}`, `config.prod.json:1:2: unknown key "servers" (hint: an overlay replaces keys of evaluation.profiles and nothing else)`},
		{`{"evaluation": {"enabled": false}}`, `config.prod.json:1:17: unknown key "enabled" in "evaluation" (hint: an overlay replaces keys of evaluation.profiles and nothing else)`},
		{`{"evaluation": {"profiles": {"p": 1}}}`, `config.prod.json:1:35: "p" must be an object`},
		{`{"evaluation": {"profiles": {"p": null}}}`, `config.prod.json:1:35: "p" may not be null (hint: leave it out)`},
		{`{"evaluation": {"profiles": {"p": {"denlist": []}}}}`, `config.prod.json:1:36: unknown key "denlist" in "p" (hint: did you mean "denylist"?)`},
		{"{\"evaluation\": {\"profiles\": {\"p\": {\n\"asklist\": [\"[\"]}}}}", `config.prod.json:2:14: `},
		{`{"evaluation": {"profiles": {"p": {"extends": "nobody"}}}}`, `config.prod.json:1:47: there is no profile "nobody"`},
		{`{"evaluation": {"profiles": {"p": {}, "p": {}}}}`, `config.prod.json:1:39: the key "p" is there twice`},
		{`{`, `config.prod.json:1:2: the file ends in the middle`},
		{``, `config.prod.json:1:1: the file is empty`},
		// q is right in its own file and not with what the overlay makes of p.
		{`{"evaluation": {"profiles": {"q": {"extends": "p"}, "p": {"extends": "q"}}}}`, `config.prod.json:1:47: the profiles extend each other in a circle`},
	} {
		_, err := overlaidWith(row.over)
		var problems Problems
		if !errors.As(err, &problems) || !strings.HasPrefix(problems[0].Error(), row.want) {
			t.Errorf("%s\n%v, want %s", row.over, err, row.want)
		}
	}
	if _, err := ParseOverlaid("a.json", []byte(`{"x": 1}`), Overlay{"b.json", []byte(`{}`)}, goodEnv); err == nil || !strings.HasPrefix(err.Error(), "a.json:1:2: ") {
		t.Errorf("a wrong first file: %v", err)
	}
}

func TestOverlayName(t *testing.T) {
	for _, row := range []struct{ file, environment, want string }{
		{"/etc/config.json", "prod", "/etc/config.prod.json"},
		{"c", "a-b_2", "c.a-b_2"},
		{"config.json", "../x", ""},
		{"config.json", "", ""},
		{"config.json", "a.b", ""},
	} {
		got, err := OverlayName(row.file, row.environment)
		if got != row.want || (err != nil) != (row.want == "") {
			t.Errorf("%s, %s: %s, %v", row.file, row.environment, got, err)
		}
	}
}

// FuzzOverlay: whatever stands in an overlay, it changes profiles only.
func FuzzOverlay(f *testing.F) {
	f.Add(`{"evaluation": {"profiles": {"p": {"default": "ask"}}}}`)
	f.Add(`{"servers": {"x": {"command": "y"}}}`)
	f.Add(`{"evaluation": {"profiles": {"p": {"rules": [{"tools": ["*"], "when": "args.x == 1", "action": "deny"}]}}}}`)
	plain, err := Parse("config.json", []byte(lowerFile), goodEnv)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, over string) {
		c, err := overlaidWith(over)
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		c.Evaluation.Profiles = plain.Evaluation.Profiles
		if c.String() != plain.String() {
			t.Errorf("it changed something else: %s", c)
		}
	})
}
