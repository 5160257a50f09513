package instance

import (
	"fmt"
	"os"
	"path/filepath"
)

// noteFile makes a file without a name.
func (r *Rendezvous) noteFile() (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(r.locks), "requests-*")
	if err != nil {
		return nil, fmt.Errorf("making a file for the open requests: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("making a file for the open requests: %w", err)
	}
	return f, nil
}
