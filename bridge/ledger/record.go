// Package ledger defines what is stored about runs, and the contracts of the
// stores that keep it.
//
// The audit log is a chain of records. There is a [Record] for every call before
// it is sent (its intent) and after it ended (its outcome), for every refusal,
// and for every run. [Store] keeps them, and [Checker] tells whether stored rows
// are what was written. A [Journal] keeps what a run needs to go on after it was
// suspended.
//
// A record is written before the effect that it announces, and without the
// record there is no effect: the gate refuses a call whose intent could not be
// recorded.
//
// Records hold only what a person may see. Arguments are in their display form
// (redacted, cut, escaped), never the bytes that are sent.
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
)

// An Event is the kind of a Record.
type Event string

const (
	RunStarted Event = "run_started"
	RunEnded   Event = "run_ended"
	RunPaused  Event = "run_paused"  // it was suspended, waiting for people
	RunResumed Event = "run_resumed" // it goes on from its journal
	Preview    Event = "preview"     // what the script seems to call, read before it ran
	Intent     Event = "intent"      // a call is about to be sent
	Outcome    Event = "outcome"     // a call that was sent has ended
	Refusal    Event = "refusal"     // a call was not sent
	Asked      Event = "request"     // a person is asked about a call
	Answered   Event = "answer"      // a person has answered; recorded before it counts
	Verdict    Event = "verdict"     // the answer that a call acts on, or what stands in for one

	// ServerAsked: in the middle of a call, an upstream server asked something of
	// the person at the client or of the client's model. It approves nothing.
	ServerAsked Event = "server_question"

	SavedScript Event = "saved_script" // the run's script runs a saved one, whose calls are the run's

	Granted             Event = "grant"         // a verdict is remembered
	Revoked             Event = "grant_revoked" // and is no longer remembered
	Lapsed              Event = "lapsed"        // people allowed a call beforehand, which the run had not made when it ended or was suspended
	ConfigChanged       Event = "config"        // another policy or set of servers applies, or was refused
	BridgeStarted       Event = "bridge_started"
	BridgeEnded         Event = "bridge_ended"
	SignedIn            Event = "sign_in"              // an approver signed in, or somebody was refused
	AccountConnected    Event = "account_connected"    // a person has connected their own account at a server
	AccountDisconnected Event = "account_disconnected" // and it was deleted
	StopAsked           Event = "stop"                 // an approver ends a run
	Laptop              Event = "laptop"               // a laptop was invited, enrolled or revoked, has left, or sent rows; or this machine was enrolled

	ToolChanged  Event = "tool_changed"  // a server lists a new or changed tool
	ToolAccepted Event = "tool_accepted" // a person has accepted a tool's definition
	ToolBlocked  Event = "tool_blocked"  // a person keeps the tool from scripts

	// Only a Store writes these, about itself.
	Pruned   Event = "pruned"   // the oldest rows were removed on purpose
	Repaired Event = "repaired" // a damaged log was set aside and this one begun
)

// Results of a run or call, as written in Record.Outcome.
const (
	Done          = "done"    // it was answered
	Failed        = "failed"  // it was answered with an error
	Refused       = "refused" // it was not sent
	Unknown       = "unknown" // it was sent, and no answer came
	Stopped       = "stopped" // the run was cancelled or met a limit
	ConfigPending = "held"    // a configuration waits for an approver
	Vote          = "vote"    // a verdict counts as one of several needed
)

