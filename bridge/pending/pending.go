// Package pending decides whether a changed configuration applies at once or is
// pending: it then waits for an approver to confirm it.
//
// Where there are approvers, an edit that loosens something must not apply before
// one of them has seen it. Before scripts run with a configuration, [History.Judge]
// compares it with everything that was confirmed of its file, by whatever name the
// file is given ([codemode-bridge/bridge/confirmed] stores that). If something is
// looser, it returns a [Change]: the reasons in words, how the profiles differ, and
// which configuration applies meanwhile. [History.Keep] records what was confirmed,
// or applied because it loosens nothing.
//
// In a running bridge, a [Reloader] does this for each edit:
//
//	file changes ── Reload ──┬── nothing looser ────────────────▶ Take
//	   a start ─────┘        └── Submit ── Watch ── confirmed ──▶ Take
//
// A pending configuration is also in the store of requests
// (approval.PendingConfig), so that a confirmation in one process counts in every
// bridge with that file. Rights that the edit takes from approvers are lost at
// once, unless somebody rejects the edit.
//
// What makes one configuration looser than another is defined in rights.go, as
// plain functions of the two, and for profiles in profiles.Looser. Changes says
// for the record how any two differ.
package pending

import (
	"crypto/sha256"
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

// A History is what was confirmed of one user's configuration files.
type History struct {
	Env config.Env // where records are kept, and the values of variables
	// Policy returns the options for reading the profiles of a configuration file.
	Policy func(file string) profiles.Options
	// Shared returns where machines that have a configuration tell each other what was
	// confirmed of it; nil if it is this machine's alone. Nil stands for no such place.
	Shared func(cfg *config.Config) confirmed.Documents
}

// A Change is a configuration that waits for an approver.
type Change struct {
	Config      *config.Config
	Why         []string // how it may be looser
	Other       []string // those of Why that are not about profiles
	NeedsReason bool     // whoever confirms it must give a reason
	Diff        []string // how the profiles differ

	// Old stays in force: what the bridge runs with or, at a start, what was confirmed
	// last; nil if that cannot be read.
	Old *config.Config
	// texts are those that a start can use instead of Config; nil if there are none.
	texts *config.Texts
}

// Key names the file that is pending, whatever links lead to it.
func (c *Change) Key() string { return Key(c.Config) }

// Digest returns the digest of the exact text that is pending.
func (c *Change) Digest() string { return Digest(c.Config) }

// WayOn tells a person how to have the pending configuration applied.
func (c *Change) WayOn() string {
	if c.Old == nil || AnyoneMay(approval.ConfirmConfig, c.Old.Approvals) {
		return "codemode-bridge config pending shows it, config confirm takes it over"
	}
	return "no approver in force may confirm it, which takes the role admin: codemode-bridge config pending shows it, config confirm --offline takes it over, at a terminal"
}

// Meanwhile returns the configuration that applies while c is pending: the one
// confirmed last, less the rights that c takes away unless somebody has rejected c.
func (c *Change) Meanwhile(rejected bool) *config.Config {
	less := *c.Old
	if !rejected {
		less.Approvals = meanwhile(less.Approvals, c.Config.Approvals)
	}
	return &less
}

// Row returns c as the store of requests keeps it, for a bridge that runs with old
// meanwhile.
func (c *Change) Row(old *config.Config, bridge string) approval.PendingConfig {
	row := approval.PendingConfig{Bridges: []string{bridge}, File: c.Key(), Digest: c.Digest(), Since: time.Now(), Why: c.Why, NeedsReason: c.NeedsReason, Diff: c.Diff}
	less := *old
	less.Approvals = meanwhile(old.Approvals, c.Config.Approvals)
	if people, err := Approvers(&less, approval.Realm{}); err == nil { // fewer rights than those in force, which were valid
		row.Approvers = people.All()
	}
	row.Delegations = delegations(&less)
	return row
}

// Key names the file of a configuration that would be pending, whatever links lead
// to it: the overlay, where there is one. One that several machines have is named by its
// id, so that it waits once for all of them.
func Key(cfg *config.Config) string {
	if cfg.ID != "" && !cfg.Store.IsZero() {
		if cfg.Overlay != "" {
			return "id " + cfg.ID + " with " + filepath.Base(cfg.Overlay)
		}
		return "id " + cfg.ID
	}
	if cfg.Overlay != "" {
		return confirmed.Resolve(cfg.Overlay)
	}
	return confirmed.Resolve(cfg.File)
}

// Digest returns the digest of the exact text of a configuration, with its overlay and
// what it includes.
func Digest(cfg *config.Config) string {
	digest := cfg.Digest.String()
	if cfg.Overlay != "" {
		digest += "+" + cfg.OverlayDigest().String()
	}
	if included := cfg.Texts().Included; included != "" {
		digest += "+" + config.Digest(sha256.Sum256([]byte(included))).String()
	}
	return digest
}

// An UnreadableError means that the record of what was confirmed of a configuration
// cannot be read.
type UnreadableError struct {
	Config *config.Config
	Err    error
}

func (e *UnreadableError) Error() string { return e.Err.Error() }
func (e *UnreadableError) Unwrap() error { return e.Err }

// A NoFolderError says that the environment names no folder for what was confirmed.
type NoFolderError struct{ Err error }

func (e *NoFolderError) Error() string {
	return fmt.Sprintf("there is no folder for what was confirmed of the configuration: %v", e.Err)
}
func (e *NoFolderError) Unwrap() error { return e.Err }

// Judge compares a configuration with what was confirmed of its file, with what
// was applied since and, in a running bridge, with what is in force. Nil means
// that it may be applied. The error is an [UnreadableError] or a [NoFolderError].
//
// A file is also compared with those that its name led to before. With an
// overlay, the file alone is compared as well, since other environments use it
// too. The first start with an overlay, or without one, is compared with the file
// as the other environments have it.
func (h *History) Judge(cfg, running *config.Config) (*Change, error) {
	records, err := h.records(cfg)
	if err != nil {
		return nil, err
	}
	all, its, err := h.elsewhere(cfg, records)
	if err != nil {
		return nil, err
	}
	if all != nil {
		return h.judgeElsewhere(cfg, running, records, all, its), nil
	}
	return h.compareAll(cfg, running, records, nil), nil
}

// compareAll compares a configuration with what records have of it, with more texts, and
// with what runs. Nil means that it may be applied.
func (h *History) compareAll(cfg, running *config.Config, records []confirmed.Record, more []config.Texts) *Change {
	change := &Change{Config: cfg, Old: running}
	if len(records) == 1 && len(more) == 0 {
		own := standings(records[0], cfg)
		if len(own) == 1 && own[0].Taken == nil && own[0].Confirmed == confirmed.Texts(cfg.Texts()) {
			return nil // confirmed as it is
		}
	}
	past, goesOn := comparedWith(records, cfg)
	for _, texts := range more {
		if !slices.Contains(past, texts) {
			past = append(past, texts)
		}
	}
	if running != nil && !slices.Contains(past, running.Texts()) {
		if anew := cfg.SignedAnew(running.Texts()); anew == running.Texts() {
			change.compare(running, cfg)
		} else {
			h.compareWith(change, anew)
		}
	}
	for i, texts := range past {
		texts = cfg.SignedAnew(texts)
		old := h.compareWith(change, texts)
		if i == 0 && goesOn {
			change.texts = &texts
		}
		if i == 0 && change.Old == nil {
			change.Old = old
		}
	}
	if len(change.Why) == 0 {
		return nil
	}
	return change
}

// comparedWith returns the texts that a configuration is compared with, those
// that were in force last first, and whether these can stay in force in its place:
// they cannot if the file was never started with its overlay.
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

// standings returns what a record has of a configuration's environment, the newest
// first. This includes what the overlay's name led to before.
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

// newestFirst returns the environments of a record, the last confirmed first.
func newestFirst(record confirmed.Record) []confirmed.Standing {
	var all []confirmed.Standing
	for _, key := range slices.Sorted(maps.Keys(record.Environments)) {
		all = append(all, record.Environments[key])
	}
	slices.SortStableFunc(all, func(x, y confirmed.Standing) int { return y.At.Compare(x.At) })
	return all
}

// compareWith compares c with texts and, if it has an overlay, also both files
// without their overlays. It returns the configuration that the texts are; nil if
// they cannot be read.
func (h *History) compareWith(c *Change, texts config.Texts) *config.Config {
	policy := h.Policy(c.Config.File)
	old, err := texts.Recall(h.Env, policy)
	if err != nil {
		c.say("what was confirmed of it cannot be read any more: " + firstLine(err))
		return nil
	}
	c.compare(old, c.Config)
	if c.Config.Overlay == "" {
		return old
	}
	file, err := c.Config.Texts().WithoutOverlay().Recall(h.Env, policy)
	alone := old
	if err == nil {
		alone, err = texts.WithoutOverlay().Recall(h.Env, policy)
	}
	if err != nil {
		c.say("the file without its overlay cannot be compared: " + firstLine(err))
		return old
	}
	c.compare(alone, file)
	return old
}

// Looser says how cfg may be looser than old, whoever has to confirm it.
func Looser(old, cfg *config.Config) []string {
	return append(profiles.Looser(old.Profiles, cfg.Profiles), looserBeside(old, cfg)...)
}

// firstLine returns the first line of an error.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// compare notes how cfg may be looser than old. If old has no approvers, nobody
// could confirm a change, so none waits.
func (c *Change) compare(old, cfg *config.Config) {
	if len(old.Approvals.Approvers) == 0 {
		return
	}
	policy, other := profiles.Looser(old.Profiles, cfg.Profiles), looserBeside(old, cfg)
	if len(policy)+len(other) == 0 {
		return
	}
	for _, why := range policy {
		if !slices.Contains(c.Why, why) {
			c.Why = append(c.Why, why)
		}
	}
	c.say(other...)
	c.NeedsReason = c.NeedsReason || grave(old, cfg)
	if c.Diff == nil {
		c.Diff = profileDiff(old.Profiles, cfg.Profiles)
	}
}

// say adds reasons that are not about profiles.
func (c *Change) say(other ...string) {
	for _, why := range other {
		if !slices.Contains(c.Other, why) {
			c.Why, c.Other = append(c.Why, why), append(c.Other, why)
		}
	}
}

// overlayKey is the key of a configuration's environment in a record.
func overlayKey(cfg *config.Config) string {
	if cfg.Overlay == "" {
		return ""
	}
	return confirmed.Resolve(cfg.Overlay)
}

// store returns the store of records. Where that is depends on nothing in a
// configuration.
func (h *History) store() (*confirmed.Store, error) {
	places, err := config.Paths(h.Env)
	if err != nil {
		return nil, &NoFolderError{err}
	}
	return confirmed.Open(filepath.Join(places.StateDir, "confirmed")), nil
}

// records returns the records of a configuration's file, and of those that its
// name led to before. Without a state folder there are none, which is an error if
// the configuration has approvers.
func (h *History) records(cfg *config.Config) ([]confirmed.Record, error) {
	store, err := h.store()
	if err != nil {
		if len(cfg.Approvals.Approvers) == 0 {
			err = nil
		}
		return nil, err
	}
	records, err := store.Records(cfg.File)
	if err != nil {
		return nil, &UnreadableError{cfg, err}
	}
	return records, nil
}

// CanGoOn reports whether a start can use what was confirmed last instead of c: it
// cannot if the file was never started with its overlay.
func (c *Change) CanGoOn() bool { return c.texts != nil }

// GoOn reads what was confirmed last, for a start that uses it instead of c.
func (h *History) GoOn(c *Change) (*config.Config, error) {
	return c.texts.Parse(h.Env, h.Policy(c.Config.File))
}
