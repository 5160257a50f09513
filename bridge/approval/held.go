package approval

import (
	"context"
	"time"
)

// A Held is a configuration that loosens what holds and waits until somebody
// who may confirms it. Bridges with the same configuration file share it.
type Held struct {
	File   string    `json:"file"`
	Digest string    `json:"digest"` // of the exact text
	Since  time.Time `json:"since"`
	// Why says in what it is looser, and Diff how the profiles differ.
	Why  []string `json:"why"`
	Diff []string `json:"diff,omitempty"`
	// Approvers and Delegations are those in force. The ones that the text
	// itself may bring have no say yet.
	Approvers   []Approver   `json:"approvers"`
	Delegations []Delegation `json:"delegations,omitempty"`
	// By confirmed it, through Channel, at At.
	By      string    `json:"by,omitempty"`
	Channel string    `json:"channel,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// confirmedFor is how long a confirmation covers the text that was confirmed.
// Bridges that read the file a little later need not ask again; a text that
// comes back another day is asked about again.
const confirmedFor = time.Minute

// Hold keeps h in the place of what is held of its file, and returns what is
// held now: where the same text waits already, or was confirmed just now, that.
func Hold(ctx context.Context, s Store, h Held, now time.Time) (Held, error) {
	kept, err := s.ChangeHeld(ctx, h.File, func(old *Held) (*Held, error) {
		if old != nil && old.Digest == h.Digest && (old.By == "" || now.Sub(old.At) < confirmedFor) {
			return old, nil
		}
		return &h, nil
	})
	if err != nil {
		return Held{}, err
	}
	return *kept, nil
}

// Confirm lets the text with that digest be taken over. ErrUnknown means that
// it is not what is held of the file.
func Confirm(ctx context.Context, s Store, file, digest, by, channel string, now time.Time) error {
	_, err := s.ChangeHeld(ctx, file, func(old *Held) (*Held, error) {
		switch {
		case old == nil || old.Digest != digest:
			return nil, ErrUnknown
		case old.By != "":
			return old, nil
		}
		h := *old
		h.By, h.Channel, h.At = by, channel, now
		return &h, nil
	})
	return err
}

// Release drops what is held of a file.
func Release(ctx context.Context, s Store, file string) error {
	_, err := s.ChangeHeld(ctx, file, func(*Held) (*Held, error) { return nil, nil })
	return err
}

// HeldOf returns what is held of a file, or nil.
func HeldOf(ctx context.Context, s Store, file string) (*Held, error) {
	return s.ChangeHeld(ctx, file, func(old *Held) (*Held, error) { return old, nil })
}

// ChangeHeld changes what is held of a file.
func (m *Memory) ChangeHeld(_ context.Context, file string, change func(*Held) (*Held, error)) (*Held, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.held[file]
	h, err := change(old)
	if err != nil || h == old {
		return h, err
	}
	if m.held == nil {
		m.held = map[string]*Held{}
	}
	if m.held[file] = h; h == nil {
		delete(m.held, file)
	}
	m.touchLocked()
	return h, nil
}
