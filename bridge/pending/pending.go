package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
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
// A file is also compared with those that its name led to before. With an
// overlay, the file alone is compared as well: it is also what other
// environments are made of. The first start with an overlay, or without one, is
// compared with the file as the other environments have it.
func judge(con *console, cfg, running *config.Config) (*heldConfig, error) {
	records, err := recordsOf(con, cfg)
	if err != nil {
		return nil, err
	}
	h := &heldConfig{cfg: cfg, old: running}
	if len(records) == 1 {
		own := standings(records[0], cfg)
		if len(own) == 1 && own[0].Taken == nil && own[0].Confirmed == confirmed.Texts(cfg.Texts()) {
			return nil, nil // confirmed as it is
		}
	}
	past, goesOn := comparedWith(records, cfg)
	if running != nil && !slices.Contains(past, running.Texts()) {
		h.compare(running, cfg)
	}
	for i, texts := range past {
		old := h.against(con, texts)
		if i == 0 && goesOn {
			h.texts = &texts
		}
		if i == 0 && h.old == nil {
			h.old = old
		}
	}
	if len(h.why) == 0 {
		return nil, nil
	}
	return h, nil
}

// comparedWith returns the texts that a configuration is compared with, those
// that were in force last first, and whether these can go on in its place: not
// where the file was never started with its overlay.
func comparedWith(records []confirmed.Record, cfg *config.Config) (past []config.Texts, goesOn bool) {
	add := func(texts ...confirmed.Texts) {
		for _, t := range texts {
			if !slices.Contains(past, config.Texts(t)) {
				past = append(past, config.Texts(t))
			}
		}
	}
	for i, record := range records {
		own := standings(record, cfg)
		for _, its := range own {
			add(its.InForce(), its.Confirmed)
		}
		if len(own) == 0 {
			for _, other := range newestFirst(record) {
				add(confirmed.Texts(config.Texts(other.InForce()).WithoutOverlay()), confirmed.Texts(config.Texts(other.Confirmed).WithoutOverlay()))
			}
		}
		if i == 0 {
			goesOn = len(own) > 0 || cfg.Overlay == ""
		}
	}
	return past, goesOn
}

// standings are what counts of a configuration's environment, the newest first:
// also what its overlay's name led to before.
func standings(record confirmed.Record, cfg *config.Config) []confirmed.Standing {
	if cfg.Overlay == "" {
		if its, known := record.Environments[""]; known {
			return []confirmed.Standing{its}
		}
		return nil
	}
	names := confirmed.Names(cfg.Overlay)
	its := confirmed.Record{Environments: map[string]confirmed.Standing{}}
	for key, s := range record.Environments {
		if slices.Contains(names, key) || slices.Contains(names, s.Confirmed.OverlayName) || slices.Contains(names, s.InForce().OverlayName) {
			its.Environments[key] = s
		}
	}
	return newestFirst(its)
}

// newestFirst are the environments of a record, those confirmed last first.
func newestFirst(record confirmed.Record) []confirmed.Standing {
	var all []confirmed.Standing
	for _, key := range slices.Sorted(maps.Keys(record.Environments)) {
		all = append(all, record.Environments[key])
	}
	slices.SortStableFunc(all, func(x, y confirmed.Standing) int { return y.At.Compare(x.At) })
	return all
}

