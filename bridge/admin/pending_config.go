package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// A PendingConfig is a pending configuration, as the API shows it.
type PendingConfig struct {
	File string `json:"file"`
	// Digest is of the exact text; a confirmation must carry it.
	Digest string    `json:"digest"`
	Since  time.Time `json:"since"`
	Why    []string  `json:"why"`            // where it is looser
	Diff   []string  `json:"diff,omitempty"` // of the profiles as they apply
	Reason bool      `json:"reason_needed"`  // of who confirms it
	May    bool      `json:"you_may_confirm"`
	// RejectedBy and RejectedWhy say who rejected it and why, if anybody did.
	RejectedBy  string `json:"rejected_by,omitempty"`
	RejectedWhy string `json:"rejected_why,omitempty"`
}

// pendingConfig returns the pending configuration, as the caller may see it; nil if
// there is none.
func (s *Site) pendingConfig(ctx context.Context, who *caller) (*PendingConfig, error) {
	if s.o.Config == nil {
		return nil, nil
	}
	h, err := s.o.Config.Pending(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration that waits: %w", err)
	}
	if h == nil {
		return nil, nil
	}
	shown := &PendingConfig{File: canon.Escape(h.File), Digest: h.Digest, Since: h.Since, Why: []string{}, Reason: h.NeedsReason, May: who.May(approval.ConfirmConfig)}
	if h.Rejected != nil {
		shown.RejectedBy, shown.RejectedWhy = canon.Escape(h.Rejected.By), canon.Escape(canon.Redact(h.Rejected.Text))
	}
	for _, why := range h.Why {
		shown.Why = append(shown.Why, canon.Escape(why))
	}
	for _, line := range h.Diff {
		shown.Diff = append(shown.Diff, canon.Escape(line))
	}
	return shown, nil
}

// configHandlers are the API of the pending configuration.
type configHandlers struct{ *Site }

func (s configHandlers) showConfig(who *caller, w http.ResponseWriter, r *http.Request) error {
	if s.o.Config == nil {
		return missing("configuration to show")
	}
	held, err := s.pendingConfig(r.Context(), who)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"held": held})
}

// confirmConfig lets an edit take effect.
func (s configHandlers) confirmConfig(who *caller, w http.ResponseWriter, r *http.Request) error {
	return s.judgeConfig(who, w, r, true)
}

// rejectConfig notes that an edit is not wanted.
func (s configHandlers) rejectConfig(who *caller, w http.ResponseWriter, r *http.Request) error {
	return s.judgeConfig(who, w, r, false)
}

// judgeConfig records somebody's answer to the pending configuration, and then applies
// it.
func (s configHandlers) judgeConfig(who *caller, w http.ResponseWriter, r *http.Request, confirm bool) error {
	if s.o.Config == nil {
		return missing("configuration to confirm")
	}
	var digest, reason string
	if err := s.read(w, r, fields{"digest": &digest, "reason": &reason}); err != nil {
		return err
	}
	switch reason = strings.TrimSpace(reason); {
	case len(reason) > maxReason:
		return invalid(fmt.Sprintf("a reason has at most %d bytes", maxReason), "")
	case digest == "":
		return invalid("digest is missing", "send the one that GET /api/config gave")
	}
	held, err := s.pendingConfig(r.Context(), who)
	switch {
	case err != nil:
		return err
	case held == nil:
		return &failure{http.StatusNotFound, "not_found", "no configuration waits", ""}
	case held.Digest != digest:
		return ErrChanged
	case confirm && held.Reason && reason == "":
		return invalid("confirming this change needs a reason", "say why in reason")
	}
	verb, do, done := "confirm", s.o.Config.Confirm, "confirmed"
	if !confirm {
		verb, do, done = "reject", s.o.Config.Reject, "rejected"
	}
	detail, err := json.Marshal(map[string]string{verb: digest, "said": canon.Escape(canon.Redact(reason))})
	if err != nil {
		return fmt.Errorf("writing the detail of a record: %w", err)
	}
	if err := s.record(r.Context(), who, ledger.Record{Event: ledger.ConfigChanged, Outcome: ledger.ConfigPending, Reasons: held.Why, Detail: detail}); err != nil {
		return err
	}
	if err := do(r.Context(), digest, approval.Confirmation{By: who.Name, Channel: who.channel, Text: reason, At: s.o.Now()}); err != nil {
		return fmt.Errorf("settling the configuration that waits: %w", err)
	}
	return answer(w, http.StatusOK, map[string]any{"digest": digest, done: true})
}
