package approval

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A Credential says how somebody proved who they are: by which token, by which
// login at which provider, or as the owner of which configuration. With it the
// bridge that asked recognises them, whoever relays their verdict. It is stored
// with the verdict, and never shown, logged or recorded.
type Credential string

func tokenCredential(sum [sha256.Size]byte) Credential {
	return Credential("token:" + hex.EncodeToString(sum[:]))
}

// isOwner reports whether it is that of the owner of any configuration.
func (c Credential) isOwner() bool { return strings.HasPrefix(string(c), "owner:") }

// Kept is an approver as they were when they signed in, with how they proved who they are,
// in a form for a store.
type Kept struct {
	Approver
	Proof Credential
}

// Keep returns what a store keeps of somebody who signed in; see [Approvers.Recall].
func (a Approver) Keep() Kept { return Kept{a, a.proof} }

// Recall returns somebody whom a store kept as they are configured now, if they could sign
// in the same way again.
func (a *Approvers) Recall(k Kept) (Approver, bool) { return a.recognise(k.Name, k.Proof) }

// A Realm is the scope in which credentials identify an approver.
type Realm struct {
	Configuration string // its id
	// Provider identifies the single sign-on that logins belong to, with everything
	// that decides what a login means there.
	Provider string
}

func (r Realm) login(login string) Credential { return Credential("login:" + r.Provider + " " + login) }
func (r Realm) owner() Credential             { return Credential("owner:" + r.Configuration) }

// NewToken makes a token, to be shown once, and its SHA-256, to be stored.
func NewToken() (token string, sum [sha256.Size]byte) {
	token = "cmb_" + strings.ToLower(rand.Text()+rand.Text()[:6])
	return token, sha256.Sum256([]byte(token))
}
