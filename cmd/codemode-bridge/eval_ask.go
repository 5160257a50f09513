package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/approvalview"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"golang.org/x/term"
)

// askHere is sayAsked for a script that is run at a terminal: an approver can answer there,
// with their token. The terminal alone answers nothing, as whatever runs commands has one.
// What is answered elsewhere meanwhile stays answered, and whoever enters nothing leaves it
// to others.
//
// It starts a goroutine that ends with ctx, or with the program if it is reading from the
// terminal then, which nothing can interrupt. The function returned gives the terminal its
// echo back.
func askHere(ctx context.Context, con *console, p *parts) (end func()) {
	sayAsked(con, p)
	keys, ok := con.In.(*os.File)
	screen, shows := con.Err.(*os.File)
	if !ok || !shows || !term.IsTerminal(int(keys.Fd())) || !term.IsTerminal(int(screen.Fd())) {
		return func() {}
	}
	before, err := term.GetState(int(keys.Fd()))
	if err != nil {
		return func() {}
	}
	asked := make(chan approval.Request, 64) // those beyond that are answered elsewhere
	say := *p.desk.told.Load()
	ask := func(r approval.Request) {
		say(r)
		select {
		case asked <- r:
		default:
		}
	}
	p.desk.told.Store(&ask)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case r := <-asked:
				if err := answerHere(ctx, con, p, keys, r.ID); err != nil {
					con.Told("%s: %s", r.ID, canon.EscapeLines(err.Error()))
				}
			}
		}
	}()
	return func() { _ = term.Restore(int(keys.Fd()), before) } // there is nobody left to tell
}

// answerHere shows a request and has an approver answer it. An approval is bound to the
// digest of what is shown.
func answerHere(ctx context.Context, con *console, p *parts, keys *os.File, id string) error {
	found, err := p.gate.Broker().Requests(ctx, approval.Filter{ID: id})
	people := p.desk.approvers.Load()
	if err != nil || len(found) != 1 || found[0].Verdict != nil || !people.Any() {
		return err
	}
	e := found[0]
	fmt.Fprintln(con.Err, strings.Join(approvalview.Lines(e, p.desk.conf.ID, time.Now()), "\n"))
	if err := cli.Drain(keys); err != nil { // what was typed before is no answer
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	// Another call that waits may be told of in between, so both questions say what they are about.
	fmt.Fprintf(con.Err, "%s: your approver's token, to answer here, or nothing: ", e.ID)
	token, err := term.ReadPassword(int(keys.Fd()))
	fmt.Fprintln(con.Err)
	if err != nil {
		return fmt.Errorf("reading the token: %w", err)
	}
	if len(token) == 0 {
		return nil
	}
	who, ok := people.Authenticate(strings.TrimSpace(string(token)))
	if !ok {
		return errors.New("that is no approver's token: it still waits")
	}
	v := approval.Verdict{}
	if v.Approve, err = con.Agree(e.ID + ": allow it?"); err != nil {
		return err
	}
	signed, err := people.Sign(who, e.Request, v, "terminal", time.Now())
	if err != nil {
		v.By, v.Channel = who.Name, "terminal"
		return errors.Join(&approval.RefusedError{Err: err}, p.gate.Refuse(ctx, e, v, err))
	}
	e, err = p.gate.Settle(ctx, e.ID, e.Digest(), signed)
	if err == nil && e.Verdict == nil {
		con.Told("%s: still needed: %s", e.ID, e.Missing())
	}
	return uncounted(err)
}
