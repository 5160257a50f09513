package questions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/enrolment/wire"
)

// DeskOptions are what a desk works with.
type DeskOptions struct {
	Store approval.Store // of the centre, which its page and its commands read
	// Shows shows a request as people will see it; one that cannot be shown is refused.
	Shows  func(approval.StoredRequest)
	Done   <-chan struct{} // closed when the centre ends: nobody waits any longer
	Logger *slog.Logger
}

// A Desk is the centre's side: it keeps the questions of laptops where approvers see them.
// Any number of goroutines may call it, and any number of centres share the store.
type Desk struct {
	o  DeskOptions
	mu sync.Mutex // held while the questions of a laptop are taken over
}

// NewDesk returns a desk.
func NewDesk(o DeskOptions) *Desk {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Desk{o: o}
}

func refusal(format string, args ...any) error {
	return &wire.Refusal{Code: wire.BadRequest, Message: fmt.Sprintf(format, args...)}
}

// Ask takes over what a laptop says of its questions, and returns what there is for it.
// Who the laptop is must be proven. An error is a [wire.Refusal], or the centre's own.
func (d *Desk) Ask(ctx context.Context, laptop, person string, text []byte) (any, error) {
	var a Asking
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, refusal("the questions are not what this release understands")
	}
	if err := a.valid(); err != nil {
		return nil, err
	}
	from := Sender{laptop, person}
	bridge := from.bridge(a.Configuration)
	if err := d.takeOver(ctx, from, bridge, &a); err != nil {
		return nil, err
	}
	return d.await(ctx, from, bridge, &a)
}

func (a *Asking) valid() error {
	switch {
	case len(a.Questions) > MaxOpen:
		return refusal("%d questions are open, and a centre takes %d at once", len(a.Questions), MaxOpen)
	case len(a.Ended) > 10*MaxOpen, len(a.Judged) > 100*MaxOpen, len(a.Have) > 100*MaxOpen, len(a.Configuration) > 1000:
		return refusal("the questions are out of bounds")
	}
	for _, q := range a.Questions {
		if !idPattern.MatchString(q.ID) || q.Left <= 0 || q.Left > maxLeft || len(q.Votes) > 100 || q.Request != nil && len(q.Request.Items) == 0 {
			return refusal("a question is out of bounds")
		}
		if q.Request != nil && q.Request.ConfigurationID() != a.Configuration {
			return refusal("a question is another configuration's")
		}
	}
	return nil
}

// takeOver makes the store say of a bridge's questions what the laptop says.
func (d *Desk) takeOver(ctx context.Context, from Sender, bridge string, a *Asking) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx = context.WithoutCancel(ctx) // a laptop that hangs up meanwhile said it all the same
	open, others, err := d.open(ctx, from, bridge)
	if err != nil {
		return err
	}
	if others+len(a.Questions) > maxLaptop {
		return refusal("%d questions of other configurations are open, and a centre takes %d of one laptop at once", others, maxLaptop)
	}
	said := map[string]bool{} // the ids here of what is said of requests
	for _, q := range a.Questions {
		id := idAt(bridge, q.ID)
		said[id] = true
		e, here := open[id]
		if !here && q.Request == nil {
			continue // it is missing
		}
		now := time.Now()
		until := now.Add(q.Left)
		if q.Request == nil {
			if e.Until.Sub(until).Abs() > 5*time.Second || a.judges(q.ID) {
				_, err := d.o.Store.Update(ctx, id, func(e *approval.StoredRequest) error { e.Until = until; a.judge(q.ID, e); return nil })
				if err != nil {
					return err
				}
			}
			continue
		}
		if err := d.put(ctx, from, bridge, a, q, until); err != nil {
			return err
		}
	}
	for id, e := range open {
		if said[id] {
			continue
		}
		own, v := "", approval.Verdict{Reason: approval.Expired, Channel: "run", Time: time.Now()}
		if i := slices.IndexFunc(a.Ended, func(one Ended) bool { return idAt(bridge, one.ID) == id }); i >= 0 {
			own = a.Ended[i].ID
			if a.Ended[i].Verdict != nil {
				v = shownVerdict(*a.Ended[i].Verdict, time.Now())
			}
		}
		said[id] = true
		if err := d.end(ctx, e, v, func(e *approval.StoredRequest) { a.judge(own, e) }); err != nil {
			return err
		}
	}
	for _, j := range a.Judged { // of requests that were not open here any more
		id := idAt(bridge, j.ID)
		if said[id] {
			continue
		}
		said[id] = true
		_, err := d.o.Store.Update(ctx, id, func(e *approval.StoredRequest) error { a.judge(j.ID, e); return nil })
		if err != nil && !errors.Is(err, approval.ErrUnknown) {
			return err
		}
	}
	return nil
}

// open returns the open requests of a bridge, by their ids here, and how many the laptop has
// with other configurations.
func (d *Desk) open(ctx context.Context, from Sender, bridge string) (open map[string]approval.StoredRequest, others int, err error) {
	all, err := d.o.Store.Requests(ctx, approval.Filter{Open: time.Now()})
	if err != nil {
		return nil, 0, fmt.Errorf("reading the questions of a laptop: %w", err)
	}
	open = map[string]approval.StoredRequest{}
	for _, e := range all {
		switch {
		case e.Bridge == bridge:
			open[e.ID] = e
		case strings.HasPrefix(e.Bridge, bridgesOf(from.Laptop)):
			others++
		}
	}
	return open, others, nil
}

