package upstreams

import (
	"context"
	"slices"
	"strings"
	"sync"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/upstream"
)

// A Start starts the servers of a set for one script: those that it names first, and the
// others once these have connected or failed, so that they do not compete for the
// machine. What it does not see coming starts all at once.
type Start struct {
	Source string // of the script; to be set before Previewed is called

	set   *upstream.Set
	named chan struct{} // closed when the first were started

	mu    sync.Mutex
	specs []upstream.Spec
	began bool
	all   bool
	first []string
}

// NewStart starts none yet.
func NewStart(set *upstream.Set, specs []upstream.Spec) *Start {
	return &Start{set: set, specs: specs, named: make(chan struct{})}
}

// Previewed starts the servers that a script names, by what could be read of it. Owners are
// the servers that may have a tool of a name and have not listed their tools yet.
func (s *Start) Previewed(report analysis.Report, owners func(name string) []string) {
	if report.Unknown > 0 || report.Truncated || analysis.Enumerates(s.Source) || strings.Contains(s.Source, "resources") || strings.Contains(s.Source, "prompts") {
		s.All()
		return
	}
	var first []string
	for _, c := range report.Calls {
		of := owners(c.Name)
		if len(of) == 0 {
			s.All()
			return
		}
		first = append(first, of...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began {
		return
	}
	s.beginLocked(first)
	s.set.Apply(slices.DeleteFunc(slices.Clone(s.specs), func(spec upstream.Spec) bool { return !slices.Contains(first, spec.Name) }))
}

func (s *Start) beginLocked(first []string) {
	if !s.began {
		s.began, s.first = true, first
		close(s.named)
	}
}

// For starts all servers unless this one was started among the first.
func (s *Start) For(server string) {
	s.mu.Lock()
	started := slices.Contains(s.first, server)
	s.mu.Unlock()
	if !started {
		s.All()
	}
}

// All starts all servers that were not started yet.
func (s *Start) All() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beginLocked(nil)
	if !s.all {
		s.all = true
		s.set.Apply(s.specs)
	}
}

// Follow starts the others when the first have connected or failed; it returns then, or
// when ctx ends.
func (s *Start) Follow(ctx context.Context) {
	select {
	case <-s.named:
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	first := s.first
	s.mu.Unlock()
	if len(first) > 0 && s.set.WaitReady(ctx, first...) != nil {
		return
	}
	s.All()
}
