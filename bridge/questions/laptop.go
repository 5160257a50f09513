package questions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
)

const (
	lookEvery = 5 * time.Second // whether the machine is enrolled, or who asks has ended
	// askTime bounds a request with news, and pollTime one that waits for a verdict.
	askTime  = 10 * time.Second
	pollTime = MaxWait + askTime
	longWait = 5 * time.Second // between attempts, of which the first ones come sooner
	// offline is how long the centre cannot be asked before a question that only approvers
	// may answer is refused.
	offline = 10 * time.Second
	// given begins the name, at the laptop, of a verdict that came down.
	given = "centre-"
	// maxRelayed bounds the verdicts on one request.
	maxRelayed = 20
)

// A Centre is the one at which the laptop is enrolled.
type Centre struct {
	Sender
	Address string
	Policy  bool // it also says what the laptop may do
	// Ask exchanges an Asking for an Answer, which is the centre's own.
	Ask func(ctx context.Context, in, out any) error
}

// LaptopOptions say whose questions are asked.
type LaptopOptions struct {
	Store         approval.Store
	Configuration string // the id of the one whose requests go up
	// Approvers reports whether somebody may answer who is not at the client.
	Approvers func() bool
	// Lead returns the centre once this process is the one that asks there for the
	// configuration, and what ends that. An error: there is no centre, or another does.
	Lead func() (release func(), err error)
	// Centre returns the centre; an error means that there is none any more.
	Centre func() (Centre, error)
	Logger *slog.Logger
}

// A Laptop shows the open questions of a configuration to the centre, and takes the
// verdicts that come down.
type Laptop struct {
	o         LaptopOptions
	up        map[string]string // the questions that the centre has, each with the digest of its text
	confirmed string            // the state that the centre has
	failing   time.Time         // since when it cannot be asked
	failures  int
	said      string // the problem that was logged last
	unfit     string // the question that was found last that the centre could not show
}

// fits reports whether the centre can show a request. One that it could not must not hold
// up the others: only people at the laptop can answer it.
func (l *Laptop) fits(r approval.Request) bool {
	_, err := Lift(r, Sender{})
	if err != nil && l.unfit != r.ID {
		l.unfit = r.ID
		l.o.Logger.Warn("a question cannot be shown at the centre", "request", r.ID, "err", err)
	}
	return err == nil
}

// NewLaptop returns a laptop's side.
func NewLaptop(o LaptopOptions) *Laptop {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Laptop{o: o, up: map[string]string{}}
}

// Run asks until ctx ends.
func (l *Laptop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		release, err := l.o.Lead()
		if err == nil {
			l.lead(ctx)
			release()
		}
		pause(ctx, nil, lookEvery)
	}
}

// lead asks as the one process that does, until there is no centre any more.
func (l *Laptop) lead(ctx context.Context) {
	l.up, l.confirmed = map[string]string{}, "" // what another process said meanwhile is not known
	var last string                             // what was said last, and when
	var at time.Time
	for ctx.Err() == nil {
		centre, err := l.o.Centre()
		if err != nil {
			return
		}
		changed := l.o.Store.Changed() // before looking: nothing is missed
		s, err := l.look(ctx, centre)
		if err == nil && s.idle() {
			l.failing, l.failures = time.Time{}, 0
			pause(ctx, changed, lookEvery)
			continue
		}
		if err == nil {
			if s.digest == last && time.Since(at) < time.Second { // an answer changed nothing: not at once again
				pause(ctx, changed, time.Second)
				last = ""
				continue
			}
			last, at = s.digest, time.Now()
			err = l.exchange(ctx, centre, s, changed)
		}
		if ctx.Err() != nil {
			return
		}
		l.tell(err)
		if err == nil || errors.Is(err, errNews) {
			continue
		}
		l.refuse(ctx, centre, err)
		l.failures++
		pause(ctx, nil, min(longWait, time.Second<<min(l.failures-1, 5)))
	}
}

// pause waits until something changes, at most for some time.
func pause(ctx context.Context, changed <-chan struct{}, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-time.After(most):
	}
}

// tell logs a problem once, and its end.
func (l *Laptop) tell(err error) {
	switch {
	case errors.Is(err, errNews):
	case err == nil && l.said != "":
		l.said = ""
		l.o.Logger.Info("the centre is asked again")
	case err != nil && l.said != err.Error():
		l.said = err.Error()
		l.o.Logger.Warn("approvers at the centre cannot be asked", "err", err)
	}
}

