package statuscmd

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/alive"
)

// A Serving is what a `serve` says of itself. Its keys are promised in
// docs/reference/cli.md.
type Serving struct {
	PID      int       `json:"pid"`
	Version  string    `json:"version"`
	Since    time.Time `json:"since"`
	File     string    `json:"file"` // of its configuration, absolute
	Endpoint string    `json:"endpoint"`
	Page     string    `json:"page,omitempty"`
	// Refused says why the configuration on disk was not taken over; empty if it was.
	Refused string `json:"refused,omitempty"`
}

// An Announcement makes a `serve` known to `status`, as long as its process runs. A nil
// one announces nothing. Its methods may be called from several goroutines.
type Announcement struct {
	dir, name string
	member    *alive.Member

	mu   sync.Mutex // guards what is said
	says Serving
}

// Announce makes a `serve` known in a folder that is for this alone.
func Announce(dir string, s Serving) (*Announcement, error) {
	a := &Announcement{dir: dir, name: fmt.Sprintf("s%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:10])), says: s}
	var err error
	if a.member, err = alive.Join(dir, a.name); err != nil {
		return nil, err
	}
	if err := a.tell(); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Announcement) tell() error {
	text, err := json.Marshal(a.says)
	if err != nil {
		return err
	}
	return alive.Tell(a.dir, a.name, a.says.Endpoint, string(text))
}

// Refused says why the configuration on disk was not taken over; empty once it was.
func (a *Announcement) Refused(why string) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.says.Refused == why {
		return nil
	}
	a.says.Refused = why
	return a.tell()
}

// Close takes the announcement back.
func (a *Announcement) Close() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	err := alive.Forget(a.dir, a.says.Endpoint)
	if left := a.member.Leave(); err == nil {
		err = left
	}
	return err
}

// servings returns those that are announced, the oldest first.
func servings(dir string) []Serving {
	all := []Serving{}
	for _, text := range alive.Notes(dir) {
		var s Serving
		if json.Unmarshal([]byte(text), &s) == nil {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y Serving) int { return x.Since.Compare(y.Since) })
	return all
}
