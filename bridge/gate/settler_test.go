package gate

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// The bridge that asked records of what another process brings that it does not
// count, with all that is known of the call; and who decided in whose name.
func TestWhatIsBroughtIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		someone := func(name string, role approval.Role) approval.Approver {
			return approval.Approver{Name: name, Role: role, Token: sha256.Sum256([]byte(name))}
		}
		of := func(configuration string, all []approval.Approver, lent ...approval.Delegation) func() *approval.Approvers {
			people, err := approval.NewApprovers(approval.Realm{Configuration: configuration}, all, lent)
			if err != nil {
				t.Fatal(err)
			}
			return func() *approval.Approvers { return people }
		}
		store, asking, bringing := new(approval.Memory), &book{}, &book{}
		theirs := of("prod", []approval.Approver{someone("cat", approval.Admin), someone("bob", approval.Viewer), someone("ann", approval.Admin)},
			approval.Delegation{From: "cat", To: "bob", Until: time.Now().Add(time.Hour)})
		mine := of("mine", []approval.Approver{someone("eve", approval.Admin), someone("bob", approval.Admin)})
		g := New(&View{}, Options{Recorder: asking, Broker: approval.New(approval.Options{Store: store, Bridge: "a", Configuration: "prod", Approvers: theirs})})
		desk := &Settler{Recorder: bringing, Broker: approval.New(approval.Options{Store: store, Bridge: "b", Configuration: "mine", Approvers: mine})}

		args, err := canon.Parse([]byte(`{"to":"dan"}`))
		if err != nil {
			t.Fatal(err)
		}
		asked := approval.Request{Run: "r1", Requester: "ci", Server: "mail", Tool: "send", Script: "mail__send",
			Decision: profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High, Timeout: time.Minute, Quorums: []profiles.Quorum{{Need: 2}}},
			Items:    []approval.Item{{Call: 3, Shown: canon.Display(args, canon.DisplayOptions{}), Key: approval.Key{Configuration: "prod", Server: "mail", Tool: "send", Args: args.Digest()}}}}
		ended := make(chan approval.Verdict, 1)
		go func() {
			v, err := g.Broker().Ask(t.Context(), asked)
			if err != nil {
				t.Error(err)
			}
			ended <- v
		}()
		synctest.Wait()
		q := g.Broker().Take("r1")[0]
		says := func(d *Settler, people *approval.Approvers, name string) error {
			who, _ := people.Authenticate(name)
			v, err := people.Sign(who, q, approval.Verdict{Approve: true, Text: "as " + name}, "page", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			_, err = d.Settle(t.Context(), q.ID, q.Digest(), v)
			return err
		}
		var refused *approval.RefusedError
		if err := says(desk, mine(), "eve"); !errors.As(err, &refused) {
			t.Errorf("a stranger is told %v", err)
		}
		if err := says(desk, mine(), "bob"); err != nil {
			t.Errorf("who speaks for another is told %v", err)
		}
		if err := says(g.settler, theirs(), "ann"); err != nil {
			t.Error(err)
		}
		if v := <-ended; !v.Approve || v.By != "bob and ann" || v.For != "cat" {
			t.Errorf("settled as %+v", v)
		}

		var verdicts []ledger.Record
		for _, rec := range asking.records {
			if rec.Event == ledger.Verdict {
				verdicts = append(verdicts, rec)
			}
		}
		if len(verdicts) != 2 {
			t.Fatalf("recorded are %+v", verdicts)
		}
		void, vote := verdicts[0], verdicts[1]
		call := ledger.Record{Event: ledger.Verdict, Run: "r1", Call: 3, Trace: "r1.3", Request: q.ID, Server: "mail", Tool: "send", Args: json.RawMessage(`{"to":"dan"}`),
			Risk: "high", Disposition: "ask", Configuration: "prod", Principal: "ci", Digest: args.Digest().String(), Answer: "yes, once", Channel: "page", Durable: true}
		wantVoid, wantVote := call, call
		wantVoid.Counted, wantVoid.Outcome, wantVoid.Approver, wantVoid.Comment = new(false), ledger.Refused, "eve", "as eve"
		wantVote.Counted, wantVote.Outcome, wantVote.Approver, wantVote.OnBehalfOf, wantVote.Comment = new(true), ledger.Vote, "bob", "cat", "as bob"
		asFar := cmpopts.IgnoreFields(ledger.Record{}, "Time", "Error")
		if diff := cmp.Diff(wantVoid, void, asFar); diff != "" || void.Error == "" {
			t.Errorf("what does not count is recorded because of %q, as (-want +got)\n%s", void.Error, diff)
		}
		if diff := cmp.Diff(wantVote, vote, asFar); diff != "" {
			t.Errorf("one of two is recorded as (-want +got)\n%s", diff)
		}
		for _, rec := range bringing.records {
			if rec.Event != ledger.Answered {
				t.Errorf("who only brings it has recorded %s", rec.Event)
			}
		}
	})
}
