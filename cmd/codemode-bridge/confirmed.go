package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/confirmed"
	"codemode-bridge/profiles"
)

// Whoever wants to run scripts with a configuration compares it first with what
// was confirmed of its file, whichever way the file is named: see judge. What
// becomes of one that must wait is in held.go.

// A heldConfig is a configuration that waits to be confirmed.
type heldConfig struct {
	cfg   *config.Config
	why   []string
	other []string // those of why that are not about profiles
	grave bool     // who confirms it says why
	diff  []string // how the profiles differ

	// old is what was confirmed last, and goes on; nil if it cannot be read.
	old *config.Config
	// texts are those of old; nil if there is nothing to start with instead.
	texts *config.Texts
}

// judge compares a configuration with what was confirmed of its file, with what
// was taken over since and, in a bridge that runs, with what is in force. Nil
// means that it may be taken over.
//
// With an overlay, the file alone is compared as well: it is also what other
// environments are made of. The first start with an overlay, or without one, is
// compared with the file as the other environments have it.
func (a *app) judge(cfg, running *config.Config) (*heldConfig, error) {
	record, err := a.recordOf(cfg)
	if err != nil {
		return nil, err
	}
	h := &heldConfig{cfg: cfg, old: running}
	its, known := record.Environments[overlayKey(cfg)]
	if known && its.Taken == nil && its.Confirmed == confirmed.Texts(cfg.Texts()) {
		return nil, nil // confirmed as it is
	}
	if running != nil && !(known && its.InForce() == confirmed.Texts(running.Texts())) {
		h.compare(running, cfg)
	}
	if known {
		inForce := config.Texts(its.InForce())
		h.texts = &inForce
		h.against(a, inForce)
		if its.Taken != nil {
			h.against(a, config.Texts(its.Confirmed))
		}
	} else {
		for _, other := range record.Environments {
			file := config.Texts(other.InForce()).WithoutOverlay()
			if cfg.Overlay == "" {
				h.texts = &file
			}
			h.against(a, file)
			h.against(a, config.Texts(other.Confirmed).WithoutOverlay())
		}
	}
	if len(h.why) == 0 {
		return nil, nil
	}
	return h, nil
}

// against compares what waits with texts and, where it has an overlay, the file
// alone with the file alone.
func (h *heldConfig) against(a *app, texts config.Texts) {
	old, err := texts.Recall(a.env, a.policy(h.cfg.File))
	if err != nil {
		h.say("what was confirmed of it cannot be read any more: " + firstLine(err.Error()))
		return
	}
	if h.old == nil {
		h.old = old
	}
	h.compare(old, h.cfg)
	if h.cfg.Overlay == "" {
		return
	}
	file, err := h.cfg.Texts().WithoutOverlay().Recall(a.env, a.policy(h.cfg.File))
	if err == nil {
		old, err = texts.WithoutOverlay().Recall(a.env, a.policy(h.cfg.File))
	}
	if err != nil {
		h.say("the file without its overlay cannot be compared: " + firstLine(err.Error()))
		return
	}
	h.compare(old, file)
}

// compare notes in what cfg may be looser than old. Where old has no approvers
// there is nobody who could confirm it.
func (h *heldConfig) compare(old, cfg *config.Config) {
	if len(old.Approvals.Approvers) == 0 {
		return
	}
	policy, other := profiles.Looser(old.Profiles, cfg.Profiles), looserBeside(old, cfg)
	if len(policy)+len(other) == 0 {
		return
	}
	for _, why := range policy {
		if !slices.Contains(h.why, why) {
			h.why = append(h.why, why)
		}
	}
	h.say(other...)
	h.grave = h.grave || grave(old, cfg)
	if h.diff == nil {
		h.diff = profileDiff(old.Profiles, cfg.Profiles)
	}
}

// say adds what is not about profiles.
func (h *heldConfig) say(other ...string) {
	for _, why := range other {
		if !slices.Contains(h.other, why) {
			h.why, h.other = append(h.why, why), append(h.other, why)
		}
	}
}

// overlayKey is what a record calls the environment of a configuration.
func overlayKey(cfg *config.Config) string {
	if cfg.Overlay == "" {
		return ""
	}
	return confirmed.Resolve(cfg.Overlay)
}

