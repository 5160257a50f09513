package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a configuration was read from makes the same configuration again, with
// variables that are looked up anew; to compare, none of them has to be set.
func TestTexts(t *testing.T) {
	env := func(vars map[string]string) Env {
		return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	}
	file := `{"servers": {"s": {"url": "${ADDRESS}", "trustAnnotations": true}}, // kept as it is
		"evaluation": {"profiles": {"p": {"denylist": ["a__*"]}}}}`
	over := Overlay{"config.prod.json", []byte(`{"evaluation": {"profiles": {"p": {"denylist": []}}}}`)}
	first, err := ParseOverlaid("config.json", []byte(file), over, env(map[string]string{"ADDRESS": "https://one.example"}))
	if err != nil {
		t.Fatal(err)
	}
	texts := first.Texts()
	if texts.File != file || texts.Overlay != string(over.Data) || !strings.HasSuffix(texts.OverlayName, "config.prod.json") {
		t.Fatalf("its texts are %+v", texts)
	}
	again, err := texts.Parse(env(map[string]string{"ADDRESS": "https://two.example"}))
	if err != nil {
		t.Fatal(err)
	}
	if again.Servers["s"].URL.Reveal() != "https://two.example" || again.Profiles.Revision() != first.Profiles.Revision() || again.Overlay != first.Overlay {
		t.Errorf("read again it is %s", again)
	}
	if _, err := texts.Parse(nil); err == nil || !strings.Contains(err.Error(), "ADDRESS is not set") {
		t.Errorf("without the variable: %v", err)
	}
	recalled, err := texts.WithoutOverlay().Recall(nil)
	if err != nil {
		t.Fatal(err)
	}
	type facts struct {
		URL     string
		Trusted bool
		Overlay string
	}
	s := recalled.Servers["s"]
	if diff := cmp.Diff(facts{URL: "", Trusted: true, Overlay: ""}, facts{s.URL.Reveal(), s.TrustAnnotations, recalled.Overlay}); diff != "" {
		t.Errorf("recalled without the overlay it differs (-want +got):\n%s", diff)
	}
	if recalled.Profiles.Revision() == first.Profiles.Revision() {
		t.Errorf("recalled without the overlay it has its profiles: %s", recalled)
	}
	if _, err := (Texts{Name: "config.json", File: `{"servrs": {}}`}).Recall(nil); err == nil {
		t.Error("a text that is wrong is recalled")
	}
}
