package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A recorder is the way of every record to the audit log, and of what the
// program's own log says of it: that a question was put, and what was answered
// or refused, with the trace that links the three, and never an argument.
type recorder struct {
	store   ledger.Store // nil keeps nothing
	refuse  bool         // nothing is to be recorded, so nothing is to be done
	known   known
	prints  []byte // the key of fingerprints; nil where there is none
	states  []byte // the key of request states; nil where there is none
	servers []byte // the key of servers' identities; nil where there is none
	log     *slog.Logger

	mu   sync.Mutex
	owed []ledger.Record // what had happened before it could be written
}

var errNoCalls = errors.New("this command calls no tool")

// Record keeps rec. While something is owed that cannot be written either,
// nothing is recorded, and so nothing is done.
func (r *recorder) Record(ctx context.Context, rec ledger.Record) error {
	if r.refuse {
		return errNoCalls
	}
	r.known.scrub(&rec)
	if r.store != nil {
		if err := r.settle(ctx); err != nil {
			return err
		}
		if err := r.store.Record(ctx, rec); err != nil {
			return err
		}
	}
	r.say(ctx, rec)
	return nil
}

// owe keeps rec as soon as that is possible, for what has happened and cannot
// be refused, such as an edit of the configuration.
func (r *recorder) owe(ctx context.Context, rec ledger.Record) {
	if r.store == nil {
		return
	}
	r.known.scrub(&rec)
	if rec.Time.IsZero() {
		rec.Time = time.Now()
	}
	r.mu.Lock()
	r.owed = append(r.owed, rec)
	r.mu.Unlock()
	if err := r.settle(ctx); err != nil {
		r.log.Error("calls are refused until the audit log can be written", "event", rec.Event, "err", err)
	}
}

// settle writes what is owed.
func (r *recorder) settle(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.owed) > 0 {
		if err := r.store.Record(ctx, r.owed[0]); err != nil {
			return err
		}
		r.owed = r.owed[1:]
	}
	return nil
}

// unavailable says why records cannot be written; "" if they can.
func (r *recorder) unavailable() string {
	if r.store == nil {
		return ""
	}
	if err := r.store.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// say writes the event of a question, an answer or a refusal to the log.
func (r *recorder) say(ctx context.Context, rec ledger.Record) {
	level, message := slog.LevelInfo, ""
	switch {
	case rec.Event == ledger.Asked:
		message = "requested"
	case rec.Event == ledger.Verdict && rec.Outcome == ledger.Refused:
		level, message = slog.LevelWarn, "verdict refused" // it came too late, or from who may not give it
	case rec.Event == ledger.Verdict && rec.Channel == "fallback" && strings.HasPrefix(rec.Answer, "yes"):
		level, message = slog.LevelWarn, "allowed by fallback" // and by nobody
	case rec.Event == ledger.Verdict && strings.HasPrefix(rec.Answer, "yes"):
		message = "approved"
	case rec.Event == ledger.Verdict, rec.Event == ledger.Refusal && rec.Disposition == profiles.Deny.String():
		level, message = slog.LevelWarn, "denied"
	default:
		return
	}
	line := []any{"trace", rec.Trace, "run", rec.Run, "call", rec.Call, "tool", rec.Path(), "risk", rec.Risk}
	for _, more := range []struct{ key, value string }{
		{"profile", rec.Profile}, {"request", rec.Request}, {"answer", rec.Answer}, {"approver", rec.Approver}, {"channel", rec.Channel},
	} {
		if more.value != "" {
			line = append(line, more.key, more.value)
		}
	}
	if rec.Wait > 0 {
		line = append(line, "wait", rec.Wait)
	}
	r.log.Log(ctx, level, message, line...)
}

// configDetail is what a record of the configuration says besides its reasons.
type configDetail struct {
	File string `json:"file"`
	Old  string `json:"old_policy,omitempty"`
	New  string `json:"new_policy,omitempty"`
	// Digest is of the file's bytes.
	Digest string `json:"sha256,omitempty"`
	// Said is what the approver wrote who confirmed it.
	Said string `json:"said,omitempty"`
}

// configTaken records that cfg holds from now on, in the place of old, and
// what the approver said who confirmed it.
func configTaken(old, cfg *config.Config, said string) ledger.Record {
	return ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.Done, Durable: true,
		Revision: cfg.Profiles.Revision(), Reasons: changes(old, cfg),
		Detail: detail(configDetail{cfg.File, old.Profiles.Revision(), cfg.Profiles.Revision(), cfg.Digest.String(), canon.Visible(canon.Redact(said))}),
	}
}

