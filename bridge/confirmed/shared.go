package confirmed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// Documents keep a text that several machines share; see package documents.
type Documents interface {
	Read(ctx context.Context, name string) ([]byte, error)
	Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error
}

// Shared is what somebody last confirmed of a configuration that several machines have,
// wherever its files lie there. It has one document, with the last confirmed texts by the
// name of the overlay, without its folder. What was applied since, because it loosens
// nothing, is each machine's own.
type Shared struct{ documents Documents }

// OpenShared returns what documents have.
func OpenShared(d Documents) *Shared { return &Shared{d} }

const (
	sharedName = "confirmed.json"
	patience   = 20 * time.Second // with the documents, their lock included
)

// A sharedRecord is the document. Its texts have no names.
type sharedRecord struct {
	Version      int                 `json:"version"`
	Environments map[string]Standing `json:"environments"`
}

// key names an environment on any machine.
func key(overlay string) string {
	if overlay == "" {
		return ""
	}
	return filepath.Base(overlay)
}

// Read returns what was confirmed, as if of the files that a machine has: without
// environments if nothing was.
func (s *Shared) Read(file, overlay string) (Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	text, err := s.documents.Read(ctx, sharedName)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	var kept sharedRecord
	if err == nil {
		kept, err = readShared(text)
	}
	if err != nil {
		return Record{}, err
	}
	r := Record{Version: version, File: Resolve(file), Environments: map[string]Standing{}}
	for name, its := range kept.Environments {
		at, its := "", its
		its.Confirmed.Name = file
		if name != "" {
			its.Confirmed.OverlayName = filepath.Join(filepath.Dir(file), name)
			if key(overlay) == name {
				its.Confirmed.OverlayName = overlay
			}
			at = Resolve(its.Confirmed.OverlayName)
		}
		r.Environments[at] = its
	}
	return r, nil
}

func readShared(text []byte) (r sharedRecord, err error) {
	if text == nil {
		return sharedRecord{version, map[string]Standing{}}, nil
	}
	err = json.Unmarshal(text, &r)
	if err == nil && (r.Version != version || len(r.Environments) == 0) {
		err = fmt.Errorf("its version is %d, and this program reads %d", r.Version, version)
	}
	if err != nil {
		err = fmt.Errorf("reading what was confirmed on all machines: %w", err)
	}
	return r, err
}

// Change replaces what was confirmed with an overlay, or without one, by what change makes
// of it. It is given nil if there is nothing yet; if it returns nil, nothing changes.
func (s *Shared) Change(overlay string, change func(was *Standing) *Standing) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.documents.Change(ctx, sharedName, func(old []byte) ([]byte, error) {
		r, err := readShared(old)
		if err != nil {
			return nil, err
		}
		var was *Standing
		if its, known := r.Environments[key(overlay)]; known {
			was = &its
		}
		is := change(was)
		if is == nil {
			return old, nil
		}
		is.Taken, is.Confirmed.Name, is.Confirmed.OverlayName = nil, "", ""
		r.Environments[key(overlay)] = *is
		return json.Marshal(r)
	})
	if err != nil {
		return fmt.Errorf("keeping the confirmed configuration for all machines: %w", err)
	}
	return nil
}
