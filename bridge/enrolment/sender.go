package enrolment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/filelock"
	"codemode-bridge/bridge/ledger"
)

const (
	lookEvery  = 5 * time.Second // for new rows, or for another process to stop sending
	greetEvery = time.Minute     // if there are none: the centre learns that the laptop is there
	firstWait  = 2 * time.Second // after a failure; it doubles
	longWait   = 5 * time.Minute
	finalWait  = 30 * time.Minute // after a refusal that a person has to end
)

// A Log is the audit log whose rows are sent.
type Log interface {
	ledger.Linked
	Head(ctx context.Context) (int64, ledger.Hash, error)
}

// Options say what is sent, and how.
type Options struct {
	Folder  Folder
	Log     Log
	Version string // of the program
	// Policy returns the serial of the document signed with a key that is in force; 0 if
	// there is none. Nil: there never is one.
	Policy    func(key string) int64
	Logger    *slog.Logger
	Transport http.RoundTripper // nil is the usual one
}

// A Sender sends the rows of a log up, in order, from the last one that the centre has
// confirmed on. Of all processes of a laptop one sends; the others stand by.
type Sender struct {
	o      Options
	client *Client
	of     Enrolment // that client is for
	said   string    // the problem that was logged last
}

// NewSender returns a sender.
func NewSender(o Options) *Sender {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sender{o: o}
}

// Run sends until ctx ends. While the laptop is not enrolled it only looks whether it is
// by now.
func (s *Sender) Run(ctx context.Context) {
	failures := 0
	var greeted time.Time
	for ctx.Err() == nil {
		wait := lookEvery
		sent, err := s.turn(ctx, time.Since(greeted) >= greetEvery)
		var refusal *wire.Refusal
		switch {
		case errors.Is(err, ErrNotEnrolled), errors.Is(err, filelock.ErrHeld), ctx.Err() != nil:
			failures = 0
		case errors.As(err, &refusal) && refusal.Final():
			wait = finalWait
		case err != nil:
			wait = backOff(failures)
			failures++
		case sent:
			failures, greeted = 0, time.Now()
		}
		s.tell(err)
		s.pause(ctx, wait)
	}
}

// Once sends what is there now. Err is [filelock.ErrHeld] if another process sends.
func (s *Sender) Once(ctx context.Context) error {
	_, err := s.turn(ctx, true)
	return err
}

// pause waits, and not to the end if the machine is enrolled anew meanwhile.
func (s *Sender) pause(ctx context.Context, wait time.Duration) {
	until := time.Now().Add(wait)
	for {
		left := time.Until(until)
		if left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(left, lookEvery)):
		}
		if e, err := s.o.Folder.Enrolment(); err == nil && s.client != nil && !same(e, s.of) {
			return
		}
	}
}

// backOff is a wait with jitter: many laptops must not come back in the same moment.
func backOff(failures int) time.Duration {
	wait := min(firstWait<<min(failures, 10), longWait)
	return wait/2 + rand.N(wait)
}

// tell logs a problem once, and its end.
func (s *Sender) tell(err error) {
	text := ""
	if err != nil && !errors.Is(err, ErrNotEnrolled) && !errors.Is(err, filelock.ErrHeld) && !errors.Is(err, context.Canceled) {
		text = err.Error()
	}
	switch {
	case text == s.said:
	case text == "":
		s.o.Logger.Info("records go up to the centre again")
	default:
		s.o.Logger.Warn("records are kept here, and sent to the centre later", "err", text)
	}
	s.said = text
}

// turn sends everything that is there, as the one process that does. It reports whether
// the centre was asked, which it is without new rows only if greet is set.
func (s *Sender) turn(ctx context.Context, greet bool) (asked bool, err error) {
	e, err := s.o.Folder.Enrolment()
	if err != nil {
		return false, err
	}
	unlock, err := s.o.Folder.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	if s.client == nil || !same(e, s.of) {
		key, err := s.o.Folder.Key(false)
		if err != nil {
			return false, err
		}
		s.client, s.of = NewClient(e, key, s.o.Transport), e
	}
	for {
		more, sentAny, err := s.send(ctx, greet && !asked)
		asked = asked || sentAny
		if err != nil || !more {
			return asked, err
		}
	}
}

func same(a, b Enrolment) bool { return a.Enrolled.Equal(b.Enrolled) && a.Laptop == b.Laptop }

