// Package commons keeps what many runs begin with, the names that their scripts see and
// the policy, and writes it once for all of their journals.
package commons

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"codemode-bridge/bridge/catalog"
	"codemode-bridge/profiles"
)

// Names are the tools that a script may name: what package sandbox calls so, as journals have it.
type Names struct {
	Revision string
	Names    []string
	Servers  []string
}

// A common is what many runs begin with, as it stands in their journals: the
// names that scripts see, and the policy.
type common struct {
	Seen   *Names          `json:"seen"`
	Policy json.RawMessage `json:"policy"`
}

// Commons have what the runs under one view have in common, and keep it until the view is
// another.
type Commons struct {
	Logger *slog.Logger
	known  sync.Map // *catalog.View -> *Names; names and policy -> common as text
}

// Forget is called when the view changes.
func (s *Commons) Forget() { s.known.Clear() }

// Names are what a script may call that sees view. They are the same value
// as long as they are the same names, so that a worker is told only once.
func (s *Commons) Names(view *catalog.View) *Names {
	if known, ok := s.known.Load(view); ok {
		return known.(*Names)
	}
	names := &Names{Names: view.Names()}
	sum := sha256.New()
	for _, name := range names.Names {
		fmt.Fprintln(sum, name)
	}
	for _, prefix := range view.Prefixes() {
		names.Servers = append(names.Servers, prefix)
		fmt.Fprintln(sum, prefix)
	}
	names.Revision = hex.EncodeToString(sum.Sum(nil)[:12])
	s.known.Store(view, names)
	return names
}

// Text is the form of a common in journals, and its name there. Without
// one, what could not be written is refused when it is read.
func (s *Commons) Text(names *Names, policy *profiles.Set) (name string, text []byte) {
	type pair struct {
		names  *Names
		policy *profiles.Set
	}
	if known, ok := s.known.Load(pair{names, policy}); ok {
		text = known.([]byte)
	} else {
		source, err := policy.Source()
		if err == nil {
			text, err = json.Marshal(common{names, source})
		}
		if err != nil {
			s.Logger.Error("writing the policy of a run", "err", err)
		}
		s.known.Store(pair{names, policy}, text)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), text
}

// Read reads what Text wrote, or the names alone, which is all that
// older releases kept.
func Read(text []byte) (names *Names, policy *profiles.Set, err error) {
	var c common
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, nil, err
	}
	if c.Seen == nil {
		err = json.Unmarshal(text, &names)
		return names, nil, err
	}
	policy, err = profiles.FromSource(c.Policy)
	return c.Seen, policy, err
}
