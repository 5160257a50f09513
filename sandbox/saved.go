package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"codemode-bridge/analysis"
)

// SavedReply answers codemode.run (OpRun): with the text of the saved script, which
// the worker runs in a realm of its own.
func SavedReply(name, source string) (Reply, error) { return savedReply(name, source, false) }

// savedReply is SavedReply; with check, the worker only checks the script.
func savedReply(name, source string, check bool) (Reply, error) {
	value, err := json.Marshal(struct {
		Name   string `json:"name"`
		Source string `json:"source"`
		Check  bool   `json:"check,omitempty"`
	}{name, source, check})
	if err != nil {
		return Reply{}, fmt.Errorf("sending saved script %s: %w", name, err)
	}
	return Reply{Value: value}, nil
}

// Check reports what keeps a script from being run at all, such as a
// syntax error, and where; a nil error means that nothing does. Nothing of the
// script is run. The error is a *ScriptError if it is the script's.
func (p *Pool) Check(ctx context.Context, source string) error {
	session := p.Session()
	defer session.Close()
	_, err := session.Run(ctx, Script{Source: `await codemode.run("script")`}, checking(source))
	var script *ScriptError
	if errors.As(err, &script) {
		wrong := *script
		wrong.Position = analysis.Position{}
		if len(script.Fields) == 0 { // nothing is known of the place
			return &wrong
		}
		if err := json.Unmarshal(script.Fields, &wrong.Position); err != nil {
			return fmt.Errorf("reading where the script is wrong: %w", err)
		}
		return &wrong
	}
	return err
}

// checking is the host of a run that asks whether a script can be run.
type checking string

func (c checking) Preview(analysis.Report) {}
func (c checking) Idle(int)                {}

func (c checking) Call(_ context.Context, call Call, settle func(Reply)) {
	reply, err := savedReply(call.Name, string(c), true)
	if err != nil {
		reply = Reply{Err: &ReplyError{Name: "Error", Message: err.Error()}}
	}
	settle(reply)
}
