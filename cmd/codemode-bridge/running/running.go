// Package running gets the state and the tools of the servers from a bridge that runs
// with the same configuration, so that a command need not connect to them itself. It
// only reads: a [Told] is what a bridge says of its servers, [Asker.Ask] asks for it.
package running

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

const (
	// patience is how long a bridge may take to answer before a command does without it.
	patience = 3 * time.Second
	// between is how long after an answer a bridge is asked again, while servers of it have
	// neither connected nor failed.
	between = 200 * time.Millisecond
)

// A Server is what a bridge says of one of its servers. A link to log in is not told: only
// that there is one.
type Server struct {
	upstream.Status
	Listed  bool    // it has listed its tools since the bridge started
	Offers  []Offer // these
	Pending bool    // it has neither connected nor failed yet
}

// An Offer is a tool. Its schemas are the bytes that the server sent, which JSON in JSON
// need not stay: what was accepted of a tool is compared with them.
type Offer struct {
	upstream.Tool
	Input, Output []byte
}

// A Told is what a bridge says of its servers.
type Told struct {
	Configuration string // in force: see Fingerprint
	Folder        string // in which servers without cwd run; empty if all have one
	Servers       []Server
}

// Fingerprint tells configurations apart by the bytes of their files.
func Fingerprint(cfg *config.Config) string {
	text := fmt.Sprintf("%v %s %v", cfg.Digest, cfg.Overlay, cfg.OverlayDigest())
	if included := cfg.Texts().Included; included != "" {
		text += fmt.Sprintf(" %x", sha256.Sum256([]byte(included)))
	}
	return text
}

// withheld stands for a link to log in.
const withheld = "shown by the bridge that runs"

// Of is what a bridge with this configuration in force tells of its servers.
func Of(cfg *config.Config, folder string, set *upstream.Set) Told {
	t := Told{Configuration: Fingerprint(cfg), Folder: folder}
	pending, tools := set.Pending(), set.Tools() // before the states: what has answered by now has done so
	for _, s := range set.Status() {
		s.Box = set.Boxed(s.Name) // what holds all its processes
		listed, ok := tools[s.Name]
		t.Servers = append(t.Servers, Server{withoutLink(s), ok, offers(listed), slices.Contains(pending, s.Name)})
	}
	return t
}

// withoutLink takes the link out of what says why a server waits, too, and leaves out what its
// program wrote, which the link comes from.
func withoutLink(s upstream.Status) upstream.Status {
	if s.Login != "" {
		s.Login, s.Err, s.Plain, s.Said = withheld, "its program waits for a login: the link is "+withheld, "", ""
	}
	return s
}

func offers(tools []upstream.Tool) (all []Offer) {
	for _, tool := range tools {
		all = append(all, Offer{tool, tool.Input, tool.Output})
	}
	return all
}

// A Bridge is a bridge that was asked.
type Bridge struct {
	instance.Status
	Told
}

// Serves names the bridge, for people.
func (b *Bridge) Serves() string {
	if b.Endpoint != "" {
		return fmt.Sprintf("that serves %s (process %d)", b.Endpoint, b.PID)
	}
	return fmt.Sprintf("that serves %s (process %d)", cli.Count(len(b.Clients), "window"), b.PID)
}

// Tools are the tools of the servers that have listed theirs.
func (b *Bridge) Tools() map[string][]upstream.Tool {
	all := map[string][]upstream.Tool{}
	for _, s := range b.Told.Servers {
		if s.Listed {
			all[s.Name] = s.tools()
		}
	}
	return all
}

func (s Server) tools() []upstream.Tool {
	all := make([]upstream.Tool, 0, len(s.Offers))
	for _, o := range s.Offers {
		o.Tool.Input, o.Tool.Output = o.Input, o.Output
		all = append(all, o.Tool)
	}
	return all
}

// States are the states of all servers, sorted by name.
func (b *Bridge) States() []upstream.Status {
	var all []upstream.Status
	for _, s := range b.Told.Servers {
		all = append(all, s.Status)
	}
	return all
}

// waitsFor returns those of the named servers, or of all, that have neither connected nor
// failed.
func (b *Bridge) waitsFor(names []string) (all []string) {
	for _, s := range b.Told.Servers {
		if s.Pending && (names == nil || slices.Contains(names, s.Name)) {
			all = append(all, s.Name)
		}
	}
	return all
}

// A Source is a bridge that may run.
type Source interface {
	State(context.Context) (instance.State, error)
}

// An Asker asks the bridges of one configuration.
type Asker struct {
	Sources       []Source
	Version       string // of this program; no other is understood
	Configuration string // see Fingerprint
	// Wait tells people which servers are waited for.
	Wait func(names []string) *cli.Waiting
}

// Sources are the bridges of a configuration file.
func Sources(f instance.Folders, file string) (all []Source) {
	for _, meeting := range instance.In(f, file) {
		all = append(all, meeting)
	}
	return all
}

// Ask asks the bridge with this configuration in force that has run for the longest, and
// waits until each of the named servers, or all for nil, has connected or failed there. If
// there is none, why says what is in the way; it is empty if no bridge runs at all.
func (a Asker) Ask(ctx context.Context, names []string) (b *Bridge, why string) {
	b, source, why := a.oldest(ctx)
	if b == nil {
		return nil, why
	}
	waiting := b.waitsFor(names)
	if len(waiting) == 0 {
		return b, ""
	}
	said := a.Wait(waiting)
	defer said.Close()
	for len(waiting) > 0 {
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return nil, ""
		}
		if b, why = a.one(ctx, source); b == nil {
			return nil, cmp.Or(why, "the bridge that ran has ended")
		}
		still := b.waitsFor(names)
		for _, name := range waiting {
			if !slices.Contains(still, name) {
				said.Answered(name)
			}
		}
		waiting = still
	}
	return b, ""
}

// oldest asks all bridges at once.
func (a Asker) oldest(ctx context.Context) (b *Bridge, from Source, why string) {
	bridges, whys := make([]*Bridge, len(a.Sources)), make([]string, len(a.Sources))
	var asking sync.WaitGroup
	for i, source := range a.Sources {
		asking.Go(func() { bridges[i], whys[i] = a.one(ctx, source) })
	}
	asking.Wait()
	for i, one := range bridges {
		if one != nil && (b == nil || one.Since.Before(b.Since)) {
			b, from = one, a.Sources[i]
		}
		why = cmp.Or(why, whys[i])
	}
	if b != nil {
		why = ""
	}
	return b, from, why
}

// one asks one bridge, and says why it cannot be used.
func (a Asker) one(ctx context.Context, source Source) (*Bridge, string) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it has not answered within %v", patience))
	defer cancel()
	s, err := source.State(ctx)
	b := &Bridge{Status: s.Status}
	switch {
	case errors.Is(err, instance.ErrNoInstance):
		return nil, ""
	case err != nil && ctx.Err() != nil:
		return nil, "the bridge that runs does not answer"
	case err != nil:
		return nil, "the bridge that runs cannot be asked: " + err.Error()
	case s.Version != a.Version:
		return nil, fmt.Sprintf("the bridge that runs is version %s, and this is %s", s.Version, a.Version)
	case len(s.More) == 0 || json.Unmarshal(s.More, &b.Told) != nil:
		return nil, "the bridge that runs says nothing of its servers that this program understands"
	case b.Configuration != a.Configuration:
		return nil, "the bridge that runs has another configuration in force (codemode-bridge status says more)"
	}
	return b, ""
}
