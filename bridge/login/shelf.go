package login

import (
	"context"
	"os"
	"sync"
)

// A shelf is where the record of one login is kept, which other processes use too.
type shelf interface {
	// current is read, or what it returned last if that has not changed.
	current(ctx context.Context) (*record, error)
	// read returns the record; nil: there is none that can be read.
	read(ctx context.Context) (*record, error)
	// holds reports whether there is something, even if it cannot be read.
	holds() bool
	// lock keeps all others from changing the record until unlock is called.
	lock(ctx context.Context) (unlock func(), err error)
	write(ctx context.Context, r record) error
	remove(ctx context.Context) error
}

// A fileShelf keeps a record in a file of its own.
type fileShelf struct {
	records *records
	path    string

	mu   sync.Mutex
	last *record     // what the file held
	file os.FileInfo // when it was read
}

func (s *fileShelf) current(ctx context.Context) (*record, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		info = nil
	}
	s.mu.Lock()
	same := s.file != nil && info != nil && os.SameFile(s.file, info) && s.file.ModTime().Equal(info.ModTime())
	r := s.last
	s.mu.Unlock()
	if same {
		return r, nil
	}
	return s.read(ctx)
}

func (s *fileShelf) read(context.Context) (*record, error) {
	// The file is looked at before it is read: if it is replaced in between, it
	// is read once more the next time.
	info, _ := os.Stat(s.path)
	r, err := s.records.read(s.path)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.file = r, info
	return r, nil
}

func (s *fileShelf) holds() bool {
	_, err := os.Stat(s.path)
	return err == nil
}

func (s *fileShelf) lock(ctx context.Context) (unlock func(), err error) {
	return s.records.lock(ctx, s.path)
}

func (s *fileShelf) write(ctx context.Context, r record) error {
	if err := s.records.write(s.path, r); err != nil {
		return err
	}
	_, err := s.read(ctx)
	return err
}

func (s *fileShelf) remove(ctx context.Context) error {
	if err := s.records.remove(s.path); err != nil {
		return err
	}
	_, err := s.read(ctx)
	return err
}
