package gate

import (
	"crypto/sha256"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
		if err := says(g.desk, theirs(), "ann"); err != nil {
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
		if void.Counted == nil || *void.Counted || void.Approver != "eve" || void.Comment != "as eve" || void.Error == "" || void.Outcome != ledger.Refused ||
			void.Run != "r1" || void.Call != 3 || void.Risk != "high" || void.Disposition != "ask" || void.Configuration != "prod" || void.Principal != "ci" || string(void.Args) != `{"to":"dan"}` {
			t.Errorf("what does not count is recorded as %+v", void)
		}
		if vote.Counted == nil || !*vote.Counted || vote.Approver != "bob" || vote.OnBehalfOf != "cat" || vote.Comment != "as bob" || vote.Outcome != ledger.Vote {
			t.Errorf("one of two is recorded as %+v", vote)
		}
		for _, rec := range bringing.records {
			if rec.Event != ledger.Answered {
				t.Errorf("who only brings it has recorded %s", rec.Event)
			}
		}
	})
}
