package approval

import (
	"slices"
	"time"

	"codemode-bridge/bridge/canon"
)

// What a grant is good for.
const (
	grantFor  = time.Hour
	grantUses = 100
)

// A Grant is a remembered yes. It lives in memory, ends with its session, and
// is void once the tool's definition or the policy is another.
type Grant struct {
	ID      int
	Key     Key
	AnyArgs bool // Key.Args does not count
	By      string
	Made    time.Time
	Until   time.Time
	Left    int // uses
}

// covers reports whether the grant is a yes to a call.
func (g Grant) covers(k Key) bool {
	if g.AnyArgs {
		k.Args = canon.Digest{}
	}
	return g.Key == k
}

// addGrantsLocked remembers a yes: for each call as it is, or once for the
// tool with any arguments.
func (b *Broker) addGrantsLocked(r Request, v Verdict) {
	for _, i := range r.Items {
		b.last++
		g := Grant{ID: b.last, Key: i.Key, AnyArgs: v.Scope == AnyArgs, By: v.By, Made: v.Time, Until: v.Time.Add(grantFor), Left: grantUses}
		if g.AnyArgs {
			g.Key.Args = canon.Digest{}
		}
		b.grants = append(b.grants, g)
		if g.AnyArgs {
			return
		}
	}
}

// grantLocked answers a request from a grant, which is used up by one. What
// may not be remembered is asked whatever was granted before.
func (b *Broker) grantLocked(r Request) (Verdict, bool) {
	if !r.Decision.Remember || r.Decision.Manual || r.Decision.RequireReason {
		return Verdict{}, false
	}
	b.pruneLocked()
	now := time.Now()
	for i, g := range b.grants {
		if g.covers(r.Items[0].Key) {
			b.grants[i].Left--
			return Verdict{Approve: true, Scope: Once, By: g.By, Channel: "grant", Time: now}, true
		}
	}
	return Verdict{}, false
}

// Grants returns what is remembered, the oldest first.
func (b *Broker) Grants() []Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pruneLocked()
	return slices.Clone(b.grants)
}

// pruneLocked drops the grants that are used up or over.
func (b *Broker) pruneLocked() {
	now := time.Now()
	b.grants = slices.DeleteFunc(b.grants, func(g Grant) bool { return g.Left == 0 || !now.Before(g.Until) })
}
