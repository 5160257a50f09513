package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// A memory keeps documents in this process.
type memory struct {
	turn chan struct{} // holds a token while a document is changed

	mu  sync.Mutex
	all map[string][]byte
	ch  chan struct{} // closed by the next change
}

// Memory returns documents that only this process has, and only as long as it runs.
func Memory() Store {
	return &memory{turn: make(chan struct{}, 1), all: make(map[string][]byte), ch: make(chan struct{})}
}

func (m *memory) Read(ctx context.Context, name string) ([]byte, error) {
	if err := errors.Join(ctx.Err(), CheckName(name)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	body, ok := m.all[name]
	if !ok {
		return nil, fmt.Errorf("document %s: %w", name, fs.ErrNotExist)
	}
	return slices.Clone(body), nil
}

func (m *memory) Names(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.all)), nil
}

func (m *memory) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	if err := errors.Join(ctx.Err(), CheckName(name)); err != nil {
		return err
	}
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.turn }()
	old, err := m.Read(context.WithoutCancel(ctx), name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	next, err := changed(name, old, change)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if next == nil {
		delete(m.all, name)
	} else {
		m.all[name] = append([]byte{}, next...)
	}
	close(m.ch)
	m.ch = make(chan struct{})
	return nil
}

func (m *memory) Watch(ctx context.Context, changed func()) {
	next := func() <-chan struct{} {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.ch
	}
	for ch := next(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ch:
			ch = next() // before it is told, so that no change in between is lost
			changed()
		}
	}
}
