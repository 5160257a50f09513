package admin

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
)

// A request of another configuration is shown as that one's, with who judges
// whether an answer counts, before somebody decides.
func TestRequestOfAnotherConfiguration(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Configuration = "mine" })
	b.ask(question{})
	for path, words := range map[string][]string{
		"/api/pending": {`"elsewhere":true`},
		"/":            {"configuration <bdi>another</bdi>", "Its bridge judges whether your answer counts, by its own approvers"},
	} {
		b.atPage("ada").do("GET", path, "").want(200).says(words...)
	}
	own := newBench(t)
	own.ask(question{})
	if res := own.atPage("ada").do("GET", "/", "").want(200); strings.Contains(res.body, "Its bridge judges") {
		t.Error("an own request is shown as another's")
	}
}

// An answer that its bridge has not taken yet is no decision, and says so.
func TestAnswerThatIsKept(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Settler = awayDesk{} })
	e, _ := b.ask(question{})
	b.as("ada").do("POST", "/api/decide/"+e.ID, fmt.Sprintf(`{"decision":"deny","digest":%q}`, e.Digest())).want(202).
		says(`"status":"pending"`, `"kept":"it is kept for the bridge that asked`)
}

// An awayDesk brings verdicts to a bridge that is away.
type awayDesk struct{}

func (awayDesk) Settle(context.Context, string, canon.Digest, approval.Verdict) (approval.StoredRequest, error) {
	return approval.StoredRequest{}, approval.ErrUnjudged
}

// With the first approver who may answer, the owner is out, and no link lets
// them in again.
func TestOwnerEndsWithTheFirstApprover(t *testing.T) {
	b := newBench(t)
	b.appoint(nil)
	link, _ := b.site.LoginURL("")
	unused, _ := b.site.LoginURL("")
	code := func(link string) string { return fmt.Sprintf(`{"code":%q}`, strings.SplitAfter(link, "code=")[1]) }
	owner := visitor{b: b}.signIn(code(link))
	owner.do("GET", "/api/me", "").want(200)
	b.appoint([]approval.Approver{{Name: "vic", Role: approval.Viewer}})
	owner.do("GET", "/api/me", "").want(200) // who cannot answer takes nothing from them
	b.appoint(people)
	owner.do("GET", "/api/me", "").refused(401, "unauthorized")
	owner.do("POST", "/api/decide/q1", "{}").refused(401, "unauthorized")
	visitor{b: b}.do("POST", "/api/login", code(unused)).refused(403, "no_owner")
}

// How somebody proved who they are is nowhere to be read.
func TestCredentialsAreNotShown(t *testing.T) {
	b := newBench(t)
	e, _ := b.ask(question{})
	b.as("ada").do("POST", "/api/decide/"+e.ID, fmt.Sprintf(`{"decision":"deny","digest":%q}`, e.Digest())).want(200)
	all, err := b.broker.Requests(t.Context(), approval.Filter{ID: e.ID})
	if err != nil || len(all) != 1 || all[0].Verdict == nil {
		t.Fatalf("kept is %+v, %v", all, err)
	}
	secret, ok := strings.CutPrefix(string(all[0].Verdict.Credential), "token:")
	if !ok {
		t.Fatalf("the kept credential is %q", all[0].Verdict.Credential)
	}
	for _, path := range []string{"/api/pending/" + e.ID, "/r/" + e.ID, "/api/history", "/history"} {
		if res := b.atPage("ada").do("GET", path, "").want(200); strings.Contains(res.body, secret) || strings.Contains(res.body, "token:") {
			t.Errorf("%s shows it: %s", path, res.body)
		}
	}
}
