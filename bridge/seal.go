package bridge

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
)

// A state is what a stateless client carries from a question to its answer.
// It names a run and nothing else of value.
type state struct {
	Run       string            `json:"r"`
	Principal string            `json:"p"`           // who may come back with it
	Call      string            `json:"c"`           // digest of the tool's name and arguments
	Asked     map[string]string `json:"q"`           // request ID -> digest of what was shown
	Missed    map[string]string `json:"m,omitempty"` // request ID -> what its first answer lacked
	Left      []string          `json:"l,omitempty"` // IDs of requests that are left to approvers
	Round     int               `json:"n"`           // how many rounds there have been
	Given     time.Time         `json:"g"`           // when the client was asked
	Expires   time.Time         `json:"e"`
}

// errState is all that a client hears of a state that is not ours, altered,
// another's or too old.
var errState = errors.New("the request state is not valid here; run the script again")

// A seal makes states that only it can read and nobody can alter.
type seal struct{ aead cipher.AEAD }

// newSeal makes a seal with a key; nil is a new one.
func newSeal(key []byte) (*seal, error) {
	if key == nil {
		key = make([]byte, 32)
		rand.Read(key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &seal{aead}, nil
}

// close seals a state.
func (s *seal) close(st state) (string, error) {
	plain, err := json.Marshal(st)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, s.aead.NonceSize())
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, nil)), nil
}

// open reads a sealed state, for a principal and a call, at a time.
func (s *seal) open(text, principal, call string, now time.Time) (state, error) {
	var st state
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) < s.aead.NonceSize() {
		return st, errState
	}
	n := s.aead.NonceSize()
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], nil)
	if err != nil || json.Unmarshal(plain, &st) != nil {
		return state{}, errState
	}
	if st.Principal != principal || st.Call != call || now.After(st.Expires) {
		return state{}, errState
	}
	return st, nil
}
