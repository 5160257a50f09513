package reference

import "testing"

func TestFind(t *testing.T) {
	for path, want := range map[string]string{
		"":                               "/",
		"http":                           "http/",
		"http.listen":                    "http/listen",
		"store":                          "/store",
		"servers":                        "/servers",
		"servers.github":                 "servers.NAME/",
		"servers.github.command":         "servers.NAME/command",
		"/servers/github/confine/write":  "servers.NAME.confine/write",
		"mcpServers.github.env":          "servers.NAME/env",
		"servers.github.env.TOKEN":       "servers.NAME/env",
		"http.tokens[].sha256":           "http.tokens/sha256",
		"/http/tokens/0/sha256":          "http.tokens/sha256",
		"evaluation.risk.high.timeout":   "evaluation.risk.low/timeout",
		"evaluation.risk.unknown":        "evaluation.risk/unknown",
		"evaluation.profiles.mine.rules": "evaluation.profiles.NAME.rules/",
		"evaluation.profiles.mine.rules.0.display.maxArray": "display/maxArray",
		"evaluation.risk.high.quorum.need":                  "quorum/need",
		"display.maxArray":                                  "display/maxArray",
	} {
		s, k, found := Find(path)
		got := s.Path + "/"
		if k != nil {
			got += k.Name
		}
		if !found || got != want {
			t.Errorf("%q leads to %q (%t), want %q", path, got, found, want)
		}
	}
	for path, in := range map[string]string{"nothing": "", "servers.github.comand": "servers.NAME", "http.listn": "http"} {
		if s, k, found := Find(path); found || k != nil || s.Path != in {
			t.Errorf("%q leads to %q %v (%t)", path, s.Path, k, found)
		}
	}
}

// The document was read whole, and its marks are gone.
func TestSections(t *testing.T) {
	keys := 0
	for _, s := range Sections {
		if len(s.Keys) == 0 {
			t.Errorf("%s has no keys", s.Heading)
		}
		for _, k := range s.Keys {
			if keys++; k.Name == "" || k.Kind == "" || k.Default == "" || k.Text == "" {
				t.Errorf("%s: %+v", s.Heading, k)
			}
			if k.Name == "mcpServers" {
				continue // it is found as servers
			}
			if found, at, ok := Find(s.Path + "." + k.Name); !ok || at != nil && (found.Path != s.Path || at.Name != k.Name) {
				t.Errorf("%s.%s is found as %s %v", s.Path, k.Name, found.Path, at)
			}
		}
	}
	if len(Sections) < 30 || keys < 200 {
		t.Errorf("%d sections, %d keys", len(Sections), keys)
	}
	s, _, _ := Find("evaluation.risk.low")
	if s.Slug() != "evaluationrisklow-and-its-like" {
		t.Errorf("the slug is %q", s.Slug())
	}
}

func TestAnchors(t *testing.T) {
	for usage, want := range map[string]string{"servers add NAME URL": "command-servers-add", "run [--alone]": "command-run", "init": "command-init"} {
		if got := CommandAnchor(usage); got != want {
			t.Errorf("%s: %s, want %s", usage, got, want)
		}
	}
	if got := KeyAnchor("http.tokens[]", "name"); got != "key-http.tokens.name" {
		t.Errorf("got %s", got)
	}
}
