package login

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Terminal is where the person is who logs in.
type Terminal struct {
	In  io.Reader
	Out io.Writer
	// NoBrowser is set if no browser is to be opened here: the person opens the link
	// elsewhere, and pastes the address that the browser ends at into In.
	NoBrowser bool
	// Port is the one that the browser comes back to; 0 is any.
	Port int
}

// WaitTime is how long a person has to log in.
const WaitTime = 10 * time.Minute

// LogIn has a person log in, wherever the browser is. It returns when they have, or
// after WaitTime. Reading from In may go on after that.
func (c *Client) LogIn(ctx context.Context, at Terminal) (Info, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, WaitTime, fmt.Errorf("nobody logged in within %v", WaitTime))
	defer cancel()
	back, err := Listen(at.Port != 0, cmp.Or(at.Port, c.Redirect()))
	if err != nil {
		return Info{}, err
	}
	attempt, err := c.Begin(ctx, back.URL())
	if err != nil {
		back.Close()
		return Info{}, err
	}
	fmt.Fprintf(at.Out, "log in to %s at:\n\n  %s\n\n", c.server.Name, attempt.Link())
	if !at.NoBrowser {
		if err := OpenBrowser(attempt.Link()); err != nil {
			fmt.Fprintf(at.Out, "%v; open the link yourself\n", err)
		}
		return back.Wait(ctx, attempt)
	}
	fmt.Fprint(at.Out, "then paste the address that the browser ends at, though it shows no page: ")
	waiting, stop := context.WithCancel(ctx)
	type outcome struct {
		info Info
		err  error
	}
	done := make(chan outcome, 2)
	go func() {
		info, err := back.Wait(waiting, attempt)
		done <- outcome{info, err}
	}()
	go func() {
		info, err := pasted(ctx, at, attempt)
		done <- outcome{info, err}
	}()
	o := <-done
	if errors.Is(o.err, ErrFinished) { // the other one was faster
		fmt.Fprintln(at.Out, "\nthe browser has come back already; waiting for the login to finish")
	}
	if errors.Is(o.err, ErrFinished) || errors.Is(o.err, errNothingPasted) {
		o = <-done
	}
	stop()
	return o.info, o.err
}

var errNothingPasted = errors.New("nothing was pasted")

// pasted reads lines until one is the address that the browser ended at.
func pasted(ctx context.Context, at Terminal, attempt *Attempt) (Info, error) {
	lines := bufio.NewScanner(at.In)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		info, err := attempt.Finish(ctx, lines.Text())
		if !errors.Is(err, ErrOther) {
			return info, err
		}
		fmt.Fprint(at.Out, "that is not it; it begins with http://127.0.0.1 and has a code in it: ")
	}
	return Info{}, errNothingPasted
}
