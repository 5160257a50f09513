package main

import (
	"errors"
	"fmt"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/footprint"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// Package pending compares a configuration file with what was last confirmed of it.
// This file calls it for the commands, and adds hints to its errors.

// history knows what was confirmed of this user's configuration files.
func history(con *console) *pending.History {
	return &pending.History{Env: con.Env, Policy: con.policy, Shared: con.shared.Confirmed}
}

// historyHere knows what was confirmed on this machine.
func historyHere(con *console) *pending.History {
	return &pending.History{Env: con.Env, Policy: con.policy}
}

// judge compares a configuration with what was confirmed of its file and, in a
// running bridge, with what is in force. A nil change means that it may be taken
// over.
func judge(con *console, cfg, running *config.Config) (*pending.Change, error) {
	change, err := history(con).Judge(cfg, running)
	return change, hinted(err)
}

// hinted gives the errors of package pending a hint.
func hinted(err error) error {
	switch unreadable, folder := (*pending.UnreadableError)(nil), (*pending.NoFolderError)(nil); {
	case errors.As(err, &unreadable):
		return &configError{err, "codemode-bridge config confirm --offline takes the file as it is, at a terminal, and is recorded"}
	case errors.As(err, &folder):
		return &configError{err, "set XDG_STATE_HOME, or HOME"}
	}
	return err
}

// refusal is the error of a command that cannot proceed while a configuration is
// pending; more continues its text.
func refusal(c *pending.Change, more string) error {
	return &configError{fmt.Errorf("%s waits for an approver: %s%s", c.Key(), strings.Join(c.Why, "; "), more), c.WayOn() + "; or take the edit back"}
}

// recordedAs returns what audit records say of a configuration.
func recordedAs(cfg *config.Config) recorder.Config {
	return recorder.Config{File: cfg.File, Policy: cfg.Profiles.Revision(), Digest: cfg.Digest.String()}
}

// A beginning is the configuration that a bridge starts with.
type beginning struct {
	cfg    *config.Config // in force
	file   *config.Config // what the file says; differs from cfg if it waits for an approver
	looked []string       // the environment variables that cfg refers to
	named  bool           // whoever calls has a name
}

// beginServing reads the configuration for a bridge that keeps running. If the file
// waits for an approver, the bridge starts with what was last confirmed.
func beginServing(con *console) (beginning, error) {
	footprint.AfterStart()
	cfg, looked, err := con.loadLooked()
	if err != nil {
		return beginning{}, err
	}
	change, err := judge(con, cfg, nil)
	if change == nil || err != nil {
		return beginning{cfg: cfg, file: cfg, looked: looked}, err
	}
	if !change.CanGoOn() {
		return beginning{}, refusal(change, "")
	}
	names := rememberLookups(con)
	old, err := history(con).GoOn(change)
	looked = names()
	if err != nil {
		return beginning{}, refusal(change, ", and what was confirmed last cannot go on: "+cli.FirstLine(err.Error()))
	}
	return beginning{cfg: old, file: cfg, looked: looked}, nil
}

// mayRun refuses a configuration that waits for an approver.
func mayRun(con *console, cfg *config.Config) error {
	change, err := judge(con, cfg, nil)
	if change == nil || err != nil {
		return err
	}
	return refusal(change, "")
}
