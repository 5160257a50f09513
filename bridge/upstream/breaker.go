package upstream

import (
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/upstream/tap"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A breaker keeps calls away from a server that fails them all.
//
//	closed --(so many failures in a row)--> open --(a while, or a new session)--> half-open
//	  ^                                      ^                                      |
//	  +--------------(it answers)------------|--------------------------------------+
//	                                         +-----(it fails; for twice as long)----+
//
// While it is open, no call is sent. Half-open, one call is sent, and the others are
// refused until it has ended. A breaker has no clock: the caller passes the time, and
// holds the lock that guards it.
type breaker struct {
	limit          int           // failures in a row after which it opens
	first, longest time.Duration // for how long
	failures       int           // in a row
	opened         time.Time     // zero: closed
	until          time.Time     // when one call may try again
	times          int           // how often it has opened since it was last closed
	trying         bool          // a call is trying
	last           string        // what failed last, to be shown
	counted        occasion      // of the failure that was counted last
}

func newBreaker(o Options) breaker {
	return breaker{limit: orDefault(o.MaxFailures, 5), first: orDefault(o.Suspend, 10*time.Second), longest: o.longest()}
}

// A sign is what one call says about its server's health.
type sign int

const (
	noSign sign = iota // the call was canceled, or never got so far
	healthy
	faulty
)

// An occasion is a cause by which many calls can fail at once: the end of a session,
// or one attempt to connect. The zero occasion is a call's own failure.
type occasion struct {
	ended *session
	tries int
}

// admit reports whether a call may be sent, and whether it is the one that tries
// whether the server works again. The result of that call must be reported.
func (b *breaker) admit(now time.Time) (try, ok bool) {
	switch {
	case b.opened.IsZero():
		return false, true
	case b.trying, now.Before(b.until):
		return false, false
	}
	b.trying = true
	return true, true
}

// report takes what an admitted call says about the server, and reports whether that
// opened or closed the breaker. Only the first of the calls that fail on one occasion
// counts.
func (b *breaker) report(v sign, try bool, of occasion, why string, now time.Time) (changed bool) {
	if try {
		b.trying = false
	}
	switch {
	case v == healthy && (try || b.opened.IsZero()):
		changed = !b.opened.IsZero()
		b.failures, b.times, b.opened, b.until = 0, 0, time.Time{}, time.Time{}
	case v == faulty:
		if of != (occasion{}) && of == b.counted && !try {
			return false
		}
		b.counted = of
		b.failures++
		b.last = why
		if try || b.opened.IsZero() && b.failures >= b.limit {
			b.open(now)
			changed = true
		}
	}
	return changed
}

func (b *breaker) open(now time.Time) {
	d := b.first
	for range b.times {
		d = min(2*d, b.longest)
	}
	b.times++
	if b.opened.IsZero() {
		b.opened = now
	}
	b.until = now.Add(d)
}

// renewed notes a new session, which a call may try at once.
func (b *breaker) renewed(now time.Time) {
	if !b.opened.IsZero() && now.Before(b.until) {
		b.until = now
	}
}

// state is Suspended while the breaker is open, Trying while it is half-open,
// and empty while it is closed.
func (b *breaker) state(now time.Time) State {
	switch {
	case b.opened.IsZero():
		return ""
	case b.trying, !now.Before(b.until):
		return Trying
	}
	return Suspended
}

// why says why no call is sent.
func (b *breaker) why(now time.Time) string {
	text := fmt.Sprintf("no call is sent since %s ", clock(b.opened))
	switch {
	case b.trying:
		text += "but the one that is trying it now"
	case now.Before(b.until):
		text += fmt.Sprintf("until %s, %v from now", clock(b.until), inSeconds(b.until.Sub(now)))
	default:
		text += "until the next one, which will try it"
	}
	return fmt.Sprintf("%s: %d calls in a row failed, the last one with: %s", text, b.failures, b.last)
}

func clock(t time.Time) string { return t.Format("15:04:05") }

// inSeconds rounds up, so that waiting for the result is long enough.
func inSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// notTried reports whether a call failed for a reason that does not depend on the
// server: a person or the configuration keeps calls from it.
func notTried(err error) bool {
	var refused *refusedError
	var parked *parkedError
	switch {
	case tap.NeedsLogin(err), tap.Barred(err), errors.As(err, &refused), errors.As(err, &parked):
		return true
	}
	return errors.Is(err, errStopped) || errors.Is(err, errDisabled)
}

// judge returns what the error of a call that was sent, or should have been, says
// about its server; nil means that the call succeeded.
func judge(failure *Error) sign {
	if failure == nil {
		return healthy
	}
	var answered *jsonrpc.Error
	switch failure.Kind {
	case TooLarge:
		return healthy
	case BadReply:
		if errors.As(failure.Err, &answered) || errors.Is(failure.Err, errInputRequired) {
			return healthy
		}
		return faulty
	case Unavailable:
		if notTried(failure.Err) {
			return noSign
		}
		return faulty
	case Timeout:
		if errors.Is(failure.Err, errCallTimeout) {
			return faulty
		}
	}
	return noSign
}