// against compares what waits with texts and, where it has an overlay, the file
// alone with the file alone. It returns what the texts mean, nil if they cannot
// be read.
func (h *heldConfig) against(a *console, texts config.Texts) *config.Config {
	old, err := texts.Recall(a.env, a.policy(h.cfg.File))
	if err != nil {
		h.say("what was confirmed of it cannot be read any more: " + firstLine(err.Error()))
		return nil
	}
	h.compare(old, h.cfg)
	if h.cfg.Overlay == "" {
		return old
	}
	file, err := h.cfg.Texts().WithoutOverlay().Recall(a.env, a.policy(h.cfg.File))
	alone := old
	if err == nil {
		alone, err = texts.WithoutOverlay().Recall(a.env, a.policy(h.cfg.File))
	}
	if err != nil {
		h.say("the file without its overlay cannot be compared: " + firstLine(err.Error()))
		return old
	}
	h.compare(alone, file)
	return old
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
func confirmedStore(con *console) (*confirmed.Store, error) {
	places, err := config.Paths(con.env)
	if err != nil {
		return nil, &configError{fmt.Errorf("there is no folder for what was confirmed of the configuration: %w", err), "set XDG_STATE_HOME, or HOME"}
	}
	return confirmed.Open(filepath.Join(places.StateDir, "confirmed")), nil
}

// recordsOf is what is kept of a configuration's file, and of those that its
// name led to before. Without a state folder nothing can be kept, which is right
// only where nobody could confirm anything.
func recordsOf(con *console, cfg *config.Config) ([]confirmed.Record, error) {
	store, err := confirmedStore(con)
	if err != nil {
		if len(cfg.Approvals.Approvers) == 0 {
			err = nil
		}
		return nil, err
	}
	records, err := store.Records(cfg.File)
	if err != nil {
		return nil, unreadable(cfg, err)
	}
	return records, nil
}

// keepTaken notes that a configuration is in force: confirmed by somebody, or
// taken over because it loosens nothing. Of a file that never had approvers it
// keeps nothing. It reports whether this is the first that is kept of its file.
func keepTaken(con *console, cfg *config.Config, by, channel string, now time.Time) (first bool, err error) {
	store, err := confirmedStore(con)
	if err != nil {
		if len(cfg.Approvals.Approvers) == 0 {
			err = nil
		}
		return false, err
	}
	texts := confirmed.Texts(cfg.Texts())
	if by == "" {
		records, err := store.Records(cfg.File)
		if err != nil {
			return false, err
		}
		first = len(records) == 0
		if first && len(cfg.Approvals.Approvers) == 0 || !first && keptAlready(store, records[0], cfg) {
			return false, nil // most starts write nothing
		}
	}
	return first, store.Change(cfg.File, by != "", func(r *confirmed.Record) error {
		its, known := r.Environments[overlayKey(cfg)]
		switch {
		case by != "":
			dropFormer(r, cfg)
			fallthrough
		case !known, !guarded(con, its.Confirmed, cfg):
			its = confirmed.Standing{Confirmed: texts, By: by, Channel: channel, At: now}
		default:
			its.Taken = &texts
		}
		r.Environments[overlayKey(cfg)] = its
		return nil
	})
}

// keptAlready reports whether a record, the newest of a configuration's file,
// says that it is in force.
func keptAlready(store *confirmed.Store, record confirmed.Record, cfg *config.Config) bool {
	its, known := record.Environments[overlayKey(cfg)]
	return known && its.InForce() == confirmed.Texts(cfg.Texts()) && store.Points(cfg.File, record.File)
}

// dropFormer makes what the overlay's name led to before count no more under
// that name: somebody confirms what it leads to now.
func dropFormer(r *confirmed.Record, cfg *config.Config) {
	if cfg.Overlay == "" {
		return
	}
	names, now := confirmed.Names(cfg.Overlay), overlayKey(cfg)
	for key, its := range r.Environments {
		switch {
		case key == now:
		case slices.Contains(names, key):
			delete(r.Environments, key)
		default: // it is still there by its own name
			if slices.Contains(names, its.Confirmed.OverlayName) {
				its.Confirmed.OverlayName = key
			}
			if its.Taken != nil && slices.Contains(names, its.Taken.OverlayName) {
				its.Taken.OverlayName = key
			}
			r.Environments[key] = its
		}
	}
}

// guarded reports whether what was confirmed has approvers, so that it stays
// what edits are compared with until one of them confirms another.
func guarded(con *console, was confirmed.Texts, cfg *config.Config) bool {
	old, err := config.Texts(was).Recall(con.env, con.policy(cfg.File))
	return err != nil || len(old.Approvals.Approvers) > 0
}

// A beginning is what a bridge starts with.
type beginning struct {
	cfg    *config.Config // that is in force
	file   *config.Config // what the file says: another one if that waits for an approver
	looked []string       // the variables that cfg was read with
}

// beginServing reads the configuration for a bridge that goes on running. Where the
// file waits for an approver, what was confirmed last goes on.
func beginServing(con *console) (beginning, error) {
	cfg, looked, err := con.loadLooked()
	if err != nil {
		return beginning{}, err
	}
	h, err := judge(con, cfg, nil)
	if h == nil || err != nil {
		return beginning{cfg, cfg, looked}, err
	}
	if h.texts == nil {
		return beginning{}, h.refusal("")
	}
	names := rememberLookups(con)
	old, err := h.texts.Parse(con.env, con.policy(cfg.File))
	looked = names()
	if err != nil {
		return beginning{}, h.refusal(", and what was confirmed last cannot go on: " + firstLine(err.Error()))
	}
	return beginning{old, cfg, looked}, nil
}

// mayRun refuses a configuration that waits for an approver.
func mayRun(con *console, cfg *config.Config) error {
	h, err := judge(con, cfg, nil)
	if h == nil || err != nil {
		return err
	}
	return h.refusal("")
}

// refusal is the error of what cannot be done while the configuration waits.
func (h *heldConfig) refusal(more string) error {
	return &configError{fmt.Errorf("%s waits for an approver: %s%s", heldKey(h.cfg), strings.Join(h.why, "; "), more), h.wayOn() + "; or take the edit back"}
}

// wayOn says how what waits is taken over.
func (h *heldConfig) wayOn() string {
	if h.old == nil || anyoneMay(approval.ConfirmConfig, h.old.Approvals) {
		return "codemode-bridge config pending shows it, config confirm takes it over"
	}
	return "no approver in force may confirm it, which takes the role admin: codemode-bridge config pending shows it, config accept --offline takes it over, at a terminal"
}
