package config

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// minToken is the least length of a token: a shorter one could be guessed.
const minToken = 16

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// A bearers checks a list of token holders: that each has a legal name, and that
// neither names nor tokens are there twice.
type bearers struct {
	found      *findings
	kind, seen string // what one of them is called, and where their names are seen
	names      map[string]bool
	digests    map[Digest]bool
}

func newBearers(found *findings, kind, seen string) *bearers {
	return &bearers{found, kind, seen, map[string]bool{}, map[Digest]bool{}}
}

// name checks the name of the holder at a pointer.
func (b *bearers) name(at, name string) {
	f := b.found
	if f.unusable[at] {
		return
	}
	switch {
	case !f.has(at + "/name"):
		f.at(at, fmt.Sprintf("%s has no name", article(b.kind)), `add "name": "...", `+b.seen)
	case !f.sound(at + "/name"):
	case !tokenName.MatchString(name):
		f.at(at+"/name", fmt.Sprintf(`the name of %s is made of letters, digits and ". _ @ -", 64 at most`, article(b.kind)), "")
	case b.names[name]:
		f.at(at+"/name", fmt.Sprintf("two %ss are called %q", b.kind, name), "")
	}
	b.names[name] = true
}

// check checks the holder at a pointer, and sets the digest of the token.
func (b *bearers) check(at, name string, sum, token Value, digest *Digest) {
	f := b.found
	if f.unusable[at] {
		return
	}
	b.name(at, name)
	var value string
	switch {
	case f.has(at+"/sha256") && f.has(at+"/token"):
		f.at(at+"/token", fmt.Sprintf(`%s has both "sha256" and "token"`, article(b.kind)), "keep one of them")
		return
	case f.sound(at + "/sha256"), sum.missing:
		value = at + "/sha256"
		if sum.Secret() {
			f.at(value, `"sha256" is no secret`, `write it, or name the token itself: "token": "${keyring:NAME}"`)
			return
		}
		text := strings.TrimPrefix(sum.Reveal(), "sha256:")
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != sha256.Size || Digest(raw) == sha256.Sum256(nil) {
			f.at(value, `"sha256" is not the SHA-256 of a token`, `64 hexadecimal digits, as printed by: printf %s "$TOKEN" | sha256sum`)
			return
		}
		*digest = Digest(raw)
	case f.sound(at + "/token"), token.missing:
		value = at + "/token"
		if !reference.MatchString(written(f.places[value])) || strings.Contains(written(f.places[value]), ":-") {
			f.at(value, "a token may not stand in the file", `name a variable or a secret: "token": "${BRIDGE_TOKEN}", or give its "sha256"`)
			return
		}
		if token.missing {
			*digest = Digest(unguessable(token.Origin()))
			break
		}
		if len(token.Reveal()) < minToken {
			f.at(value, fmt.Sprintf("the token is shorter than %d characters", minToken), "make one with: openssl rand -hex 32")
			return
		}
		*digest = sha256.Sum256([]byte(token.Reveal()))
	case f.has(at+"/sha256") || f.has(at+"/token"):
		return
	default:
		f.at(at, fmt.Sprintf(`%s has neither "sha256" nor "token"`, article(b.kind)), `add "token": "${BRIDGE_TOKEN}"`)
		return
	}
	if b.digests[*digest] {
		f.at(value, "the same token is there twice", "give each its own, so that one can be taken back")
	}
	b.digests[*digest] = true
}

// Same reports whether two tokens are the same, or what they are called is.
func (t Token) Same(o Token) bool { return same(t.Token, o.Token, t.Digest, o.Digest) }

// SameToken reports whether two approvers have the same token, or what theirs is called
// is the same.
func (a Approver) SameToken(o Approver) bool { return same(a.Token, o.Token, a.Digest, o.Digest) }

func same(a, b Value, aDigest, bDigest Digest) bool {
	if a.Secret() || b.Secret() {
		return a.Secret() && b.Secret() && a.Origin() == b.Origin()
	}
	return aDigest == bDigest
}

// missingKey is for the digests that stand for tokens that nobody has asked for.
var missingKey = sync.OnceValue(func() []byte { return []byte(rand.Text()) })

// unguessable is a digest that no token has: it tells those that are missing apart, and
// lets nobody in.
func unguessable(origin string) [sha256.Size]byte {
	mac := hmac.New(sha256.New, missingKey())
	mac.Write([]byte(origin))
	return [sha256.Size]byte(mac.Sum(nil))
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