// A Record is one line of the audit log. Fields that do not apply to an event are
// zero and left out. What is written is the JSON of this struct, with its members
// in this order.
type Record struct {
	Event   Event     `json:"event"`
	Time    time.Time `json:"time"`
	Run     string    `json:"run,omitempty"`
	Session string    `json:"session,omitempty"`
	Client  string    `json:"client,omitempty"` // the client's own name for itself
	Profile string    `json:"profile,omitempty"`
	// Configuration is the id of the configuration that the run began with, and
	// Principal whose run it is: the name of its client's token.
	Configuration string `json:"configuration,omitempty"`
	Principal     string `json:"principal,omitempty"`
	// TraceID is the client's own trace (W3C Trace Context), 32 hexadecimal digits.
	TraceID string `json:"trace_id,omitempty"`

	Call   int    `json:"call,omitempty"`  // the call's number in its run, from 1
	Trace  string `json:"trace,omitempty"` // one for request, decision and execution of a call
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"` // the raw name at its server
	// Identity is a keyed digest of what the server is: its command, address,
	// arguments and environment. It shows when a name has come to mean another
	// server.
	Identity    string          `json:"server_identity,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`   // in display form
	Digest      string          `json:"digest,omitempty"` // of the exact arguments
	Disposition string          `json:"disposition,omitempty"`
	// Would is what would have come of the call if what policy only observes were
	// enforced, as the action of a rule; empty if the same would. Reasons say why.
	Would    string   `json:"would,omitempty"`
	Risk     string   `json:"risk,omitempty"`
	Reasons  []string `json:"reasons,omitempty"`
	Revision string   `json:"revision,omitempty"` // of the compiled policy
	// Repeatable reports that the call may be made again without harm, according to
	// a rule or a trusted server. It has nothing to do with the call's risk.
	Repeatable bool `json:"repeatable,omitempty"`
	// Sources are the arguments' bytes that the run has read before, as far as Looked says that anybody looked.
	Sources []SourceMatch `json:"finds,omitempty"`
	Looked  string        `json:"looked,omitempty"`
	// Written, if anybody looked, says that the script has the arguments as one literal from before it read anything
	// private: see profiles.FlowFacts.
	Written *bool `json:"written,omitempty"`
	// Brief, of a run that started, says that its session lasts no longer than the client's request.
	Brief  bool `json:"brief,omitempty"`
	Notify bool `json:"notify,omitempty"` // policy wants the call announced
	Line   int  `json:"line,omitempty"`   // of the call in the script, from 1
	Column int  `json:"column,omitempty"`

	Request  string `json:"request,omitempty"`  // the id of the question
	Approver string `json:"approver,omitempty"` // who decided
	// OnBehalfOf is in whose name the approver decided, if not in their own.
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
	// Comment is what the person wrote. Before this field existed it was in Error.
	Comment string `json:"comment,omitempty"`
	// Counted, of an answer or verdict, is false if it settled nothing and does not
	// count as a vote; nil if not known.
	Counted *bool `json:"counted,omitempty"`
	// EditedArgs, of an answer or verdict, are the arguments that the person wrote
	// in place of Args, in display form; EditedDigest is that of the exact ones.
	EditedArgs   json.RawMessage `json:"edited_args,omitempty"`
	EditedDigest string          `json:"edited_digest,omitempty"`
	// EditedBy is who wrote Args, if it was not the script.
	EditedBy string `json:"edited_by,omitempty"`
	Channel  string `json:"channel,omitempty"` // how: elicitation, fallback, grant, timeout, limit
	Answer   string `json:"answer,omitempty"`  // yes and how far, or no and why
	// Grant, of an intent or verdict, is the id of the grant that allowed the call. If
	// GrantUses is above zero, the record counts as a use of it: the store counts in one
	// transaction with the record, and refuses, with ErrUsedUp, the record after that
	// many.
	Grant     string `json:"grant,omitempty"`
	GrantUses int    `json:"-"`

	Outcome  string        `json:"outcome,omitempty"`
	Error    string        `json:"error,omitempty"`
	Wait     time.Duration `json:"wait_ns,omitempty"` // for a person
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Box, of an intent, names the steps of its server's box that held; empty if it had
	// none. Older releases had no boxes.
	Box      string `json:"box,omitempty"`
	Sent     int    `json:"bytes_sent,omitempty"`
	Received int    `json:"bytes_received,omitempty"`

	Name       string          `json:"name,omitempty"`        // of a saved script
	Script     string          `json:"script,omitempty"`      // its source, redacted like arguments
	ScriptHash string          `json:"script_hash,omitempty"` // of the exact source
	Input      json.RawMessage `json:"input,omitempty"`       // of the script, in display form
	Preview    json.RawMessage `json:"preview,omitempty"`     // what the script seems to call
	Detail     json.RawMessage `json:"detail,omitempty"`      // what an event without fields of its own says: config, grant, pruned, repaired

	// Durable asks that the record survive a power cut. Without it, the record
	// survives the end of this process, however it ends.
	Durable bool `json:"-"`

	// Journal are journal entries of the run that are stored in one transaction with
	// the record, if the store is a Journal too; other stores drop them.
	Journal []JournalEntry `json:"-"`
}

// How far somebody looked for what the run had read, as written in Record.Looked. It is empty if nobody did.
const (
	LookedRuns = "runs" // for characters in common, as a question shows them
	LookedAll  = "all"  // for all that rules about flows by content count: encoded, in parts, and short values that identify, too
)

// A SourceMatch is a piece of a call's arguments that the run has read before, in
// the answer of one call. It never holds the text itself.
type SourceMatch struct {
	// Kind is empty for characters in common, or value, more, name or lost: a kind of provenance.Piece.
	Kind     string   `json:"kind,omitempty"`
	Call     int      `json:"call"`             // that read it; 0 if any may have
	Argument string   `json:"argument"`         // dotted path, in display form
	Offset   int      `json:"offset"`           // in the argument, in bytes
	Length   int      `json:"length"`           // in bytes
	Labels   []string `json:"labels,omitempty"` // of what was read
	// Unlabelled reports that nobody had said which labels that has.
	Unlabelled bool `json:"unlabelled,omitempty"`
}

// Lost is the Kind of what was read but is not remembered, so that nobody knows whether the call has something of it.
const Lost = "lost"

// Path returns the tool as policy writes it: server__tool, or whichever of the two
// names is set.
func (r Record) Path() string {
	if r.Server == "" || r.Tool == "" {
		return r.Server + r.Tool
	}
	return r.Server + "__" + r.Tool
}

