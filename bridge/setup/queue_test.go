package setup

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/clients"

	"github.com/google/go-cmp/cmp"
)

// For a client that cannot ask, what would be denied waits for an approver. What the
// person wrote otherwise stays, and so do the approvers that there are.
func TestQueue(t *testing.T) {
	t.Parallel()
	ann := `{"name": "ann", "role": "admin", "sha256": "` + strings.Repeat("a", 64) + `"}`
	me := Approver{Name: "me", Role: "admin", SHA256: strings.Repeat("b", 64)}
	desktop, _ := clients.Find("claude-desktop")
	for name, row := range map[string]struct {
		text      string
		fallbacks map[string]string
		approvers []string
	}{
		"new":               {`{"evaluation": {"defaultProfile": "p", "profiles": {"p": {}}}}`, map[string]string{"p": "queue"}, []string{"me"}},
		"denied, commented": {"{\n  // mine\n  \"evaluation\": {\"profiles\": {\"p\": {\"elicitationFallback\": \"deny\"}, \"q\": {\"elicitationFallback\": \"allow\"}}}\n}", map[string]string{"p": "queue", "q": "allow"}, []string{"me"}},
		"with approvers":    {`{"evaluation": {"profiles": {"p": {}}}, "approvals": {"desktop": true, "approvers": [` + ann + `]}}`, map[string]string{"p": "queue"}, []string{"ann"}},
		"without profiles":  {`{"servers": {}}`, map[string]string{}, []string{"me"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := &Installation{Place: clients.Place{Client: desktop}}
			added, err := in.Queue([]byte(row.text), parse, me)
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := parse(in.After)
			if err != nil {
				t.Fatal(err)
			}
			fallbacks, approvers := map[string]string{}, []string{}
			for name, p := range cfg.Evaluation.Profiles {
				fallbacks[name] = *p.ElicitationFallback
			}
			for _, a := range cfg.Approvals.Approvers {
				approvers = append(approvers, a.Name)
			}
			if diff := cmp.Diff(row.fallbacks, fallbacks); diff != "" {
				t.Errorf("fallbacks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.approvers, approvers); diff != "" || added != (row.approvers[0] == "me") {
				t.Errorf("added %t; approvers (-want +got):\n%s", added, diff)
			}
			if !cfg.Approvals.Desktop || strings.Contains(row.text, "// mine") != strings.Contains(string(in.After), "// mine") {
				t.Errorf("the configuration is\n%s", in.After)
			}
			again := &Installation{Place: clients.Place{Client: desktop}}
			if added, err := again.Queue(in.After, parse, me); added || err != nil || again.moves() {
				t.Errorf("a second time: %t, %v\n%s", added, err, again.After)
			}
		})
	}
}
