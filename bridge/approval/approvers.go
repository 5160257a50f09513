package approval

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codemode-bridge/profiles"
)

// A Role says what an approver may do.
type Role string

const (
	Viewer Role = "viewer"   // looks and decides nothing
	Decide Role = "approver" // decides requests up to a risk
	Admin  Role = "admin"    // decides everything, and changes grants, profiles and runs
	// Confirmer is an admin whom a pending configuration would remove, and without
	// whom nobody could confirm it: they may look, and confirm or reject it, and
	// nothing else. No configuration can give this role.
	Confirmer Role = "confirmer"
)

// roles are those that a configuration can give. No approver or group may have
// one of them as a name.
var roles = []Role{Viewer, Decide, Admin}

// A Verb is something that an approver does on a strong channel.
type Verb string

const (
	Look   Verb = "look"   // at requests, runs, history
	Answer Verb = "answer" // a request
	Revoke Verb = "revoke" // a grant
	Stop   Verb = "stop"   // a run
	Start  Verb = "start"  // a run, through the API
	Edit   Verb = "edit"   // profiles
	// ConfirmConfig is to confirm or reject a pending configuration.
	ConfirmConfig Verb = "confirm"
)

// verbs are what each role may do; nothing else is allowed.
var verbs = map[Role][]Verb{
	Viewer: {Look},
	Decide: {Look, Answer, Stop, Start},
	Admin:  {Look, Answer, Revoke, Stop, Start, Edit, ConfirmConfig},

	Confirmer: {Look, ConfirmConfig},
}

// An Approver is somebody who can prove who they are.
type Approver struct {
	Name   string
	Role   Role
	Groups []string // that quorums may name, as they may roles and names
	// Risk is the highest that they may allow; zero means all for an admin
	// and high for an approver.
	Risk profiles.Risk
	// Login is their name at a provider of single sign-on; empty if they sign in by
	// token only.
	Login string
	// Principal is who they are when they connect as a client with a token of an
	// issuer; empty if that is not known.
	Principal string
	// Token is the SHA-256 of their token; zero means that they have none.
	Token [sha256.Size]byte

	proof Credential // how they proved who they are; empty if they did not
}

// A Delegation lets one approver decide in the name of another for a while.
// Whoever may decide in a name may delegate that further.
type Delegation struct {
	From, To string
	Until    time.Time
}

// Owner is the person who starts the bridge on their own machine and is shown its
// one-time link: an admin without a token. Where several people must agree, they
// count as the requester, not as somebody else.
var Owner = Approver{Name: "owner", Role: Admin}

// Approvers are those who may answer the requests of one configuration, at one
// moment. They are never changed, only replaced.
type Approvers struct {
	realm       Realm
	all         []Approver
	delegations []Delegation
}

// NewApprovers checks and keeps approvers and delegations.
func NewApprovers(realm Realm, all []Approver, delegations []Delegation) (*Approvers, error) {
	names, logins := map[string]bool{}, map[string]bool{}
	for _, a := range all {
		if a.Name == "" || names[a.Name] {
			return nil, fmt.Errorf("there are two approvers %q", a.Name)
		}
		if verbs[a.Role] == nil {
			return nil, fmt.Errorf("approver %s has the role %q; the roles are viewer, approver and admin", a.Name, a.Role)
		}
		names[a.Name] = true
		if a.Login != "" && logins[a.Login] {
			return nil, fmt.Errorf("there are two approvers with the login %q", a.Login)
		}
		logins[a.Login] = true
	}
	for _, one := range all { // a quorum may name people, groups and roles
		if slices.Contains(roles, Role(one.Name)) {
			return nil, fmt.Errorf("an approver cannot be called %q: that is a role", one.Name)
		}
		for _, group := range one.Groups {
			if names[group] || slices.Contains(roles, Role(group)) {
				return nil, fmt.Errorf("a group of approver %s cannot be called %q: that is an approver or a role", one.Name, group)
			}
		}
	}
	for _, d := range delegations {
		if !names[d.From] || !names[d.To] || d.From == d.To {
			return nil, fmt.Errorf("a delegation from %q to %q is not between two approvers", d.From, d.To)
		}
	}
	return &Approvers{realm: realm, all: slices.Clone(all), delegations: slices.Clone(delegations)}, nil
}

