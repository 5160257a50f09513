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
