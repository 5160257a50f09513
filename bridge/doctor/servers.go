package doctor

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/knownview"
	"codemode-bridge/bridge/upstream"
)

// servers connects to all servers at once, but to those of the bridge that runs.
func (up *Checkup) servers(ctx context.Context) []Finding {
	if up.config == nil {
		return nil
	}
	up.states, up.listed = map[string]upstream.State{}, map[string][]upstream.Tool{}
	all, trials := make([]Finding, len(up.config.Servers)), make([]Trial, len(up.config.Servers))
	var mu sync.Mutex // guards up.states and up.listed
	var trying sync.WaitGroup
	var running map[string]Trial
	if up.Running != nil {
		running = up.Running(ctx)
	}
	answered, end := up.waits(running)
	defer end()
	for i, s := range up.config.Servers {
		if s.Disabled {
			all[i] = fine(s.Name, "disabled")
			continue
		}
		trying.Go(func() {
			limited, cancel := context.WithTimeout(ctx, up.Limit)
			defer cancel()
			t, ok := running[s.Name]
			if !ok {
				t = Try(limited, s.Spec, up.Version, nil)
			}
			answered(s.Name)
			mu.Lock()
			up.states[s.Name] = upstream.State(t.State)
			if t.OK {
				up.listed[s.Name] = t.Listed
			}
			mu.Unlock()
			all[i], trials[i] = up.tried(t, s.NoAuth), t
		})
	}
	trying.Wait()
	return append(all, up.boxes(trials)...)
}

// waits tells whoever wants to know which servers are waited for.
func (up *Checkup) waits(running map[string]Trial) (answered func(server string), end func()) {
	if up.Waits == nil {
		return func(string) {}, func() {}
	}
	var names []string
	for _, s := range up.config.Servers {
		if _, ok := running[s.Name]; !ok && !s.Disabled {
			names = append(names, s.Name)
		}
	}
	return up.Waits(names)
}

// boxes says what keeps the programs of servers: one finding for all boxes that lack the
// same, and one for all servers that have none, which nobody has to have.
func (up *Checkup) boxes(trials []Trial) (all []Finding) {
	var without, reasons []string
	lacking := map[string][]string{}
	for _, t := range trials {
		switch {
		case t.kept == nil:
		case len(t.lacks) > 0:
			why := strings.Join(t.lacks, "; ")
			if lacking[why] == nil {
				reasons = append(reasons, why)
			}
			lacking[why] = append(lacking[why], t.Name)
		case len(t.kept.Steps) == 0:
			without = append(without, t.Name)
		}
	}
	for _, why := range reasons {
		all = append(all, warning(strings.Join(lacking[why], ", "), "confined in part; not on: "+why,
			`policy does not count on that; "require": true in "confine" refuses to start a server so`))
	}
	if len(without) > 0 {
		f := fine("", "not confined: "+strings.Join(without, ", "))
		f.Do = `"confine" keeps a server to folders and hosts that you name`
		all = append(all, f)
	}
	return all
}

// Found is what a trial found, as doctor says it. Of the options, Limit and Typed count.
func Found(t Trial, noAuth bool, o Options) Finding { return New(o).tried(t, noAuth) }

// tried is the finding of a trial.
func (up *Checkup) tried(t Trial, noAuth bool) Finding {
	why, said := t.why()
	again, without := up.Typed("servers test "+t.Name), up.Typed("servers disable "+t.Name)+" does without it"
	var f Finding
	switch {
	case t.OK && len(t.Tools) == 0:
		f = warning(t.Name, "it is connected and has no tools", "look at its tools.allow and tools.deny, and at what it needs to have some")
	case t.running:
		return fine(t.Name, count(len(t.Tools), "tool")+", at the bridge that runs")
	case t.OK:
		return fine(t.Name, fmt.Sprintf("%s, in %s", count(len(t.Tools), "tool"), t.TookText()))
	case t.State == string(upstream.NeedsLogin):
		f = warning(t.Name, "it needs a login", up.Typed("servers login "+t.Name))
		if noAuth {
			f.Do = "its headers or its auth in the configuration are what it refuses"
		}
	case t.State == "":
		f = failing(t.Name, fmt.Sprintf("it has not answered within %v", up.Limit), "start it by hand to see why, or give it longer with --timeout")
	case strings.HasPrefix(why, "it did not answer the handshake"):
		f = failing(t.Name, why, "start its command by hand to see what it waits for, or raise its connectTimeout; "+without)
	case strings.HasPrefix(why, "starting the process"):
		f = failing(t.Name, why, "install the program, or write where it is")
	default:
		f = failing(t.Name, why, again+" tries again; "+without)
	}
	mute := t.State == "" || strings.HasPrefix(why, "it did not answer the handshake")
	if t.withheld != "" && (mute || !t.OK && strings.Contains(said, "npm err")) {
		f.Do = t.withheld + "; or " + f.Do
	}
	if said != "" {
		f.Said = strings.Split(said, " | ")
	}
	return f
}