// put keeps a question, or what became of one that is here.
func (d *Desk) put(ctx context.Context, from Sender, bridge string, a *Asking, q Question, until time.Time) error {
	r, err := Lift(*q.Request, from)
	if err != nil {
		return refusal("question %s: %v", q.ID, err)
	}
	now := time.Now()
	r.ID, r.Asked, r.Grown, r.Until = idAt(bridge, q.ID), now, now, until
	next := approval.StoredRequest{Request: r, Bridge: bridge}
	for _, v := range q.Votes {
		next.Votes = append(next.Votes, shownVerdict(v, now))
	}
	if !d.shows(next) {
		return refusal("question %s cannot be shown", q.ID)
	}
	renew := func(e *approval.StoredRequest) error {
		if e.Bridge != bridge {
			return refusal("question %s is somebody else's", q.ID)
		}
		asked, grown := e.Asked, e.Grown
		if e.Digest() != next.Digest() {
			grown = now
		}
		e.Request, e.Votes, e.Verdict = next.Request, next.Votes, nil
		e.Asked, e.Grown = asked, grown
		a.judge(q.ID, e)
		return nil
	}
	_, err = d.o.Store.Update(ctx, r.ID, renew)
	if errors.Is(err, approval.ErrUnknown) {
		if err = d.o.Store.Put(ctx, next); err != nil { // another centre may have put it meanwhile
			if _, there := d.o.Store.Update(ctx, r.ID, renew); !errors.Is(there, approval.ErrUnknown) {
				err = there
			}
		}
	}
	return err
}

// shows reports whether a request can be shown to people.
func (d *Desk) shows(e approval.StoredRequest) (ok bool) {
	defer func() {
		if wrong := recover(); wrong != nil {
			d.o.Logger.Warn("a laptop's question cannot be shown", "bridge", e.Bridge, "why", fmt.Sprint(wrong))
			ok = false
		}
	}()
	if d.o.Shows != nil {
		d.o.Shows(e)
	}
	return true
}

// end settles a request as its laptop says, or as one that it has withdrawn.
func (d *Desk) end(ctx context.Context, e approval.StoredRequest, v approval.Verdict, also func(*approval.StoredRequest)) error {
	settled := e.Clone()
	if settled.Verdict = &v; !d.shows(settled) {
		v = approval.Verdict{Reason: approval.Expired, Channel: "run", Time: v.Time}
	}
	v.Request = e.ID
	_, err := d.o.Store.Update(ctx, e.ID, func(e *approval.StoredRequest) error {
		also(e)
		if e.Verdict == nil {
			e.Verdict = &v
		}
		return nil
	})
	if err != nil && !errors.Is(err, approval.ErrUnknown) {
		return fmt.Errorf("ending the question of a laptop: %w", err)
	}
	return nil
}

// judges reports whether the laptop says what became of verdicts on one of its requests.
func (a *Asking) judges(id string) bool {
	return slices.ContainsFunc(a.Judged, func(j Judged) bool { return j.ID == id })
}

// judge notes what became of the verdicts on a request.
func (a *Asking) judge(id string, e *approval.StoredRequest) {
	for _, j := range a.Judged {
		i := slices.IndexFunc(e.Relayed, func(r approval.RelayedVerdict) bool { return j.ID == id && r.ID == j.Relayed })
		if i < 0 || e.Relayed[i].Judgement != approval.Unjudged {
			continue
		}
		one := &e.Relayed[i]
		switch j.Judgement {
		case approval.Taken, approval.Late, approval.Changed:
			one.Judgement = j.Judgement
		default:
			one.Judgement, one.Why = approval.Void, cmp.Or(shownText(cut(j.Why)), "the laptop does not say why")
		}
		v := one.Verdict
		one.Verdict = approval.Verdict{Approve: v.Approve, By: v.By, Channel: v.Channel, Time: v.Time}
	}
}

func cut(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

// await returns what there is for a bridge, as soon as there is something.
func (d *Desk) await(ctx context.Context, from Sender, bridge string, a *Asking) (Answer, error) {
	over := time.NewTimer(min(max(a.Wait, 0), MaxWait))
	defer over.Stop()
	for {
		changed := d.o.Store.Changed() // before looking: nothing is missed
		open, _, err := d.open(ctx, from, bridge)
		if err != nil {
			return Answer{}, err
		}
		var out Answer
		for _, q := range a.Questions {
			e, here := open[idAt(bridge, q.ID)]
			if !here {
				out.Missing = append(out.Missing, q.ID)
				continue
			}
			for _, one := range e.Relayed {
				if one.Judgement == approval.Unjudged && !slices.Contains(a.Have, one.ID) {
					out.Verdicts = append(out.Verdicts, Given{q.ID, one.ID, one.About, saidOf(one.Verdict)})
				}
			}
		}
		if len(out.Missing)+len(out.Verdicts) > 0 {
			return out, nil
		}
		select {
		case <-changed:
		case <-over.C:
			return out, nil
		case <-ctx.Done():
			return out, nil
		case <-d.o.Done:
			return out, nil
		}
	}
}

// Withdraw ends all open questions of a laptop, which has left or was revoked.
func (d *Desk) Withdraw(ctx context.Context, laptop string) error {
	all, err := d.o.Store.Requests(ctx, approval.Filter{Open: time.Now()})
	errs := []error{err}
	for _, e := range all {
		if strings.HasPrefix(e.Bridge, bridgesOf(laptop)) {
			errs = append(errs, d.end(ctx, e, approval.Verdict{Reason: approval.Expired, Channel: "run", Time: time.Now()}, func(*approval.StoredRequest) {}))
		}
	}
	return errors.Join(errs...)
}
