package secrets

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Resolver gets secrets. The zero value finds files by absolute paths, and has no
// keyring.
type Resolver struct {
	// Folder is where relative paths start, and what programs run in; Home is what "~"
	// means, empty if nobody knows.
	Folder, Home string
	// Keyring is asked for one secret at a time; nil: there is none.
	Keyring Keys
	// Timeout bounds each question to the keyring, and each command; 10 s if zero. A keyring
	// that has not answered in time is not asked again.
	Timeout time.Duration
	// Environ is what commands get; nil: the environment of this process.
	Environ []string
	// Memory, if not nil, has what became of the references that were resolved with it: none
	// is asked for a second time, whether it was found or not.
	Memory *Memory
}

// A Memory keeps secrets for as long as one command takes. The zero value is empty.
type Memory struct {
	mu  sync.Mutex
	all map[remembered]Secret
}

// A remembered reference belongs to the folder that its relative path starts from.
type remembered struct {
	Reference
	place place
}

// recall returns those of the references that are in the memory, and the others.
func (m *Memory) recall(at place, all []Reference) (found map[Reference]Secret, others []Reference) {
	found = make(map[Reference]Secret, len(all))
	if m == nil {
		return found, all
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range all {
		if s, ok := m.all[remembered{one, at}]; ok {
			found[one] = s
		} else {
			others = append(others, one)
		}
	}
	return found, others
}

func (m *Memory) keep(at place, found map[Reference]Secret) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[remembered]Secret)
	}
	for one, s := range found {
		m.all[remembered{one, at}] = s
	}
}

// defaultTimeout is long enough for a person to touch a key.
const defaultTimeout = 10 * time.Second

func (r *Resolver) timeout() time.Duration {
	if r.Timeout > 0 {
		return r.Timeout
	}
	return defaultTimeout
}

func (r *Resolver) place() place { return place{r.Folder, r.Home} }

// parallel is how many commands run at the same time.
const parallel = 4

// Resolve gets the secrets of all references. Equal ones are resolved once: a command
// runs once however often it is named. When ctx ends, what is still missing has an error.
func (r *Resolver) Resolve(ctx context.Context, all []Reference) map[Reference]Secret {
	found, all := r.Memory.recall(r.place(), all)
	var mu sync.Mutex
	note := func(one Reference, text string, err *Error) {
		if err == nil {
			text, err = checked(one, text)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			found[one] = Secret{Err: err}
			return
		}
		found[one] = Found(text)
	}
	var running sync.WaitGroup
	var keys []Reference
	slots := make(chan struct{}, parallel)
	seen := make(map[Reference]bool, len(all))
	for _, one := range all {
		if seen[one] {
			continue
		}
		seen[one] = true
		switch one.Kind {
		case Keyring:
			keys = append(keys, one)
		case File:
			text, err := readFile(r.place(), one.Name)
			note(one, text, err)
		case Exec:
			running.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				text, err := run(ctx, one.Name, surroundings{r.place(), r.Environ, r.timeout()})
				note(one, text, err)
			})
		default:
			note(one, "", &Error{"nobody knows how to get " + one.String(), ""})
		}
	}
	var unusable error
	if r.Keyring == nil {
		unusable = errors.New("there is none")
	}
	for _, one := range keys { // one after the other: each may ask the person something
		if unusable != nil {
			note(one, "", NoKeyring(unusable))
			continue
		}
		text, err := Patient(ctx, r.Keyring, r.timeout()).Get(one.Name)
		note(one, text, fromKeyring(one.Name, err))
		if errors.As(err, new(*silentError)) {
			unusable = err // a bridge that starts must not wait for it once more for each secret
		}
	}
	running.Wait()
	if ctx.Err() == nil { // what was interrupted may be asked for again
		r.Memory.keep(r.place(), found)
	}
	return found
}
