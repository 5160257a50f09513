package bridge

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

// A state is what a stateless client carries from a question to its answer.
// It names a run and nothing else of value.
type state struct {
	ID        string            `json:"i"` // tells it from others, however its text is written
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
type seal struct {
	aead cipher.AEAD

	mu   sync.Mutex
	used map[string]*use // by ID of the state
	row  []string        // their IDs, the oldest use first
}

// A use is what came of a state when a client first came back with it: whoever
// comes with it again brings nothing, and goes on from there.
type use struct {
	once   sync.Once
	left   []string
	missed map[string]string
}

// maxUses bounds the uses that are kept. Nobody but who was given a state can
// come with it, so who has the oldest forgotten deceives themselves.
const maxUses = 10_000

// use returns the one use of a state. States of older releases have no ID, and a
// use each time.
func (s *seal) use(st state) *use {
	if st.ID == "" {
		return &use{missed: map[string]string{}}
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
	u := &use{missed: map[string]string{}}
	s.used[st.ID], s.row = u, append(s.row, st.ID)
	return u
}

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
	return &seal{aead: aead, used: map[string]*use{}}, nil
}

// close seals a state, a new one each time.
func (s *seal) close(st state) (string, error) {
	st.ID = rand.Text()
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
