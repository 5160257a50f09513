package approval_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/profiles"
)

// A call asks and waits; whoever answers first settles it, once.
func ExampleBroker() {
	ctx := context.Background()
	broker := approval.New(approval.Options{})
	args, err := canon.Parse([]byte(`{"to": "ann@example.com"}`))
	if err != nil {
		log.Fatal(err)
	}
	verdicts := make(chan approval.Verdict)
	go func() {
		verdict, err := broker.Ask(ctx, approval.Request{
			Run: "r1", Server: "mail", Tool: "send", Script: "mail__send",
			Decision: profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High, Timeout: time.Minute},
			Items: []approval.Item{{Call: 1, Shown: canon.Display(args, canon.DisplayOptions{}),
				Key: approval.Key{Session: "s1", Server: "mail", Tool: "send", Args: args.Digest()}}},
		})
		if err != nil {
			log.Fatal(err)
		}
		verdicts <- verdict
	}()

	// A channel, such as the page, waits for requests. A verdict says by the
	// digest what its author saw.
	var waiting []approval.StoredRequest
	for len(waiting) == 0 {
		asked := broker.Changed()
		if waiting, err = broker.Requests(ctx, approval.Filter{Open: time.Now()}); err != nil {
			log.Fatal(err)
		}
		if len(waiting) == 0 {
			<-asked
		}
	}
	request := waiting[0].Request
	fmt.Println(wording.Summary(request))
	if _, err := broker.Settle(ctx, request.ID, request.Digest(), approval.Verdict{Reason: approval.Declined, By: "ann", Channel: "page", Text: "not today"}); err != nil {
		log.Fatal(err)
	}
	verdict := <-verdicts
	fmt.Println(verdict.Approve, verdict.Reason, verdict.Text)

	_, err = broker.Settle(ctx, request.ID, request.Digest(), approval.Verdict{Approve: true, By: "bob", Channel: "terminal"})
	var settled *approval.SettledError
	fmt.Println("too late:", errors.As(err, &settled))
	// Output:
	// mail__send ann@example.com
	// false declined not today
	// too late: true
}
