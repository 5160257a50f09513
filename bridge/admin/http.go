package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/login"
)

// A failure is an answer that is an error. Its message may quote what the
// caller sent, and never a secret.
type failure struct {
	status  int
	code    string // one word, for programs
	message string
	hint    string // what to do; may be empty
}

func (f *failure) Error() string { return f.message }

// classify turns any error into a failure.
func classify(err error) *failure {
	var known *failure
	var refused *approval.RefusedError
	var settled *approval.SettledError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return &failure{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is larger than %d bytes", large.Limit), ""}
	case errors.As(err, &settled):
		if v := settled.Verdict; v.By == "" {
			return &failure{http.StatusGone, "gone", "it cannot be answered any more: " + canon.Escape(settled.Error()), ""}
		}
		return &failure{http.StatusConflict, "settled", canon.Escape(settled.Error()), ""}
	case errors.As(err, &refused):
		return &failure{http.StatusUnprocessableEntity, "refused", canon.Escape(refused.Error()), ""}
	case errors.Is(err, approval.ErrDigest):
		return &failure{http.StatusConflict, "changed", "the request is not what you saw any more", "look at it again"}
	case errors.Is(err, approval.ErrUnknown), errors.Is(err, ErrUnknown), errors.Is(err, login.ErrNoLogin):
		return &failure{http.StatusNotFound, "not_found", "there is none of that id", ""}
	case errors.Is(err, ErrEnded):
		return &failure{http.StatusConflict, "ended", "the run has ended", "GET /api/result/{id} has its result"}
	case errors.Is(err, ErrChanged):
		return &failure{http.StatusConflict, "changed", "it was changed meanwhile", "load it again"}
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged):
		return &failure{http.StatusServiceUnavailable, "audit_unavailable", "it could not be written down", "see the bridge's log"}
	}
	return &failure{http.StatusInternalServerError, "internal", "something went wrong", "see the bridge's log"}
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) // whoever does not read it has gone
	return nil
}

// fields are the members that a body may have, with their destinations.
type fields map[string]any

func (s *Site) read(w http.ResponseWriter, r *http.Request, into fields) error {
	return readBody(w, r, s.o.Limits.MaxBody, into)
}

// readBody reads a body of at most max bytes that is a JSON object. Duplicate members
// and unknown names are refused, also if they differ from known ones only in case.
func readBody(w http.ResponseWriter, r *http.Request, max int64, into fields) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return &failure{http.StatusBadRequest, "body", "the body could not be read", ""}
	}
	if body = bytes.TrimSpace(body); len(body) == 0 {
		body = []byte("{}")
	}
	if _, err := canon.Parse(body); err != nil { // duplicate names, bad UTF-8, trailing data
		return &failure{http.StatusBadRequest, "body", "the body is no JSON object: " + canon.Escape(err.Error()), ""}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return &failure{http.StatusBadRequest, "body", "the body is no JSON object", ""}
	}
	for name, text := range members {
		to, ok := into[name]
		if !ok {
			var known []string
			for k := range into {
				known = append(known, k)
			}
			slices.Sort(known)
			return invalid(fmt.Sprintf("there is no member %q", canon.Escape(name)), "the members are "+strings.Join(known, ", "))
		}
		if err := json.Unmarshal(text, to); err != nil {
			return invalid(fmt.Sprintf("the member %q is not what it should be", name), canon.Escape(err.Error()))
		}
	}
	return nil
}

func invalid(message, hint string) error {
	return &failure{http.StatusUnprocessableEntity, "invalid", message, hint}
}

func missing(what string) error {
	return &failure{http.StatusNotFound, "not_found", "this bridge has no " + what, ""}
}
