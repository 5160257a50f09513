package doctor

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/upstream"
)

// A Trial is how connecting to a server went.
type Trial struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	State    string   `json:"state"`
	Took     int64    `json:"tookMs"`
	Tools    []string `json:"tools"`
	Protocol string   `json:"protocol,omitempty"`
	Program  string   `json:"program,omitempty"`
	Version  string   `json:"version,omitempty"`
	Why      string   `json:"why,omitempty"`

	Listed []upstream.Tool `json:"-"`
}

// Try connects to one server and disconnects again. Some programs get their login by
// themselves: Try waits for that only if asks, which is told the link, is not nil.
// Version is this program's, as servers are told.
func Try(ctx context.Context, spec upstream.Spec, version string, asks func(server, link string)) Trial {
	changed := make(chan struct{}, 1)
	set := upstream.New(upstream.Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), ClientVersion: version,
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default: // somebody will look
			}
		},
	})
	defer set.Close()
	begun := time.Now()
	set.Apply([]upstream.Spec{spec})
	if err := set.WaitReady(ctx); err != nil {
		return Trial{Name: spec.Name, Why: err.Error()}
	}
	for told := ""; asks != nil && ctx.Err() == nil; {
		link := set.Status()[0].Login
		if link == "" {
			break
		}
		if link != told {
			asks(spec.Name, link)
			told = link
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	r := Trial{Name: spec.Name, Took: time.Since(begun).Milliseconds(), Tools: []string{}}
	for _, s := range set.Status() {
		r.OK = s.State == upstream.Connected
		r.State, r.Protocol, r.Program, r.Version, r.Why = string(s.State), s.Protocol, s.Program, s.Version, s.Err
	}
	r.Listed = set.Tools()[spec.Name]
	for _, tool := range r.Listed {
		r.Tools = append(r.Tools, tool.Name)
	}
	return r
}

// TookText is how long it took, for people.
func (t Trial) TookText() string {
	if t.Took < 1000 {
		return fmt.Sprintf("%d ms", t.Took)
	}
	return fmt.Sprintf("%.1f s", float64(t.Took)/1000)
}

// NoTools says in a line why there are no tools to use; empty if there are some.
// Limit is how long the server had to answer.
func (t Trial) NoTools(limit time.Duration) string {
	switch {
	case t.OK && len(t.Listed) > 0:
		return ""
	case t.OK:
		return "it has no tools"
	case t.State == string(upstream.NeedsLogin):
		return "it needs a login"
	case t.State == "":
		return fmt.Sprintf("it has not answered within %v", limit)
	}
	why, _ := t.why()
	return why
}

// why returns what is wrong, and what the server's program wrote last.
func (t Trial) why() (why, said string) {
	why, said, _ = strings.Cut(t.Why, "; its stderr ends: ")
	return why, said
}

// servers connects to all servers at once.
func (up *Checkup) servers(ctx context.Context) []Finding {
	if up.config == nil {
		return nil
	}
	up.states = map[string]upstream.State{}
	all := make([]Finding, len(up.config.Servers))
	var mu sync.Mutex // guards up.states
	var trying sync.WaitGroup
	for i, s := range up.config.Servers {
		if s.Disabled {
			all[i] = fine(s.Name, "disabled")
			continue
		}
		trying.Go(func() {
			limited, cancel := context.WithTimeout(ctx, up.Limit)
			defer cancel()
			t := Try(limited, s.Spec, up.Version, nil)
			mu.Lock()
			up.states[s.Name] = upstream.State(t.State)
			mu.Unlock()
			all[i] = up.tried(t, s.NoAuth)
		})
	}
	trying.Wait()
	return all
}

// tried is the finding of a trial.
func (up *Checkup) tried(t Trial, noAuth bool) Finding {
	why, said := t.why()
	again := up.Typed("servers test " + t.Name)
	var f Finding
	switch {
	case t.OK && len(t.Tools) == 0:
		f = warning(t.Name, "it is connected and has no tools", "look at its tools.allow and tools.deny, and at what it needs to have some")
	case t.OK:
		return fine(t.Name, fmt.Sprintf("%s, in %s", count(len(t.Tools), "tool"), t.TookText()))
	case t.State == string(upstream.NeedsLogin):
		f = warning(t.Name, "it needs a login", up.Typed("servers login "+t.Name))
		if noAuth {
			f.Do = "its headers or its auth in the configuration are what it refuses"
		}
	case t.State == "":
		f = failing(t.Name, fmt.Sprintf("it has not answered within %v", up.Limit), "start it by hand to see why, or give it longer with --timeout")
	case strings.HasPrefix(why, "starting the process"):
		f = failing(t.Name, why, "install the program, or write where it is")
	default:
		f = failing(t.Name, why, again+" tries again; servers disable "+t.Name+" does without it")
	}
	if said != "" {
		f.Said = strings.Split(said, " | ")
	}
	return f
}

// tools looks for tools that wait to be reviewed.
func (up *Checkup) tools(context.Context) []Finding {
	if up.config == nil {
		return nil
	}
	unreviewed, blocked, err := up.config.Review()
	if err != nil {
		return []Finding{failing("", err.Error(), "every tool of that server asks until the file is put right; removing it accepts what the server lists next")}
	}
	all := []Finding{}
	if unreviewed > 0 {
		all = append(all, warning("", count(unreviewed, "tool")+" of servers are not what somebody has accepted", up.Typed("tools review")))
	}
	if blocked > 0 {
		all = append(all, fine("", count(blocked, "tool")+" blocked"))
	}
	if len(all) == 0 {
		all = append(all, fine("", "none waits to be reviewed"))
	}
	return all
}

// logins checks the stored logins.
func (up *Checkup) logins(context.Context) []Finding {
	if up.config == nil {
		return nil
	}
	all := []Finding{}
	for _, s := range up.config.Servers {
		if s.Login == nil || s.Disabled {
			continue
		}
		stored, held := s.Login()
		again := up.Typed("servers login " + s.Name)
		switch {
		case !held && up.states[s.Name] == upstream.NeedsLogin:
			all = append(all, warning(s.Name, "there is none, and the server wants one", again))
		case !held:
		case up.states[s.Name] == upstream.NeedsLogin:
			all = append(all, warning(s.Name, "the server does not take it any more", again))
		case !stored.Renews && !stored.Expires.IsZero() && time.Now().After(stored.Expires):
			all = append(all, warning(s.Name, "it has expired on "+stored.Expires.Local().Format(time.DateTime), again))
		default:
			all = append(all, fine(s.Name, stored.Describe()))
		}
	}
	if len(all) == 0 {
		all = append(all, fine("", "none is stored, and none is needed"))
	}
	return all
}
