package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"strings"
)

// A Secret lets somebody without a principal go on with a run from another session.
type Secret struct {
	Text string // empty where only its hash is known
	Hash []byte // SHA-256, which is what is kept
}

// NewSecret makes a secret.
func NewSecret() Secret {
	var random [16]byte
	rand.Read(random[:])
	text := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
	hash := sha256.Sum256([]byte(text))
	return Secret{text, hash[:]}
}

// Has reports whether the text is that of the secret with a hash.
func (s Secret) Has(hash []byte) bool {
	sum := sha256.Sum256([]byte(s.Text))
	return s.Text != "" && len(hash) == len(sum) && subtle.ConstantTimeCompare(sum[:], hash) == 1
}
