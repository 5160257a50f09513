package approvalview

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// askedFor is a request about one call, asked at noon.
func askedFor(t *testing.T) approval.StoredRequest {
	t.Helper()
	args, err := canon.Parse([]byte(`{"path":"/tmp/x"}`))
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	return approval.StoredRequest{Request: approval.Request{
		ID: "q1", Run: "r1", Client: "claude", Folder: "/home/ann/a\u202eb", Server: "fs", Tool: "delete", Script: "fs__delete",
		Decision: profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High}, Asked: noon, Grown: noon, Until: noon.Add(time.Hour),
		Items: []approval.Item{{Call: 1, Shown: canon.Display(args, canon.DisplayOptions{}), Key: approval.Key{Server: "fs", Tool: "delete", Args: args.Digest()}}},
	}}
}

// What is known of a request beside its calls stands in it: where its run
// works, answers that wait to be judged, and who stopped the run.
func TestRequestLines(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 2, 3, 0, time.Local)
	brought := func(j approval.Judgement, v approval.Verdict) approval.RelayedVerdict {
		v.Time = at
		return approval.RelayedVerdict{ID: "v1", Judgement: j, Verdict: v}
	}
	for name, row := range map[string]struct {
		change   func(*approval.StoredRequest)
		want     string
		unjudged int
	}{
		"the folder": {func(*approval.StoredRequest) {}, `  folder   /home/ann/a\u{202E}b`, 0},
		"a yes that waits": {func(e *approval.StoredRequest) {
			e.Relayed = []approval.RelayedVerdict{brought(approval.Unjudged, approval.Verdict{Approve: true, By: "ann", Credential: "token:5b1f"})}
		}, "  brought  ann said yes at 12:02:03; the bridge that asked has not judged it yet", 1},
		"a no that waits behind one that was judged": {func(e *approval.StoredRequest) {
			e.Relayed = []approval.RelayedVerdict{brought(approval.Void, approval.Verdict{Approve: true, By: "eve"}), brought(approval.Unjudged, approval.Verdict{By: "jo", For: "ann", Credential: "token:5b1f"})}
		}, "  brought  jo for ann said no at 12:02:03; the bridge that asked has not judged it yet", 1},
		"a stopped run": {func(e *approval.StoredRequest) {
			e.Verdict = &approval.Verdict{Reason: approval.Expired, Channel: "run", Stopped: "bob", Time: at}
		}, "  settled  not answered: bob stopped the run (12:02:03)", 0},
	} {
		e := askedFor(t)
		row.change(&e)
		lines := Lines(e, "", at)
		if !slices.Contains(lines, row.want) {
			t.Errorf("%s: %q is missing from\n%s", name, row.want, strings.Join(lines, "\n"))
		}
		if n := len(slices.DeleteFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "  brought") })); n != row.unjudged {
			t.Errorf("%s: %d answers wait, want %d", name, n, row.unjudged)
		}
		if v := e.Verdict; v != nil && v.Answer(e.Items[0].Call) != "unanswered" {
			t.Errorf("%s: its call is %s", name, v.Answer(e.Items[0].Call))
		}
		text, err := json.Marshal(NewRow(e, nil))
		if err != nil {
			t.Fatal(err)
		}
		var as struct {
			Folder   string
			Unjudged []map[string]any
		}
		if err := json.Unmarshal(text, &as); err != nil || as.Folder != `/home/ann/a\u{202E}b` || len(as.Unjudged) != row.unjudged {
			t.Errorf("%s: as JSON it is %s, %v", name, text, err)
		}
		if strings.Contains(string(text), "5b1f") {
			t.Errorf("%s: how somebody proved who they are is shown: %s", name, text)
		}
	}
}