// Any reports whether there is an approver who may answer anything.
func (a *Approvers) Any() bool {
	return a != nil && slices.ContainsFunc(a.all, func(one Approver) bool { return one.May(Answer) })
}

// All returns the approvers.
func (a *Approvers) All() []Approver {
	if a == nil {
		return nil
	}
	return slices.Clone(a.all)
}

// Owner returns the owner, who has followed the link. There is none if a
// configured approver may answer.
func (a *Approvers) Owner() (Approver, bool) {
	if a.Any() {
		return Approver{}, false
	}
	owner := Owner
	owner.proof = a.home().owner()
	return owner, true
}

func (a *Approvers) home() Realm {
	if a == nil {
		return Realm{}
	}
	return a.realm
}

// Current returns somebody who signed in as they are configured now, if they
// could sign in the same way again.
func (a *Approvers) Current(who Approver) (Approver, bool) { return a.recognise(who.Name, who.proof) }

// recognise finds the approver with that name, if the credential is theirs.
func (a *Approvers) recognise(name string, proof Credential) (Approver, bool) {
	if owner, ok := a.Owner(); ok && name == owner.Name && proof == owner.proof {
		return owner, true
	}
	for _, one := range a.All() {
		if one.Name == name && a.proves(one, proof) {
			one.proof = proof
			return one, true
		}
	}
	return Approver{}, false
}

// proves reports whether a credential is an approver's.
func (a *Approvers) proves(one Approver, proof Credential) bool {
	return one.Token != [sha256.Size]byte{} && proof == tokenCredential(one.Token) ||
		one.Login != "" && proof == a.realm.login(one.Login)
}

// ByLogin finds the approver with that login at the provider of single sign-on.
// The login must match exactly.
func (a *Approvers) ByLogin(login string) (Approver, bool) {
	for _, one := range a.All() {
		if login != "" && one.Login == login {
			one.proof = a.realm.login(login)
			return one, true
		}
	}
	return Approver{}, false
}

// Authenticate finds the approver whose token it is. It takes as long for a wrong
// token as for a right one.
func (a *Approvers) Authenticate(token string) (Approver, bool) {
	var found Approver
	ok := 0
	if a != nil {
		sum := sha256.Sum256([]byte(token))
		for _, one := range a.all {
			same := subtle.ConstantTimeCompare(sum[:], one.Token[:])
			if same == 1 && one.Token != [sha256.Size]byte{} {
				one.proof = tokenCredential(sum)
				found, ok = one, 1
			}
		}
	}
	return found, ok == 1
}

// May reports whether the approver's role permits v at all.
func (a Approver) May(v Verb) bool { return slices.Contains(verbs[a.Role], v) }

// allows reports whether the approver may approve calls of a risk.
func (a Approver) allows(risk profiles.Risk) bool {
	limit := a.Risk
	if limit == 0 {
		limit = profiles.High
		if a.Role == Admin {
			limit = profiles.Critical
		}
	}
	return a.May(Answer) && risk <= limit
}

// mayBe reports whether an approver may be the requester, as far as that is known: a
// requester whom an issuer names could be anybody whose principal there is not known.
// That one of the same name is the requester, SelfApproval knows.
func (a Approver) mayBe(requester string) bool {
	issuer, _, issued := strings.Cut(requester, "#") // which no name of a static token has
	return issued && (a.Principal == requester || !strings.HasPrefix(a.Principal, issuer+"#"))
}

// Sign makes a verdict on a request an approver's own: it adds who they are, how
// they proved that, in whose names they may decide, and the channel. It refuses a
// verdict that they may not give, unless another configuration asks: that one's
// bridge judges what counts there. Everybody who may answer may deny.
func (a *Approvers) Sign(who Approver, r Request, v Verdict, channel string, now time.Time) (Verdict, error) {
	v.By, v.Strong, v.Channel, v.Credential = who.Name, true, channel, who.proof
	v.For, v.Roles, v.Lent = "", nil, nil
	if !v.Approve && v.Reason == "" {
		v.Reason = Declined
	}
	if r.ConfigurationID() != a.home().Configuration {
		return v, nil
	}
	return a.entitle(who, r, v, now)
}

