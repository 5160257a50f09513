// Package seal makes the request states that a stateless client carries from a
// question to its answer. Only the holder of the key can read one, and nobody can
// alter it; it is bound to a principal and a call, and expires.
//
// A state is the base64url of a nonce followed by the JSON of a [State], encrypted
// with AES-256-GCM. Every process with the same key can read it. The process that
// first sees a state keeps the result of that use, so that a state delivers its
// answers only once.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// A State is what a stateless client carries from a question to its answer. It
// names a run and nothing else of value.
type State struct {
	ID        string            `json:"i"` // distinguishes it from others, however its text is encoded
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

// ErrInvalid is all that a client is told about a state that was sealed with another
// key or altered, belongs to somebody else, or has expired.
var ErrInvalid = errors.New("the request state is not valid here; run the script again")

// A Seal makes and reads states. Its methods may be called by any number of
// goroutines.
type Seal struct {
	aead cipher.AEAD

	mu   sync.Mutex
	used map[string]*Use // by ID of the state
	row  []string        // their IDs, the oldest use first
}

// A Use is what came of a state when a client first came back with it. Coming back
// with it again delivers nothing more, and goes on from there.
type Use struct {
	once   sync.Once
	Left   []string          // IDs of requests that are left to approvers
	Missed map[string]string // request ID -> what its first answer lacked
}

// First calls f if this is the first use; others wait until it has returned.
func (u *Use) First(f func()) { u.once.Do(f) }

// maxUses bounds the uses that are kept. Only the client that was given a state can
// come back with it, so one that has the oldest use forgotten deceives only itself.
const maxUses = 10_000

// Use returns the one use of a state. States of older releases have no ID, and get a
// new use each time.
func (s *Seal) Use(st State) *Use {
	if st.ID == "" {
		return &Use{Missed: map[string]string{}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.used[st.ID]; u != nil {
		return u
	}
	if len(s.row) == maxUses {
		delete(s.used, s.row[0])
		s.row = s.row[1:]
	}
	u := &Use{Missed: map[string]string{}}
	s.used[st.ID], s.row = u, append(s.row, st.ID)
	return u
}

// New makes a seal with a key of 32 bytes; nil makes a new one.
func New(key []byte) (*Seal, error) {
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
	return &Seal{aead: aead, used: map[string]*Use{}}, nil
}

// Close seals a state, a new one each time.
func (s *Seal) Close(st State) (string, error) {
	st.ID = rand.Text()
	plain, err := json.Marshal(st)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, s.aead.NonceSize())
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, nil)), nil
}

// Open reads a state that was sealed for a principal and a call and has not expired
// by now.
func (s *Seal) Open(text, principal, call string, now time.Time) (State, error) {
	var st State
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) < s.aead.NonceSize() {
		return st, ErrInvalid
	}
	n := s.aead.NonceSize()
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], nil)
	if err != nil || json.Unmarshal(plain, &st) != nil {
		return State{}, ErrInvalid
	}
	if st.Principal != principal || st.Call != call || now.After(st.Expires) {
		return State{}, ErrInvalid
	}
	return st, nil
}