// send sends one batch, and notes what came of it.
func (s *Sender) send(ctx context.Context, greet bool) (more, asked bool, err error) {
	sent, err := s.o.Folder.Sent()
	if err != nil {
		return false, false, err
	}
	b, err := s.batch(ctx, sent.Head)
	if err != nil {
		return false, false, err
	}
	if len(b.Rows) == 0 && !greet {
		return false, false, nil
	}
	if s.o.Policy != nil && s.of.PolicyKey != "" {
		b.Policy = s.o.Policy(s.of.PolicyKey)
	}
	head, err := s.client.Send(ctx, b)
	if ctx.Err() != nil {
		return false, true, ctx.Err() // what was confirmed and not noted is confirmed again
	}
	now := time.Now().UTC()
	sent.Tried, sent.Problem, sent.Reason, sent.Skew = now, "", "", s.client.Skew()
	sent.Waiting = b.Waiting + int64(len(b.Rows))
	var refusal *wire.Refusal
	switch {
	case err == nil:
		sent.Head, sent.Reached, sent.Waiting = head, now, max(0, b.After+int64(len(b.Rows))+b.Waiting-head.Seq)
	case errors.As(err, &refusal) && refusal.Code == wire.Gap && refusal.Head != nil:
		// The centre has an older copy of what it had: it gets the rows again, if they are here.
		again := *refusal.Head
		if b.Store != again.Store || again.Seq >= b.After {
			break
		}
		_, links, missing := s.o.Log.LinksAfter(ctx, again.Seq, 1, 1)
		if missing != nil || len(links) == 0 || links[0].Seq != again.Seq+1 {
			err = fmt.Errorf("the centre misses the rows from %d on, which are no longer here: its administrator invites this machine again", again.Seq+1)
			break
		}
		sent.Head, err, more = again, nil, true
	}
	if err != nil {
		sent.Problem = err.Error()
		if refusal != nil {
			sent.Reason = refusal.Code
		}
	}
	if _, gone := s.o.Folder.Enrolment(); errors.Is(gone, ErrNotEnrolled) {
		return false, true, gone // it has left meanwhile
	}
	if err := s.o.Folder.write("sent.json", sent); err != nil {
		return false, true, err
	}
	return err == nil && (more || sent.Waiting > 0), true, err
}

// batch reads the rows after the last one that the centre has. If the log was replaced by
// an older copy, which may have gone on, the centre is shown what is here, and finds out.
func (s *Sender) batch(ctx context.Context, from wire.Head) (wire.Batch, error) {
	store, links, err := s.o.Log.LinksAfter(ctx, from.Seq, wire.MaxRows, wire.MaxText)
	if err != nil {
		return wire.Batch{}, err
	}
	last, hash, err := s.o.Log.Head(ctx)
	if err != nil {
		return wire.Batch{}, err
	}
	b := wire.Batch{Store: store, After: from.Seq, Prev: from.Hash, Version: s.o.Version}
	switch {
	case store != from.Store && from.Store != "": // the damaged log was set aside, and this one begun
		b.After, b.Prev = 0, wire.Hash{}
		_, links, err = s.o.Log.LinksAfter(ctx, 0, wire.MaxRows, wire.MaxText)
	case last < from.Seq:
		b.After, b.Prev, links = last, wire.Hash(hash), nil
	case from.Seq > 0: // as it is here, if it was not pruned: the centre compares
		var own []ledger.Link
		if _, own, err = s.o.Log.LinksAfter(ctx, from.Seq-1, 1, 1); len(own) > 0 && own[0].Seq == from.Seq {
			b.Prev = wire.Hash(own[0].Hash)
		}
	}
	if err != nil {
		return wire.Batch{}, err
	}
	for _, l := range links {
		b.Rows = append(b.Rows, wire.Row{Seq: l.Seq, Hash: wire.Hash(l.Hash), Body: string(l.Body)})
	}
	b.Waiting = max(0, last-b.After-int64(len(b.Rows)))
	return b, nil
}

// Waiting returns how many rows of a log the centre has not confirmed.
func Waiting(ctx context.Context, log Log, sent wire.Head) (int64, error) {
	store, _, err := log.LinksAfter(ctx, sent.Seq, 1, 1)
	if err != nil {
		return 0, err
	}
	last, _, err := log.Head(ctx)
	if store != sent.Store {
		return last, err
	}
	return max(0, last-sent.Seq), err
}