// configHeld records that cfg waits for an approver: old goes on.
func configHeld(old, cfg *config.Config, why []string) ledger.Record {
	return ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.Held, Durable: true,
		Revision: old.Profiles.Revision(), Reasons: why,
		Detail: detail(configDetail{cfg.File, old.Profiles.Revision(), cfg.Profiles.Revision(), cfg.Digest.String(), ""}),
	}
}

// configFirst records that cfg, with its approvers, is the first that is kept of
// its file: later edits are compared with it.
func configFirst(cfg *config.Config) ledger.Record {
	return ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.Done, Durable: true, Revision: cfg.Profiles.Revision(),
		Reasons: []string{"the first start with this file: it is taken as it is, and edits are compared with it"},
		Detail:  detail(configDetail{File: cfg.File, New: cfg.Profiles.Revision(), Digest: cfg.Digest.String()}),
	}
}

// configRefused records an edit that was wrong: old goes on.
func configRefused(old *config.Config, why string) ledger.Record {
	return ledger.Record{
		Event: ledger.ConfigChanged, Outcome: ledger.Refused, Error: why,
		Revision: old.Profiles.Revision(), Detail: detail(configDetail{File: old.File, Old: old.Profiles.Revision()}),
	}
}

// bridgeDetail is what the record of a bridge's start says.
type bridgeDetail struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	File    string `json:"file,omitempty"`
	Digest  string `json:"sha256,omitempty"`
}

// bridgeStarted records that a bridge begins to serve.
func bridgeStarted(cfg *config.Config) ledger.Record {
	return ledger.Record{Event: ledger.BridgeStarted, Revision: cfg.Profiles.Revision(),
		Detail: detail(bridgeDetail{version, os.Getpid(), cfg.File, cfg.Digest.String()})}
}

// detail is v as JSON; our own types always have one.
func detail(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("codemode-bridge: writing the detail of a record: " + err.Error())
	}
	return text
}

// changes says which servers, profiles and sections differ. A server differs
// also where a variable held something else; what that was is not said.
func changes(old, cfg *config.Config) []string {
	var all []string
	servers := func(c *config.Config) map[string]any {
		m := map[string]any{}
		for _, spec := range specs(c) {
			spec.InProcess = nil // functions have no equals
			m[spec.Name] = []any{spec, c.Servers[spec.Name]}
		}
		return m
	}
	policies := func(c *config.Config) map[string]any {
		m := map[string]any{}
		for name, p := range c.Evaluation.Profiles {
			m[name] = p
		}
		return m
	}
	for _, things := range []struct {
		what   string
		before map[string]any
		after  map[string]any
	}{{"profile", policies(old), policies(cfg)}, {"server", servers(old), servers(cfg)}} {
		names := slices.AppendSeq(slices.Collect(maps.Keys(things.before)), maps.Keys(things.after))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			was, had := things.before[name]
			is, has := things.after[name]
			switch {
			case !had:
				all = append(all, things.what+" "+name+" added")
			case !has:
				all = append(all, things.what+" "+name+" removed")
			case !reflect.DeepEqual(was, is):
				all = append(all, things.what+" "+name+" changed")
			}
		}
	}
	was, is := old.Evaluation, cfg.Evaluation
	was.Profiles, is.Profiles = nil, nil
	for _, section := range []struct {
		name    string
		was, is any
	}{
		{"evaluation", was, is}, {"sandbox", old.Sandbox, cfg.Sandbox}, {"surface", old.Surface, cfg.Surface},
		{"http", old.HTTP, cfg.HTTP}, {"runs", old.Runs, cfg.Runs}, {"approvals", old.Approvals, cfg.Approvals}, {"audit", old.Audit, cfg.Audit}, {"log", old.Log, cfg.Log},
	} {
		if !reflect.DeepEqual(section.was, section.is) {
			all = append(all, section.name+" changed")
		}
	}
	if len(all) == 0 {
		all = []string{"nothing but the text changed"}
	}
	return all
}
