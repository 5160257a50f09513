package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"codemode-bridge/bridge/canon"
)

// How long and how often a grant for a session can be used, and how long one for a
// run holds at most, which may be paused in between.
const (
	grantFor    = time.Hour
	grantUses   = 100
	runGrantFor = 24 * time.Hour
)

// A Grant is a remembered approval. It ends with its session, so with its bridge at
// the latest, or with its run, whichever bridge has that. It is void once the tool's
// definition or the policy changes.
type Grant struct {
	ID string `json:"id"`
	// Bridge is the process that has the session: a session belongs to one process
	// alone, and no other process uses its grants.
	Bridge string `json:"bridge,omitempty"`
	// Run is the run whose calls alone it covers; empty for a session's.
	Run string `json:"run,omitempty"`
	Key Key    `json:"key"`
	// Cover says which calls it covers. Only grants of earlier releases have none:
	// they cover nothing.
	Cover Cover `json:"cover,omitzero"`
	// Also are further kinds of calls that it covers: those that were asked about
	// together were answered together.
	Also    []Kind `json:"also,omitempty"`
	AnyArgs bool   `json:"any_args,omitempty"` // of an earlier release
	Script  string `json:"script"`             // the tool's name in scripts
	// Covers is what it covers in words.
	Covers  string `json:"covers,omitempty"`
	Client  string `json:"client,omitempty"`  // of the session, as it calls itself
	Profile string `json:"profile,omitempty"` // that was asked under, by its name: Key has none for what binds eval
	// Configuration is the name, for people, of the configuration whose calls it
	// covers.
	Configuration string    `json:"configuration,omitempty"`
	By            string    `json:"by"`
	Made          time.Time `json:"made"`
	Until         time.Time `json:"until"`
	// Uses is how many calls it covers in all. The audit log counts them, each in
	// one step with the intent of its call; Left is what the store of requests was
	// told of that, and may be too high after a crash.
	Uses int `json:"uses,omitempty"`
	Left int `json:"left"`
}

// A Kind is calls that are alike.
type Kind struct {
	Key   Key   `json:"key"` // of one of them
	Cover Cover `json:"cover"`
}

// Kinds are the kinds of calls that the grant covers.
func (g Grant) Kinds() []Kind { return append([]Kind{{g.Key, g.Cover}}, g.Also...) }

// A Use is one use of a grant, for one call. It is reserved when the grant answers,
// and counts with the record of the call's intent.
type Use struct {
	Grant string
	Of    int // the uses that the grant has in all
}

// covers reports whether the grant approves a call of a run.
func (g Grant) covers(run string, i Item) bool {
	if g.AnyArgs || g.Run != "" && g.Run != run {
		return false
	}
	return slices.ContainsFunc(g.Kinds(), func(kind Kind) bool {
		had, has := alike(kind.Key, kind.Cover), alike(i.Key, i.Cover)
		if kind.Cover.Shared && i.Cover.Shared && had.Server != has.Server {
			kind.Cover = kind.Cover.elsewhere()
			had.Server, had.Identity, has.Server, has.Identity = "", "", "", ""
		}
		if g.Run != "" { // whatever session has taken the run up
			had.Session, has.Session = "", ""
		}
		return had == has && kind.Cover.covers(i.Cover) == ""
	})
}

// alike returns what two calls must have in common to be alike, besides what their
// covers bind.
func alike(k Key, c Cover) Key {
	k.Args = canon.Digest{}
	if c.Across {
		k.Tool, k.Definition = "", ""
	}
	return k
}

// alikeKeys reports whether two calls may be alike, but for what their covers bind.
func alikeKeys(i, o Item) bool { return alike(i.Key, i.Cover) == alike(o.Key, o.Cover) }

// grantBook keeps the grants that this process's runs use. The broker's lock guards
// it.
type grantBook struct {
	o        *Options
	reserved map[string]int  // uses that wait for the records of their calls, by grant
	runs     map[string]bool // runs that may have grants
}

// add remembers an approval, once: whoever resumes the run finishes its requests anew,
// and what was used up or revoked meanwhile does not come back.
func (s grantBook) add(r Request, v Verdict) error {
	w := r.wider(v.Scope)
	if len(w.kinds) == 0 {
		return errNotOffered
	}
	_, err := s.o.Store.Update(background(), r.ID, func(e *StoredRequest) error {
		if e.Granted {
			return errGranted
		}
		e.Granted = true
		return nil
	})
	if err != nil {
		return err
	}
	first := w.kinds[0].items[0]
	g := Grant{ID: newID("g"), Bridge: s.o.Bridge, Key: first.Key, Cover: w.kinds[0].cover, Covers: canon.Clip(w.words(), maxCovers), Script: first.Script,
		Client: r.Client, Profile: first.Decision.Profile, Configuration: r.Configuration, By: v.By, Made: v.Time, Until: v.Time.Add(grantFor), Uses: grantUses}
	for _, kind := range w.kinds[1:] {
		g.Also = append(g.Also, Kind{kind.items[0].Key, kind.cover})
	}
	if v.Scope == RunScope {
		g.Run, g.Until, g.Uses = r.Run, v.Time.Add(runGrantFor), v.Count-len(r.Items)
		s.runs[r.Run] = true
	}
	if g.Left = g.Uses; g.Left <= 0 {
		return nil
	}
	return s.o.Store.AddGrant(background(), g)
}