// known says where servers differ from what is known of them.
func (up *Checkup) known() (all []Finding) {
	for _, s := range up.config.Servers {
		if s.Disabled {
			continue
		}
		var listed []knownview.Listed
		for _, t := range up.listed[s.Name] {
			listed = append(listed, knownview.Listed{Name: t.Name, Input: t.Input, Destructive: t.Destructive, Description: t.Description})
		}
		if f, ok := knownview.Shared(s.Name, s.Started(), s.Known, listed); ok && !s.Sharing {
			all = append(all, warning(s.Name, f.Text, f.Do))
		}
		for _, f := range knownview.Findings(s.Name, s.Known, listed, len(s.Spec.Allow)+len(s.Spec.Deny) > 0) {
			one := warning(s.Name, f.Text, f.Do)
			if f.Notice {
				one.Level = OK
			}
			all = append(all, one)
		}
	}
	return all
}

// tools looks for tools that wait to be reviewed, and for those that are not what is
// known of them.
func (up *Checkup) tools(context.Context) []Finding {
	if up.config == nil {
		return nil
	}
	unreviewed, blocked, err := up.config.Review()
	if err != nil {
		return []Finding{failing("", err.Error(), "every tool of that server asks until the file is put right; removing it accepts what the server lists next")}
	}
	all := up.known()
	if up.config.NoLock != nil {
		all = append(all, failing("", up.config.NoLock.Error(), "put the file right, or take the last good version out of version control"))
	}
	if n := up.config.Proposed; n > 0 {
		all = append(all, warning("", "the lock file has "+count(n, "tool")+" that nobody has accepted here", up.Typed("tools lock --accept")))
	}
	if unreviewed > 0 {
		all = append(all, warning("", count(unreviewed, "tool")+" of servers are not what somebody has accepted", up.Typed("tools review")))
	}
	if blocked > 0 {
		all = append(all, fine("", count(blocked, "tool")+" blocked"))
	}
	if unreviewed+blocked+up.config.Proposed == 0 && up.config.NoLock == nil {
		all = append(all, fine("", "none waits to be reviewed"))
	}
	return all
}

// logins checks the stored logins.
func (up *Checkup) logins(ctx context.Context) []Finding {
	if up.config == nil {
		return nil
	}
	all := []Finding{}
	for _, s := range up.config.Servers {
		if s.Accounts != nil && !s.Disabled {
			all = append(all, accounts(ctx, s))
			continue
		}
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

// accounts says how many people have connected their accounts at a server.
func accounts(ctx context.Context, s Server) Finding {
	connected, err := s.Accounts(ctx)
	ended := 0
	for _, c := range connected {
		if c.Ended {
			ended++
		}
	}
	people := fmt.Sprintf("%d people have connected their accounts", len(connected))
	if len(connected) == 1 {
		people = "1 person has connected their account"
	}
	switch {
	case err != nil:
		return failing(s.Name, "the accounts of people cannot be read: "+err.Error(), "without them their calls are refused")
	case len(connected) == 0:
		return warning(s.Name, "nobody has connected an account, so its tools are not known and calls are refused", "connect one on the approval page, under Your accounts")
	case ended > 0:
		return warning(s.Name, fmt.Sprintf("%s, of which %d have ended", people, ended), "whose has ended is told so, and connects again on the approval page")
	}
	return fine(s.Name, people)
}
