package upstream

import (
	"context"
	"encoding/json"
	"errors"
)

var errUnknownServer = errors.New("no server of this name is configured")

type server struct {
	spec         Spec
	ready, ended chan struct{}
}

func newServer(spec Spec, o Options) *server { return &server{spec: spec} }
func (s *server) run()                       {}
func (s *server) stop()                      {}
func (s *server) wakeUp(bool)                {}
func (s *server) listed() ([]Tool, bool)     { return nil, false }
func (s *server) status() Status             { return Status{} }
func (s *server) call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	return nil, nil
}