var (
	errGranted    = errors.New("it was granted before")
	errNotOffered = errors.New("nothing further is covered")
)

// maxCovers bounds Grant.Covers, in bytes.
const maxCovers = 300

// use answers a request from a grant, and reserves a use for each of its calls. A
// call whose approval may not be remembered is asked about even if there is a grant.
func (s grantBook) use(ctx context.Context, r Request) (Verdict, bool, error) {
	for _, i := range r.Calls() {
		if !mayWiden(i.Decision) || !i.Cover.Offered() {
			return Verdict{}, false, nil
		}
	}
	all, err := s.valid(ctx)
	if err != nil {
		return Verdict{Reason: AuditUnavailable, Channel: "grant"}, false, err
	}
	for _, g := range all {
		if g.Run == "" && g.Bridge != s.o.Bridge || g.Left-s.reserved[g.ID] < len(r.Items) || !g.coversAll(r) {
			continue
		}
		s.reserved[g.ID] += len(r.Items)
		if g.Run != "" {
			s.runs[g.Run] = true
		}
		return Verdict{Approve: true, Scope: Once, By: g.By, Channel: "grant", Time: time.Now(), Use: Use{g.ID, g.Uses}}, true, nil
	}
	return Verdict{}, false, nil
}

// waives reports whether use would answer a request.
func (s grantBook) waives(ctx context.Context, r Request) bool {
	all, err := s.valid(ctx)
	return err == nil && mayWiden(r.Decision) && slices.ContainsFunc(all, func(g Grant) bool {
		return (g.Run != "" || g.Bridge == s.o.Bridge) && g.Left-s.reserved[g.ID] >= len(r.Items) && g.coversAll(r)
	})
}

func (g Grant) coversAll(r Request) bool {
	for _, i := range r.Items {
		if !g.covers(r.Run, i) {
			return false
		}
	}
	return true
}

// release gives back uses that were reserved.
func (s grantBook) release(grant string, n int) {
	if s.reserved[grant] -= n; s.reserved[grant] <= 0 {
		delete(s.reserved, grant)
	}
}

// endRun drops the grants of a run.
func (s grantBook) endRun(run string) error {
	if !s.runs[run] {
		return nil
	}
	delete(s.runs, run)
	return s.o.Store.DropGrants(background(), func(g Grant) bool { return g.Run == run })
}

// Uses are the uses of grants that wait for the records of their calls.
type Uses struct{ b *Broker }

// Uses returns the uses of grants that wait for the records of their calls.
func (b *Broker) Uses() Uses { return Uses{b} }

// Counts says that the intent of a call is recorded, and with it the use of a grant.
func (s Uses) Counts(u Use) {
	b := s.b
	if u.Grant == "" {
		return
	}
	err := b.store.UpdateGrant(background(), u.Grant, func(g *Grant) error { g.Left--; return nil })
	if err != nil && !errors.Is(err, ErrUnknown) { // the use stays reserved, so that it counts all the same
		b.o.Logger.Error("counting the use of a grant", "grant", u.Grant, "err", err)
		return
	}
	s.GiveBack(u)
}

// UsedUp ends a grant that has no uses left, whatever the store of requests says.
func (s Uses) UsedUp(ctx context.Context, u Use) error {
	err := s.b.store.UpdateGrant(ctx, u.Grant, func(g *Grant) error { g.Left = 0; return nil })
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	return err
}

// GiveBack gives back a use that was reserved for a call that was not sent.
func (s Uses) GiveBack(u Use) {
	if u.Grant == "" {
		return
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.questions.grants.release(u.Grant, 1)
}

// valid returns the grants that hold at this moment, the oldest first.
func (s grantBook) valid(ctx context.Context) ([]Grant, error) {
	all, err := s.o.Store.Grants(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the grants: %w", err)
	}
	now := time.Now()
	good := all[:0]
	for _, g := range all {
		if now.Before(g.Until) && g.Left > 0 && !s.orphaned(g) {
			good = append(good, g)
		}
	}
	return good, nil
}

// orphaned reports whether a grant's session has ended with its bridge. Older
// releases did not store which bridge that is.
func (s grantBook) orphaned(g Grant) bool {
	return g.Run == "" && g.Bridge != s.o.Bridge && (g.Bridge == "" || s.o.Gone(g.Bridge))
}
