package gate

import (
	"context"
	"encoding/json"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/ledger"
)

// ServerRequest is a question that an upstream server asked during a call, and its
// outcome. It has nothing to do with approval.
type ServerRequest struct {
	Server  string
	Kind    string // elicitation or sampling
	About   string // what was asked, in the server's words
	Outcome string // answered, refused, or what the person did: accept, decline, cancel
	Why     string // why it was refused
	Wait    time.Duration
}

// RecordServerRequest records a server's question. The answer is in no record: it is
// for the server alone. If recording fails, nothing may be passed on.
func (r *Run) RecordServerRequest(ctx context.Context, a ServerRequest) error {
	question, err := json.Marshal(map[string]string{"question": r.redact(a.About)})
	if err != nil {
		return err
	}
	args, err := canon.Parse(question)
	if err != nil {
		return err
	}
	return r.record(context.WithoutCancel(ctx), ledger.Record{
		Event: ledger.ServerAsked, Server: a.Server, Tool: a.Kind, Channel: a.Kind, Outcome: a.Outcome, Wait: a.Wait, Durable: true,
		Args: canon.Display(args, canon.DisplayOptions{MaxBytes: recordBytes}).JSON, Error: canon.Escape(r.redact(a.Why)),
	})
}
