package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/admin"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/profiles"
)

// policyOf gives the page a bridge's profiles, and edits the section of the
// configuration file in which they are written.
type policyOf struct {
	parts   *parts
	console *console

	saving, trying sync.Mutex
}

const evaluation = "/evaluation"

func (o *policyOf) Profiles() []admin.Profile {
	var all []admin.Profile
	set := o.parts.config().Profiles
	for _, name := range set.Names() {
		p, _ := set.Profile(name)
		rules, err := json.Marshal(p.Effective())
		if err != nil {
			rules = nil // cannot happen: the profile was read from JSON
		}
		tool := "codemode_eval_" + name
		if set.Alone() {
			tool = "eval"
		}
		all = append(all, admin.Profile{Name: name, Tool: tool, Default: set.Default() == p, Rules: rules})
	}
	return all
}

func (o *policyOf) Source(context.Context) (text, revision string, err error) {
	whole, err := os.ReadFile(o.parts.config().File)
	if err != nil {
		return "", "", fmt.Errorf("reading the configuration: %w", err)
	}
	section, err := jsonc.Section(whole, evaluation)
	if err != nil {
		return "", "", err
	}
	if section == nil {
		section = []byte("{}")
	}
	return string(section), textRevision(whole), nil
}

// Propose returns what the file would be with a rule added to a profile.
func (o *policyOf) Propose(_ context.Context, profile string, rule profiles.RuleSpec) (admin.Proposal, error) {
	file := o.parts.config().File
	whole, err := os.ReadFile(file)
	if err != nil {
		return admin.Proposal{}, fmt.Errorf("reading the configuration: %w", err)
	}
	next, err := withRule(o.console, file, whole, profile, rule)
	if err != nil {
		return admin.Proposal{}, err
	}
	section, err := jsonc.Section(next, evaluation)
	if err != nil {
		return admin.Proposal{}, err
	}
	return admin.Proposal{Profile: profile, Diff: setup.Diff(o.console.HomeShort(file), whole, next, setup.Secrets(whole)), Revision: textRevision(whole), Text: string(section)}, nil
}

// withRule returns the text of a configuration with a rule added to a profile, if that
// is a valid one.
func withRule(con *console, file string, whole []byte, profile string, rule profiles.RuleSpec) ([]byte, error) {
	next, err := setup.AddRule(whole, profile, rule)
	if err != nil {
		return nil, err
	}
	if _, err := con.parseFile(file, next); err != nil {
		return nil, fmt.Errorf("with the rule, the configuration would have mistakes: %w", err)
	}
	return next, nil
}

func textRevision(whole []byte) string { return config.Digest(sha256.Sum256(whole)).String() }

// Save writes the section into the file, and the bridge takes it over like any other
// change of the file. An edit that loosens does not wait: whoever saves may edit
// profiles, and that is the right that it takes to confirm one.
func (o *policyOf) Save(ctx context.Context, text, revision, by string) error {
	o.saving.Lock()
	defer o.saving.Unlock()
	edit := func(whole []byte) ([]byte, error) {
		if textRevision(whole) != revision {
			return nil, setup.ErrChanged
		}
		return withSection(whole, text)
	}
	err := rewrite(o.console, o.parts.config().File, edit, func(cfg *config.Config) error { return o.confirm(ctx, cfg, by) })
	if errors.Is(err, setup.ErrChanged) {
		return admin.ErrChanged
	}
	return err
}

// How far back Try looks.
const (
	triedDays = 7
	triedRows = 100_000
)

// Try decides this configuration's calls of the last days anew by a text, with the tools of today.
func (o *policyOf) Try(ctx context.Context, text string) (found admin.WhatIf, err error) {
	if !o.trying.TryLock() { // it takes seconds of a processor
		return found, errors.New("somebody else is trying profiles: try again in a moment")
	}
	defer o.trying.Unlock()
	file := o.parts.config().File
	whole, err := os.ReadFile(file)
	if err != nil {
		return found, fmt.Errorf("reading the configuration: %w", err)
	}
	next, err := withSection(whole, text)
	if err != nil {
		return found, err
	}
	cfg, err := o.console.parseFile(file, next)
	if err != nil {
		return found, err
	}
	store := o.parts.recorder.Store()
	if store == nil {
		return found, errors.New("there is no audit log, so that no calls are known")
	}
	now := time.Now()
	q := ledger.Query{Since: now.AddDate(0, 0, -triedDays)}
	for row, err := range store.Rows(ctx, ledger.Query{Newest: true, Limit: 1}) {
		if err != nil {
			return found, err
		}
		q.After = max(0, row.Seq-triedRows)
	}
	for row, err := range store.Rows(ctx, ledger.Query{Since: q.Since, Limit: 1}) {
		found.Partial = err == nil && row.Seq <= q.After
	}
	replayed, err := audit.ReplayLog(audit.Of(store.Rows(ctx, q), audit.Own(o.parts.desk.conf.ID)), audit.ReplayOptions{Policy: cfg.Profiles, Since: q.Since, Until: now,
		Facts: factsOf(o.parts.gate.View(), o.parts.roots(o.console).Workspace(ctx, nil, false))})
	if err != nil {
		return found, err
	}
	return whatIf(replayed, found.Partial)
}

// whatIf is a replay as the page shows it.
func whatIf(r *audit.Replay, partial bool) (admin.WhatIf, error) {
	var text strings.Builder
	table := func(rows [][]string) error {
		text.WriteString(lines.Table(rows, 0))
		return nil
	}
	if err := r.Write(&text, table); err != nil {
		return admin.WhatIf{}, err
	}
	w := admin.WhatIf{Days: triedDays, Partial: partial, Calls: r.Calls, Same: r.Same, Before: r.Questions.BeforeDaily, After: r.Questions.AfterDaily, Text: text.String()}
	for _, c := range r.Changes {
		if c.Looser() {
			w.Looser += c.Count
		} else {
			w.Stricter += c.Count
		}
	}
	for _, u := range r.Undecided {
		w.Unknown += u.Count
	}
	return w, nil
}

// withSection returns the text of a configuration with another text of the section.
func withSection(whole []byte, text string) ([]byte, error) {
	section, err := jsonc.Section(whole, evaluation)
	switch {
	case err != nil:
		return nil, err
	case section == nil:
		return jsonc.Insert(whole, evaluation, jsonc.Text(text))
	}
	return jsonc.Replace(whole, evaluation, jsonc.Text(text))
}

// confirm confirms what is about to be written, so that no bridge holds it as pending.
func (o *policyOf) confirm(ctx context.Context, cfg *config.Config, by string) error {
	old := o.parts.config()
	change, err := judge(o.console, cfg, old)
	if change == nil || err != nil {
		return err
	}
	// The page shows only profiles: saving them confirms nothing else.
	if len(change.Other) > 0 {
		return fmt.Errorf("the file holds other changes that wait to be confirmed (%s): confirm or take back those first", strings.Join(change.Other, "; "))
	}
	said := approval.Confirmation{By: by, Channel: "page", Text: "edited it on the page", At: time.Now()}
	return pending.Confirm(ctx, o.parts.desk.store, change.Row(old, o.parts.desk.id), said)
}