// entitle says in whose names a verdict may be given, and refuses one that the
// approver who may not give at all.
func (a *Approvers) entitle(who Approver, r Request, v Verdict, now time.Time) (Verdict, error) {
	v.For, v.Roles, v.Lent = "", append(slices.Clone(who.Groups), string(who.Role)), nil
	may := who.May(Answer) && (!v.Approve || who.allows(r.Decision.Risk))
	separate := v.Approve && r.NeedsAnother()
	if separate && who.mayBe(r.Requester) {
		if who.Principal != r.Requester {
			return Verdict{}, fmt.Errorf("somebody other than %s must allow this call, and nothing says who %s is there; an admin adds \"principal\" to the approver, with the same issuer", r.Requester, who.Name)
		}
		return Verdict{}, fmt.Errorf("%s asked for this call; somebody else must allow it", who.Name)
	}
	for _, other := range a.names(who, now) {
		if !other.May(Answer) || v.Approve && !other.allows(r.Decision.Risk) || separate && other.mayBe(r.Requester) {
			continue
		}
		if v.Lent == nil {
			v.Lent = map[string][]string{}
		}
		v.Lent[other.Name] = append(slices.Clone(other.Groups), string(other.Role))
		if !may {
			may, v.For = true, other.Name
		}
	}
	switch {
	case may:
		return v, nil
	case !who.May(Answer):
		return Verdict{}, fmt.Errorf("%s may look and not decide", who.Name)
	default:
		return Verdict{}, fmt.Errorf("%s may not allow calls of %s risk", who.Name, r.Decision.Risk)
	}
}

// judge signs a verdict anew by the current approvers: it counts only if its
// author is one of them and may give it. A verdict without proof of who gave it
// is the client's, and not judged here. If a is nil, a verdict stands as it was
// signed.
func (a *Approvers) judge(r Request, v Verdict, now time.Time) (Verdict, error) {
	if a == nil || !v.Strong {
		return v, nil
	}
	who, ok := a.recognise(v.By, v.Credential)
	if !ok {
		return Verdict{}, a.unrecognised(r, v)
	}
	return a.entitle(who, r, v, now)
}

// unrecognised explains to somebody why they are not recognised.
func (a *Approvers) unrecognised(r Request, v Verdict) error {
	asks := "the configuration that asks"
	if r.Configuration != "" {
		asks += ", " + r.Configuration + ","
	}
	known := slices.ContainsFunc(a.all, func(one Approver) bool { return one.Name == v.By })
	switch {
	case v.Credential == a.realm.owner():
		return errors.New("the owner does not answer where somebody configured may, and by now somebody may")
	case v.Credential.isOwner():
		return fmt.Errorf("%s is not the one whose owner says this", asks)
	case known:
		return fmt.Errorf("%s knows %s by another token or login", asks, v.By)
	default:
		return fmt.Errorf("%s has no approver %s", asks, v.By)
	}
}

// Standing returns the approvals that still count, signed as they would be now:
// those of approvers who still exist and may still allow the request. If a is
// nil, all of them count.
func (a *Approvers) Standing(r Request, votes []Verdict, now time.Time) []Verdict {
	var standing []Verdict
	for _, v := range votes {
		if v, err := a.judge(r, v, now); err == nil {
			standing = append(standing, v)
		}
	}
	return standing
}

// names returns the approvers in whose names somebody may decide, by a chain of
// delegations that are all in force now.
func (a *Approvers) names(who Approver, now time.Time) []Approver {
	if a == nil {
		return nil
	}
	var found []Approver
	reached := map[string]bool{who.Name: true}
	for next := []string{who.Name}; len(next) > 0; next = next[1:] {
		for _, d := range a.delegations {
			if d.To != next[0] || !now.Before(d.Until) || reached[d.From] {
				continue
			}
			reached[d.From] = true
			next = append(next, d.From)
			i := slices.IndexFunc(a.all, func(one Approver) bool { return one.Name == d.From })
			found = append(found, a.all[i])
		}
	}
	return found
}
