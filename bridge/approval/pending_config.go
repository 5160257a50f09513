package approval

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// A PendingConfig is a configuration that is looser than the one in force and
// waits for somebody with that right to confirm it. Bridges with the same
// configuration file share it.
type PendingConfig struct {
	File   string    `json:"file"`
	Digest string    `json:"digest"` // of the exact text
	Since  time.Time `json:"since"`
	// Why says how it is looser, and Diff how the profiles differ.
	Why  []string `json:"why"`
	Diff []string `json:"diff,omitempty"`
	// NeedsReason reports that whoever confirms it must give a reason.
	NeedsReason bool `json:"reason_needed,omitempty"`
	// Approvers and Delegations are those in force. Any that the text itself adds
	// have no say yet.
	Approvers   []Approver   `json:"approvers"`
	Delegations []Delegation `json:"delegations,omitempty"`
	// Bridges are those that have it pending.
	Bridges []string `json:"bridges,omitempty"`
	// Rejected, if not nil, says who rejected it. It is still pending: it can be
	// edited back, or an approver can change their mind.
	Rejected *Confirmation `json:"rejected,omitempty"`
	Confirmation
}

// A Confirmation says who confirmed or rejected a configuration, through which
// channel and when, and what they wrote.
type Confirmation struct {
	By      string    `json:"by,omitempty"`
	Channel string    `json:"channel,omitempty"`
	Text    string    `json:"text,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// confirmedFor is how long a confirmation covers the confirmed text. Bridges
// that read the file a little later need not ask again; a text that returns on
// another day needs a new confirmation.
const confirmedFor = time.Minute

// SubmitConfig replaces the pending configuration of h's file with h, and returns
// what is pending now. If the same text is already pending, or was just confirmed,
// that one stays and h's bridges are added to it.
func SubmitConfig(ctx context.Context, s Store, h PendingConfig, now time.Time) (PendingConfig, error) {
	kept, err := s.ChangePendingConfig(ctx, h.File, func(old *PendingConfig) (*PendingConfig, error) {
		if old != nil && old.Digest == h.Digest && (old.By == "" || now.Sub(old.At) < confirmedFor) {
			more := slices.DeleteFunc(slices.Clone(h.Bridges), func(b string) bool { return slices.Contains(old.Bridges, b) })
			if old.By != "" || len(more) == 0 {
				return old, nil
			}
			both := *old
			both.Bridges = slices.Concat(old.Bridges, more)
			return &both, nil
		}
		return &h, nil
	})
	if err != nil {
		return PendingConfig{}, err
	}
	return *kept, nil
}

// Confirm confirms the text with that digest, so that it can be applied.
// ErrUnknown means that the text is not pending for that file, a [RefusedError]
// that the confirmation needs a reason.
func Confirm(ctx context.Context, s Store, file, digest string, said Confirmation) error {
	_, err := s.ChangePendingConfig(ctx, file, func(old *PendingConfig) (*PendingConfig, error) {
		switch {
		case old == nil || old.Digest != digest:
			return nil, ErrUnknown
		case old.By != "":
			return old, nil
		case old.NeedsReason && strings.TrimSpace(said.Text) == "":
			return nil, &RefusedError{errors.New("confirming this change needs a reason")}
		}
		h := *old
		h.Confirmation, h.Rejected = said, nil
		return &h, nil
	})
	return err
}

// Reject records that the text with that digest was rejected: no part of it
// applies, not even the rights that it takes away. ErrUnknown means that it is
// not pending.
func Reject(ctx context.Context, s Store, file, digest string, said Confirmation) error {
	_, err := s.ChangePendingConfig(ctx, file, func(old *PendingConfig) (*PendingConfig, error) {
		if old == nil || old.Digest != digest || old.By != "" {
			return nil, ErrUnknown
		}
		h := *old
		h.Rejected = &said
		return &h, nil
	})
	return err
}

// WithdrawConfig drops the pending configuration of a file, unless a bridge that
// is still running has it pending. That somebody rejected it is not forgotten.
func WithdrawConfig(ctx context.Context, s Store, file string, gone func(bridge string) bool) error {
	_, err := s.ChangePendingConfig(ctx, file, func(old *PendingConfig) (*PendingConfig, error) {
		if old == nil {
			return nil, nil
		}
		left := slices.DeleteFunc(slices.Clone(old.Bridges), gone)
		switch {
		case len(left) == 0 && old.Rejected == nil:
			return nil, nil
		case len(left) == len(old.Bridges):
			return old, nil
		}
		h := *old
		h.Bridges = left
		return &h, nil
	})
	return err
}

// PendingConfigOf returns the pending configuration of a file, or nil.
func PendingConfigOf(ctx context.Context, s Store, file string) (*PendingConfig, error) {
	return s.ChangePendingConfig(ctx, file, func(old *PendingConfig) (*PendingConfig, error) { return old, nil })
}
