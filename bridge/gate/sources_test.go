package gate

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/provenance"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"
)

// A question says where the bytes come from that it is about. What goes to
// another server than it was read from is said among the reasons, and no
// grant covers it.
func TestQuestionSaysWhereTheBytesComeFrom(t *testing.T) {
	const secret = "a key file with a key of some forty characters"
	spec := supervised(profiles.ProfileSpec{Rules: []profiles.RuleSpec{
		{Tools: []string{"mail__*", "fs__delete"}, Action: new("ask"), Remember: new(true)}}})
	for _, row := range []struct {
		name, tool, args string
		source           bool // it is said where the bytes come from
		foreign          bool // and that they leave for another server
	}{
		{"passed on", "mail__send", `{"body":"Hi! ` + secret + `"}`, true, true},
		{"sent back", "fs__delete", `{"path":"` + secret + `"}`, true, false},
		{"its own", "mail__send", `{"body":"words that nobody has read before in this run"}`, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller := &fakeCaller{reply: `{"content":[{"type":"text","text":"` + secret + `"}]}`}
				b := &book{}
				g := newGate(t, spec, caller, b)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r, err := g.Begin(ctx, Origin{ID: "r1", Session: "s1", Profile: "p", Reach: ByElicitation}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := g.Call(ctx, r, Call{Number: 1, Name: "fs__read", Args: json.RawMessage(`{"path":"/home/ann/.key"}`)}); err != nil {
					t.Fatal(err)
				}
				questions := 0
				for number := 2; number <= 3; number++ { // the second time, a grant may stand
					ended := make(chan error, 1)
					go func() {
						_, err := g.Call(ctx, r, Call{Number: number, Name: row.tool, Args: json.RawMessage(row.args)})
						ended <- err
					}()
					synctest.Wait()
					for _, q := range g.Broker().Take("r1") {
						questions++
						said := strings.Join(wording.Describe(q, wording.DescribeOptions{}).Warnings, "; ")
						if strings.Contains(said, "46 characters of ") != row.source || row.source && !strings.Contains(said, "in call 1 from fs__read /home/ann/.key") {
							t.Errorf("sources: %q", said)
						}
						passes := slices.ContainsFunc(q.Decision.Reasons, func(why profiles.Reason) bool { return why.Detail == "passes on what was read from fs" })
						if passes != row.foreign || q.Decision.Remember == row.foreign {
							t.Errorf("remember %v, reasons %v", q.Decision.Remember, q.Decision.Reasons)
						}
						yes := approval.Verdict{Approve: true, Scope: approval.Once, By: "ann", Channel: "elicitation"}
						if q.Decision.Remember {
							yes.Scope = approval.SessionScope
						}
						if _, err := g.Settle(ctx, q.ID, q.Digest(), yes); err != nil {
							t.Fatal(err)
						}
					}
					if err := <-ended; err != nil {
						t.Fatal(err)
					}
				}
				var finds []ledger.SourceMatch // of the second call
				for _, rec := range b.records {
					if rec.Event == ledger.Intent && rec.Call == 2 {
						finds = rec.Sources
					}
				}
				if len(finds) > 0 != row.source || row.source && (finds[0].Call != 1 || finds[0].Length != len(secret) || !strings.HasPrefix(row.args[strings.Index(row.args, `":"`)+3+finds[0].Offset:], secret)) {
					t.Errorf("the record has the finds %+v", finds)
				}
				if want := map[bool]int{true: 2, false: 1}[row.foreign]; questions != want {
					t.Errorf("asked %d times, want %d", questions, want)
				}
			})
		})
	}
}

// A request holds all of the arguments, as far as anybody would read.
func TestRequestHoldsWholeArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deletion
		c.Args = json.RawMessage(`{"path":"` + strings.Repeat("long ", 10_000) + `"}`)
		a := ask(t, supervised(asksFs), &book{}, ByElicitation, c)
		if shown := a.question().Items[0].Shown; shown.Cut != 0 || len(shown.JSON) < 50_000 {
			t.Errorf("%d bytes are shown, cut at %d places", len(shown.JSON), shown.Cut)
		}
		a.answer(agreed)
		a.sent()
	})
}

// What an answer was asked for is named from the workspace's folder on.
func TestFromWithin(t *testing.T) {
	at := func(names ...string) string {
		return string(filepath.Separator) + filepath.Join(names...)
	}
	folder := at("home", "ann", "shop") + string(filepath.Separator)
	for _, row := range []struct{ name, folder, from, want string }{
		{"in the workspace", folder, "fs__read " + at("home", "ann", "shop", "src", "a.ts"), "fs__read " + filepath.Join("src", "a.ts")},
		{"the workspace itself", folder, "git__status " + at("home", "ann", "shop"), "git__status"},
		{"beside it", folder, "fs__read " + at("home", "ann", "shop2", "a"), "fs__read " + at("home", "ann", "shop2", "a")},
		{"out of it again", folder, "fs__read " + folder + filepath.Join("..", "a"), "fs__read " + folder + filepath.Join("..", "a")},
		{"no workspace", "", "fs__read " + at("a"), "fs__read " + at("a")},
		{"no argument", folder, "fs__list", "fs__list"},
	} {
		if got := provenance.Within(row.folder, row.from); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
