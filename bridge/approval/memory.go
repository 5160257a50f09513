package approval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Memory is a Store that lasts as long as the process. Its zero value is empty.
// Beyond a thousand requests it forgets the oldest settled ones.
type Memory struct {
	mu      sync.Mutex
	entries []StoredRequest // the oldest first
	grants  []Grant
	held    map[string]*PendingConfig
	changed chan struct{} // nil until somebody asks
}

const keepEntries = 1000

// Put stores a new request.
func (m *Memory) Put(_ context.Context, e StoredRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.findLocked(e.ID) >= 0 {
		return fmt.Errorf("there is a request %s already", e.ID)
	}
	m.entries = append(m.entries, e.Clone())
	if len(m.entries) > keepEntries { // drop the oldest settled one
		if i := slices.IndexFunc(m.entries, func(e StoredRequest) bool { return e.Verdict != nil }); i >= 0 {
			m.entries = slices.Delete(m.entries, i, i+1)
		}
	}
	m.changedLocked()
	return nil
}

// Update changes one request.
func (m *Memory) Update(_ context.Context, id string, change func(*StoredRequest) error) (StoredRequest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.findLocked(id)
	if i < 0 {
		return StoredRequest{}, ErrUnknown
	}
	e := m.entries[i].Clone()
	if err := change(&e); err != nil {
		return m.entries[i].Clone(), err
	}
	m.entries[i] = e.Clone()
	m.changedLocked()
	return e, nil
}

// Requests returns requests, the oldest first.
func (m *Memory) Requests(_ context.Context, f Filter) ([]StoredRequest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []StoredRequest
	for i := len(m.entries) - 1; i >= 0 && (f.Newest <= 0 || len(all) < f.Newest); i-- {
		if e := &m.entries[i]; f.Passes(e) {
			all = append(all, e.Clone())
		}
	}
	slices.Reverse(all)
	return all, nil
}

// Changed returns a channel that the next change closes.
func (m *Memory) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed
}

// AddGrant stores a new grant.
func (m *Memory) AddGrant(_ context.Context, g Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants = append(m.grants, g)
	m.changedLocked()
	return nil
}

// Grants returns all grants.
func (m *Memory) Grants(context.Context) ([]Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.grants), nil
}

// UpdateGrant changes one grant.
func (m *Memory) UpdateGrant(_ context.Context, id string, change func(*Grant) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.grants, func(g Grant) bool { return g.ID == id })
	if i < 0 {
		return ErrUnknown
	}
	g := m.grants[i]
	if err := change(&g); err != nil {
		return err
	}
	if m.grants[i] = g; g.Left <= 0 {
		m.grants = slices.Delete(m.grants, i, i+1)
	}
	m.changedLocked()
	return nil
}

// DropGrants drops grants.
func (m *Memory) DropGrants(_ context.Context, drop func(Grant) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.grants)
	if m.grants = slices.DeleteFunc(m.grants, drop); len(m.grants) < n {
		m.changedLocked()
	}
	return nil
}

// ChangePendingConfig changes the pending configuration of a file.
func (m *Memory) ChangePendingConfig(_ context.Context, file string, change func(*PendingConfig) (*PendingConfig, error)) (*PendingConfig, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.held[file]
	h, err := change(old)
	if err != nil || h == old {
		return h, err
	}
	if m.held == nil {
		m.held = map[string]*PendingConfig{}
	}
	if m.held[file] = h; h == nil {
		delete(m.held, file)
	}
	m.changedLocked()
	return h, nil
}

// Forget drops requests that have ended.
func (m *Memory) Forget(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = slices.DeleteFunc(m.entries, func(e StoredRequest) bool { return e.endsAt().Before(before) })
	return nil
}

func (m *Memory) findLocked(id string) int {
	return slices.IndexFunc(m.entries, func(e StoredRequest) bool { return e.ID == id })
}

func (m *Memory) changedLocked() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}