// A state is what the laptop has to say.
type state struct {
	asking Asking
	texts  map[string]string                 // of the questions' texts, the digests
	open   map[string]approval.StoredRequest // the requests behind the questions
	digest string                            // of everything but times
}

func (s *state) idle() bool {
	return len(s.asking.Questions)+len(s.asking.Ended)+len(s.asking.Judged) == 0
}

// look finds out what there is to say.
func (l *Laptop) look(ctx context.Context, centre Centre) (*state, error) {
	s := &state{asking: Asking{Configuration: l.o.Configuration, Questions: []Question{}}, texts: map[string]string{}, open: map[string]approval.StoredRequest{}}
	sum := sha256.New()
	now := time.Now()
	var open []approval.StoredRequest
	if l.o.Approvers() {
		all, err := l.o.Store.Requests(ctx, approval.Filter{Open: now})
		if err != nil {
			return nil, fmt.Errorf("reading the open questions: %w", err)
		}
		open = slices.DeleteFunc(all, func(e approval.StoredRequest) bool {
			return len(e.Items) == 0 || e.ConfigurationID() != l.o.Configuration || !l.fits(e.Request)
		})
	}
	for _, e := range open[:min(len(open), MaxOpen)] {
		q := Question{ID: e.ID, Left: e.Until.Sub(now), Request: &e.Request}
		for _, v := range e.Votes {
			q.Votes = append(q.Votes, v.Shown())
		}
		text, err := json.Marshal(Question{ID: q.ID, Request: q.Request, Votes: q.Votes})
		if err != nil {
			return nil, fmt.Errorf("reading the open questions: %w", err)
		}
		digest := sha256.Sum256(text)
		s.texts[e.ID], s.open[e.ID] = hex.EncodeToString(digest[:]), e
		if l.up[e.ID] == s.texts[e.ID] {
			q.Request, q.Votes = nil, nil
		}
		s.asking.Questions = append(s.asking.Questions, q)
		s.judged(&e)
		fmt.Fprintln(sum, e.ID, s.texts[e.ID])
	}
	for id := range l.up {
		if _, still := s.open[id]; still {
			continue
		}
		ended := Ended{ID: id}
		all, err := l.o.Store.Requests(ctx, approval.Filter{ID: id})
		if err != nil {
			return nil, fmt.Errorf("reading what became of a question: %w", err)
		}
		if len(all) == 1 {
			if v := all[0].Verdict; v != nil {
				shown := v.Shown()
				ended.Verdict = &shown
			}
			s.judged(&all[0])
		}
		s.asking.Ended = append(s.asking.Ended, ended)
		fmt.Fprintln(sum, "ended", id)
	}
	for _, j := range s.asking.Judged {
		fmt.Fprintln(sum, j)
	}
	fmt.Fprintln(sum, s.asking.Have, centre.Address, centre.Laptop)
	s.digest = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// judged adds what became of the verdicts on a request that came down.
func (s *state) judged(e *approval.StoredRequest) {
	for _, one := range e.Relayed {
		name, came := strings.CutPrefix(one.ID, given)
		switch {
		case !came:
		case one.Judgement == approval.Unjudged:
			s.asking.Have = append(s.asking.Have, name)
		default:
			s.asking.Judged = append(s.asking.Judged, Judged{e.ID, name, one.Judgement, one.Why})
		}
	}
}

// errNews ends a wait because there is something else to say.
var errNews = errors.New("there is news")

// exchange says what there is to say. If the centre has it already, it waits for verdicts, until
// something changes here.
func (l *Laptop) exchange(ctx context.Context, centre Centre, s *state, changed <-chan struct{}) error {
	most := askTime
	if s.digest == l.confirmed {
		s.asking.Wait, most = MaxWait, pollTime
	}
	asked, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var answer Answer
	answered := make(chan error, 1)
	go func() { answered <- centre.Ask(asked, &s.asking, &answer) }()
	for {
		select {
		case err := <-answered:
			if err != nil {
				return err
			}
			return l.heard(ctx, centre, s, &answer)
		case <-changed:
			changed = l.o.Store.Changed()
			now, err := l.look(ctx, centre)
			if s.asking.Wait > 0 && (err != nil || now.digest != s.digest) {
				cancel()
				<-answered // nothing of it is used: a verdict comes again
				return cmp.Or(err, errNews)
			}
		}
	}
}

// heard takes the centre's answer.
func (l *Laptop) heard(ctx context.Context, centre Centre, s *state, answer *Answer) error {
	l.failing, l.failures, l.confirmed = time.Time{}, 0, s.digest
	l.up = s.texts
	for _, id := range answer.Missing {
		delete(l.up, id)
		l.confirmed = ""
	}
	if len(s.asking.Ended) > 0 {
		l.confirmed = "" // they are not named again
	}
	for _, g := range answer.Verdicts {
		e, shown := s.open[g.ID]
		if !shown {
			l.o.Logger.Warn("the centre sent a verdict on a request that it was not shown", "request", canon.Escape(g.ID))
			continue
		}
		if err := l.take(ctx, centre, e, g); err != nil {
			return err
		}
	}
	return nil
}

var errThere = errors.New("it is there already")

// take keeps a verdict with its request, for the bridge that asked to judge.
func (l *Laptop) take(ctx context.Context, centre Centre, was approval.StoredRequest, g Given) error {
	up, err := Lift(was.Request, centre.Sender)
	if err != nil {
		return err
	}
	one := approval.RelayedVerdict{ID: given + g.Relayed, Verdict: g.Said.verdict(time.Now())}
	if up.Digest() == g.About {
		one.About = was.Digest() // otherwise it is about other calls, and judged to be
	}
	void := func(format string, args ...any) { one.Judgement, one.Why = approval.Void, fmt.Sprintf(format, args...) }
	switch by := g.Said.By; {
	case !idPattern.MatchString(g.Relayed):
		l.o.Logger.Warn("the centre sent a verdict without a name", "request", g.ID)
		return nil
	case len(g.Said.Text) > maxText:
		void("what %s wrote is too long", by)
	case g.Said.Credential == "" || strings.HasPrefix(string(g.Said.Credential), "owner:"):
		void("the laptop takes the word of its approvers alone, and the centre's owner is none: its configuration has to name who answers at the centre")
	case g.Said.Approve && was.NeedsAnother() && by == centre.Person:
		void("%s uses the laptop that asks; somebody else must allow it", by)
	}
	_, err = l.o.Store.Update(ctx, was.ID, func(e *approval.StoredRequest) error {
		if e.Verdict != nil || slices.ContainsFunc(e.Relayed, func(has approval.RelayedVerdict) bool { return has.ID == one.ID }) {
			return errThere
		}
		if len(e.Relayed) >= maxRelayed {
			i := slices.IndexFunc(e.Relayed, func(has approval.RelayedVerdict) bool { return has.Judgement != approval.Unjudged })
			if i < 0 {
				return errThere // it comes again
			}
			e.Relayed = slices.Delete(e.Relayed, i, i+1)
		}
		e.Relayed = append(e.Relayed, one)
		return nil
	})
	if err != nil && !errors.Is(err, errThere) && !errors.Is(err, approval.ErrUnknown) {
		return fmt.Errorf("keeping a verdict of the centre: %w", err)
	}
	return nil
}

// refuse denies what only approvers may answer, once the centre that says so cannot be
// asked for a while.
func (l *Laptop) refuse(ctx context.Context, centre Centre, why error) {
	now := time.Now()
	if l.failing.IsZero() {
		l.failing = now
	}
	if !centre.Policy || now.Sub(l.failing) < offline {
		return
	}
	all, err := l.o.Store.Requests(ctx, approval.Filter{Open: now})
	for _, e := range all {
		if len(e.Items) == 0 || e.ConfigurationID() != l.o.Configuration || e.Items[0].AtClient && !e.NeedsApprover() || now.Sub(e.Asked) < offline {
			continue
		}
		_, failed := l.o.Store.Update(ctx, e.ID, func(e *approval.StoredRequest) error {
			if e.Verdict == nil {
				e.Verdict = &approval.Verdict{Request: e.ID, Reason: approval.NoApprover, Channel: "timeout", Time: now,
					Text: fmt.Sprintf("an approver must allow it, and the centre at %s cannot be asked (%v)", centre.Address, why)}
			}
			return nil
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		l.o.Logger.Error("refusing what nobody can answer", "err", err)
	}
}
