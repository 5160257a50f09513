package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/gate"
	"codemode-bridge/sandbox"
)

// savedReply answers codemode.run: with the text of the saved script, which
// the worker runs in a realm of its own, or only checks.
func savedReply(name, source string, check bool) (sandbox.Reply, error) {
	value, err := json.Marshal(struct {
		Name   string `json:"name"`
		Source string `json:"source"`
		Check  bool   `json:"check,omitempty"`
	}{name, source, check})
	if err != nil {
		return sandbox.Reply{}, fmt.Errorf("sending saved script %s: %w", name, err)
	}
	return sandbox.Reply{Value: value}, nil
}

// observe tells of an answer whose type is not declared.
func (s *Server) observe(name string, answer gate.Answer) {
	if s.o.Observed == nil || answer.IsError {
		return
	}
	if tool, ok := s.o.Gate.View().Catalog.Lookup(name); ok && tool.Server != "" && len(tool.Output) == 0 {
		s.o.Observed(tool, answer)
	}
}

// CheckScript reports what keeps a script from being run at all, such as a
// syntax error, and where; a nil error means that nothing does. Nothing of the
// script is run. The error is a *sandbox.ScriptError if it is the script's.
func CheckScript(ctx context.Context, pool *sandbox.Pool, source string) error {
	session := pool.Session()
	defer session.Close()
	_, err := session.Run(ctx, sandbox.Script{Source: `await codemode.run("script")`}, checking(source))
	var script *sandbox.ScriptError
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

func (c checking) Call(_ context.Context, call sandbox.Call, settle func(sandbox.Reply)) {
	reply, err := savedReply(call.Name, string(c), true)
	if err != nil {
		reply = sandbox.Reply{Err: &sandbox.ReplyError{Name: "Error", Message: err.Error()}}
	}
	settle(reply)
}