// confirmedStore is where records of configurations are kept. It depends on
// nothing that a configuration says.
func (a *app) confirmedStore() (*confirmed.Store, error) {
	places, err := config.Paths(a.env)
	if err != nil {
		return nil, &configError{fmt.Errorf("there is no folder for what was confirmed of the configuration: %w", err), "set XDG_STATE_HOME, or HOME"}
	}
	return confirmed.Open(filepath.Join(places.StateDir, "confirmed")), nil
}

// recordOf is what is kept of a configuration's file. Without a state folder
// nothing can be kept, which is right only where nobody could confirm anything.
func (a *app) recordOf(cfg *config.Config) (confirmed.Record, error) {
	store, err := a.confirmedStore()
	if err != nil {
		if len(cfg.Approvals.Approvers) == 0 {
			err = nil
		}
		return confirmed.Record{}, err
	}
	record, err := store.Read(cfg.File)
	if err != nil {
		return confirmed.Record{}, unreadable(cfg, err)
	}
	return record, nil
}

// keepTaken notes that a configuration is in force: confirmed by somebody, or
// taken over because it loosens nothing. Of a file that never had approvers it
// keeps nothing. It reports whether this is the first that is kept of its file.
func (a *app) keepTaken(cfg *config.Config, by, channel string, now time.Time) (first bool, err error) {
	store, err := a.confirmedStore()
	if err != nil {
		if len(cfg.Approvals.Approvers) == 0 {
			err = nil
		}
		return false, err
	}
	texts := confirmed.Texts(cfg.Texts())
	if record, err := store.Read(cfg.File); err == nil && by == "" {
		its, known := record.Environments[overlayKey(cfg)]
		if known && its.InForce() == texts || len(record.Environments) == 0 && len(cfg.Approvals.Approvers) == 0 {
			return false, nil // most starts write nothing
		}
	}
	err = store.Change(cfg.File, by != "", func(r *confirmed.Record) error {
		its, known := r.Environments[overlayKey(cfg)]
		first = len(r.Environments) == 0
		switch {
		case by != "", !known, !a.guarded(its.Confirmed, cfg):
			its = confirmed.Standing{Confirmed: texts, By: by, Channel: channel, At: now}
		default:
			its.Taken = &texts
		}
		r.Environments[overlayKey(cfg)] = its
		return nil
	})
	return first, err
}

// guarded reports whether what was confirmed has approvers, so that it stays
// what edits are compared with until one of them confirms another.
func (a *app) guarded(was confirmed.Texts, cfg *config.Config) bool {
	old, err := config.Texts(was).Recall(a.env, a.policy(cfg.File))
	return err != nil || len(old.Approvals.Approvers) > 0
}

// A beginning is what a bridge starts with.
type beginning struct {
	cfg    *config.Config // that is in force
	file   *config.Config // what the file says: another one if that waits for an approver
	looked []string       // the variables that cfg was read with
}

// begin reads the configuration for a bridge that goes on running. Where the
// file waits for an approver, what was confirmed last goes on.
func (a *app) begin() (beginning, error) {
	cfg, looked, err := a.loadLooked()
	if err != nil {
		return beginning{}, err
	}
	h, err := a.judge(cfg, nil)
	if h == nil || err != nil {
		return beginning{cfg, cfg, looked}, err
	}
	if h.texts == nil {
		return beginning{}, h.refusal("")
	}
	names := a.rememberLookups()
	old, err := h.texts.Parse(a.env, a.policy(cfg.File))
	looked = names()
	if err != nil {
		return beginning{}, h.refusal(", and what was confirmed last cannot go on: " + firstLine(err.Error()))
	}
	return beginning{old, cfg, looked}, nil
}

// mayRun refuses a configuration that waits for an approver.
func (a *app) mayRun(cfg *config.Config) error {
	h, err := a.judge(cfg, nil)
	if h == nil || err != nil {
		return err
	}
	return h.refusal("")
}

// refusal is the error of what cannot be done while the configuration waits.
func (h *heldConfig) refusal(more string) error {
	return &configError{fmt.Errorf("%s waits for an approver: %s%s", heldKey(h.cfg), strings.Join(h.why, "; "), more),
		"codemode-bridge config pending shows it, config confirm takes it over; or take the edit back"}
}
