package telemetry

import (
	"slices"
	"sync"

	"codemode-bridge/bridge/builtin"
	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles/known"
)

// Passing says which servers of a configuration learn the trace of a call: those that say
// so, and those that say nothing and of which no tool is labelled untrusted.
type Passing struct {
	// Config returns the configuration in force.
	Config func() *config.Config

	mu     sync.Mutex
	of     *config.Config
	passes map[string]bool
}

// To reports whether a server learns it.
func (p *Passing) To(server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cfg := p.Config(); cfg != p.of {
		p.of, p.passes = cfg, map[string]bool{}
		for name, s := range cfg.Servers {
			p.passes[name] = passes(s)
		}
	}
	return p.passes[server]
}

func passes(s *config.Server) bool {
	if s.Trace != nil {
		return *s.Trace
	}
	if slices.Contains(s.Labels, string(known.Untrusted)) {
		return false
	}
	for _, labels := range s.Tools.Labels {
		if slices.Contains(labels, string(known.Untrusted)) {
			return false
		}
	}
	is := s.Recognize().Server
	if s.Type == config.KindBuiltin {
		is, _ = builtin.Known(s.Builtin)
	}
	for name, tool := range is.Tools {
		if _, said := s.LabelsOf(name); !said && slices.Contains(tool.Labels, known.Untrusted) {
			return false
		}
	}
	return true
}
