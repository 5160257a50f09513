package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codemode-bridge/bridge/canon"
)

// How long and how often a grant can be used.
const (
	grantFor  = time.Hour
	grantUses = 100
)

// A Grant is a remembered approval. It ends with its session, so with its bridge
// at the latest, and is void once the tool's definition or the policy changes.
type Grant struct {
	ID string `json:"id"`
	// Bridge is the process that has the session: a session belongs to one process
	// alone, and no other process uses its grants.
	Bridge  string `json:"bridge,omitempty"`
	Key     Key    `json:"key"`
	AnyArgs bool   `json:"any_args,omitempty"` // Key.Args does not count
	Script  string `json:"script"`             // the tool's name in scripts
	// Covers are the arguments that it covers, in words, cut if they are long.
	Covers  string `json:"covers,omitempty"`
	Client  string `json:"client,omitempty"`  // of the session, as it calls itself
	Profile string `json:"profile,omitempty"` // that was asked under, by its name: Key has none for what binds eval
	// Configuration is the name, for people, of the configuration whose calls it
	// covers.
	Configuration string    `json:"configuration,omitempty"`
	By            string    `json:"by"`
	Made          time.Time `json:"made"`
	Until         time.Time `json:"until"`
	Left          int       `json:"left"` // uses
}

// covers reports whether the grant approves a call.
func (g Grant) covers(k Key) bool {
	if g.AnyArgs {
		k.Args = canon.Digest{}
	}
	return g.Key == k
}

// sessionGrants are the grants of this process's sessions.
type sessionGrants struct{ o *Options }

// add remembers an approval: for each call with its exact arguments, or once for
// the tool with any arguments.
func (s sessionGrants) add(r Request, v Verdict) error {
	made := map[Key]bool{}
	for _, i := range r.Calls() {
		g := Grant{ID: newID("g"), Bridge: s.o.Bridge, Covers: canon.Clip(string(i.Shown.JSON), maxCovers), Client: r.Client, Key: i.Key, AnyArgs: v.Scope == AnyArgs, Script: i.Script, Profile: i.Decision.Profile, Configuration: r.Configuration, By: v.By, Made: v.Time, Until: v.Time.Add(grantFor), Left: grantUses}
		if g.AnyArgs {
			g.Key.Args, g.Covers = canon.Digest{}, "any arguments"
		}
		if made[g.Key] {
			continue
		}
		made[g.Key] = true
		if err := s.o.Store.AddGrant(background(), g); err != nil {
			return err
		}
	}
	return nil
}

// maxCovers bounds Grant.Covers, in bytes.
const maxCovers = 300

var errUsedUp = errors.New("the grant is used up")

// use answers a request from a grant, using it once. A call whose approval may not
// be remembered is asked about even if there is a grant.
func (s sessionGrants) use(ctx context.Context, r Request) (Verdict, bool, error) {
	d := r.Decision
	if !d.Remember || d.Manual || d.RequireReason || len(d.Quorums) > 0 {
		return Verdict{}, false, nil
	}
	all, err := s.valid(ctx)
	if err != nil {
		return Verdict{Reason: AuditUnavailable, Channel: "grant"}, false, err
	}
	for _, g := range all {
		if g.Bridge != s.o.Bridge || !g.covers(r.Items[0].Key) {
			continue
		}
		err := s.o.Store.UpdateGrant(ctx, g.ID, func(g *Grant) error {
			if g.Left <= 0 {
				return errUsedUp
			}
			g.Left--
			return nil
		})
		if err == nil { // otherwise it was revoked or used up in between
			return Verdict{Approve: true, Scope: Once, By: g.By, Channel: "grant", Time: time.Now()}, true, nil
		}
	}
	return Verdict{}, false, nil
}

// valid returns the grants that hold at this moment, the oldest first.
func (s sessionGrants) valid(ctx context.Context) ([]Grant, error) {
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
func (s sessionGrants) orphaned(g Grant) bool {
	return g.Bridge != s.o.Bridge && (g.Bridge == "" || s.o.Gone(g.Bridge))
}