// A Recorder stores records. Record returns once they are as durable as one of them
// asks to be; an error means that the effect they announce must not happen. It may
// be called concurrently.
type Recorder interface {
	Record(context.Context, ...Record) error
}

// Log is a Recorder that writes each record to a structured log, with the
// fields of Record under their JSON names. It is as durable as the log.
type Log struct{ Handler slog.Handler }

// Record writes records at level info, or warn for a refused, failed or unknown call,
// with their texts cut as Encode cuts them. It writes what comes before an error.
func (l Log) Record(ctx context.Context, all ...Record) error {
	for _, r := range all {
		if err := l.write(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (l Log) write(ctx context.Context, r Record) error {
	r = r.bounded()
	level := slog.LevelInfo
	if r.Event == Refusal || r.Outcome == Failed || r.Outcome == Unknown {
		level = slog.LevelWarn
	}
	line := slog.NewRecord(r.Time, level, string(r.Event), 0)
	line.AddAttrs(r.attrs()...)
	if err := l.Handler.Handle(ctx, line); err != nil { // a Logger would drop it
		return fmt.Errorf("writing a record: %w", err)
	}
	return nil
}

// attrs lists the fields of r that are set.
func (r Record) attrs() []slog.Attr {
	var as []slog.Attr
	text := func(key, value string) {
		if value != "" {
			as = append(as, slog.String(key, value))
		}
	}
	number := func(key string, value int) {
		if value != 0 {
			as = append(as, slog.Int(key, value))
		}
	}
	text("run", r.Run)
	text("session", r.Session)
	text("client", r.Client)
	text("profile", r.Profile)
	text("configuration", r.Configuration)
	text("principal", r.Principal)
	text("trace_id", r.TraceID)
	number("call", r.Call)
	text("trace", r.Trace)
	text("server", r.Server)
	text("tool", r.Tool)
	text("server_identity", r.Identity)
	text("args", string(r.Args))
	text("digest", r.Digest)
	text("disposition", r.Disposition)
	text("would", r.Would)
	text("risk", r.Risk)
	if len(r.Reasons) > 0 {
		as = append(as, slog.Any("reasons", r.Reasons))
	}
	text("revision", r.Revision)
	if r.Repeatable {
		as = append(as, slog.Bool("repeatable", true))
	}
	if len(r.Sources) > 0 {
		as = append(as, slog.Any("finds", r.Sources))
	}
	text("looked", r.Looked)
	if r.Written != nil {
		as = append(as, slog.Bool("written", *r.Written))
	}
	if r.Brief {
		as = append(as, slog.Bool("brief", true))
	}
	if r.Notify {
		as = append(as, slog.Bool("notify", true))
	}
	number("line", r.Line)
	number("column", r.Column)
	text("request", r.Request)
	text("approver", r.Approver)
	text("on_behalf_of", r.OnBehalfOf)
	text("comment", r.Comment)
	if r.Counted != nil {
		as = append(as, slog.Bool("counted", *r.Counted))
	}
	text("edited_args", string(r.EditedArgs))
	text("edited_digest", r.EditedDigest)
	text("edited_by", r.EditedBy)
	text("channel", r.Channel)
	text("answer", r.Answer)
	text("grant", r.Grant)
	text("outcome", r.Outcome)
	text("error", r.Error)
	if r.Wait != 0 {
		as = append(as, slog.Duration("wait", r.Wait))
	}
	if r.Duration != 0 {
		as = append(as, slog.Duration("duration", r.Duration))
	}
	text("box", r.Box)
	number("bytes_sent", r.Sent)
	number("bytes_received", r.Received)
	text("name", r.Name)
	text("script", r.Script)
	text("script_hash", r.ScriptHash)
	text("input", string(r.Input))
	text("preview", string(r.Preview))
	text("detail", string(r.Detail))
	return as
}

// MaxRecord bounds the JSON text of a record, in bytes.
const MaxRecord = 4 << 20

// Encode returns the JSON text of a record as stores keep it: with its time in
// UTC, or now if it has none, and with texts of at most MaxText bytes. Every store
// uses it to write records, so none is stored unbounded.
func Encode(r Record, now func() time.Time) ([]byte, error) {
	r = r.bounded()
	if r.Time.IsZero() {
		r.Time = now()
	}
	r.Time = r.Time.Round(0).UTC()
	body, err := json.Marshal(r)
	if err == nil && len(body) > MaxRecord {
		err = fmt.Errorf("it has %d bytes, at most %d are kept", len(body), MaxRecord)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding a record: %w", err)
	}
	return body, nil
}

// Decode reads the JSON text of a record.
func Decode(body []byte) (r Record, err error) {
	if err = json.Unmarshal(body, &r); err != nil {
		return Record{}, fmt.Errorf("decoding a record: %w", err)
	}
	return r, nil
}
