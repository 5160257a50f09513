package setup

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/known"
)

// What a person has allowed in their client is offered tool by tool: only tools that are
// listed today, of medium risk at most. A wildcard stands for what it covers today.

// called is a server as a client calls it.
type called struct {
	client string
	own    bool   // the person's own file names it
	name   string // the client's
	as     string // ours
}

// An Offer is what a person has allowed one client to call without asking.
type Offer struct {
	Client string `json:"client"`
	// Tools are offered, as server__tool, and LeftOut are allowed in the client and
	// not offered, each with the reason.
	Tools   []string `json:"tools"`
	LeftOut []string `json:"left_out,omitempty"`
	Taken   bool     `json:"taken"` // the configuration allows them

	meant []string // those of the tools of which it is known and accepted what they do
}

// An allowance is what one file of a client says.
type allowance struct {
	clients.Permissions
	clients.Allowance
	counts bool // it is the person's own, or was named
}

// permits reports whether a file is one in which a client keeps its permissions.
func (i *Import) permits(path string) bool {
	return slices.ContainsFunc(clients.PermissionFiles(i.system), func(p clients.Permissions) bool { return p.File == path })
}

// allowances are what the files of clients say. A client with a file that cannot be read
// allows nothing. What a file of the folder allows counts only if it is named, as it may have
// come with a repository; what it forbids always counts.
func (i *Import) allowances(from []string) []allowance {
	var all []allowance
	broken := map[string]bool{}
	for _, p := range clients.PermissionFiles(i.system) {
		file, err := clients.ReadFile(p.File)
		if err == nil && !file.Existed {
			continue
		}
		a := allowance{Permissions: p, counts: p.Scope == clients.User && (len(from) == 0 || slices.Contains(from, p.Client.Name))}
		for _, name := range from {
			path, err := filepath.Abs(name)
			a.counts = a.counts || err == nil && path == p.File
		}
		if err == nil {
			a.Allowance, err = p.Read(file.Text)
		}
		broken[p.Client.Name] = broken[p.Client.Name] || err != nil
		all = append(all, a)
	}
	for n := range all {
		all[n].counts = all[n].counts && !broken[all[n].Client.Name]
	}
	return all
}

// Offer finds what clients may call without asking that the profile asks about. Only
// servers whose tools are Listed count.
func (i *Import) Offer(from []string, profile *profiles.Profile) { i.offerOf(i.New(), from, profile) }

func (i *Import) offerOf(some []*Server, from []string, profile *profiles.Profile) {
	all := i.allowances(from)
	covered := func(a allowance, c profiles.Call, says func(server, tool string) bool) bool {
		return slices.ContainsFunc(i.called, func(k called) bool {
			return k.client == a.Client.Name && k.as == c.Server && (k.own || a.Scope != clients.User) && says(k.name, c.Tool)
		})
	}
	for _, s := range some {
		for _, c := range s.Listed {
			if len(s.Allow) > 0 && !slices.Contains(s.Allow, c.Tool) || slices.Contains(s.Deny, c.Tool) {
				continue
			}
			allows := slices.IndexFunc(all, func(a allowance) bool { return a.counts && covered(a, c, a.Allows) })
			if allows < 0 {
				continue
			}
			denied := slices.ContainsFunc(all, func(a allowance) bool {
				return slices.ContainsFunc(i.called, func(k called) bool {
					return k.client == a.Client.Name && k.as == c.Server && a.Denies(k.name, c.Tool)
				})
			})
			i.offer(all[allows].Client.Title, s, c, denied, profile)
		}
	}
}

func (i *Import) offer(client string, s *Server, c profiles.Call, denied bool, profile *profiles.Profile) {
	why, asked, meant := tooMuch(s, c, profile)
	if !asked {
		return
	}
	at := slices.IndexFunc(i.Offers, func(o *Offer) bool { return o.Client == client })
	if at < 0 {
		at, i.Offers = len(i.Offers), append(i.Offers, &Offer{Client: client, Tools: []string{}})
	}
	o := i.Offers[at]
	if denied {
		why = "a client denies it or asks"
	}
	if why != "" {
		o.LeftOut = append(o.LeftOut, canon.Escape(canon.Fit(c.Path(), 100))+": "+why)
		return
	}
	if o.Tools = append(o.Tools, c.Path()); meant {
		o.meant = append(o.meant, c.Path())
	}
}

// plainName is a tool's name that means nothing else in a pattern.
var plainName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// nameWord is a word in a tool's name.
var nameWord = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

// gone are words in names of tools that delete, run something, spend or tell somebody.
var gone = strings.Fields(`delete remove drop destroy purge wipe erase truncate terminate kill clear reset revoke
	exec execute run eval invoke command shell terminal script sql query deploy install merge restart trigger
	send mail email post publish reply share invite notify message broadcast submit grant
	pay buy book order purchase sell transfer charge refund subscribe`)

// tooMuch says why a tool is not offered; empty if it is. Asked reports whether the
// profile asks about it at all, and meant whether it is known and accepted what it does.
func tooMuch(s *Server, c profiles.Call, profile *profiles.Profile) (why string, asked, meant bool) {
	r, _ := recognize(s.Text())
	tool, ok := r.Server.Tools[c.Tool]
	if meant = ok && r.Accepted; ok {
		c.Meaning = &profiles.Meaning{Accepted: meant, Where: string(tool.Where), Net: string(cmp.Or(tool.Net, known.NetNone))}
		for _, e := range tool.Effects {
			c.Meaning.Effects = append(c.Meaning.Effects, string(e))
		}
	}
	c.Args = map[string]any{}
	d := profile.Decide(c)
	if d.Disposition == profiles.Allow {
		return "", false, meant
	}
	if d.Risk > profiles.Medium {
		if hintedAlone(c, profile) {
			return "its server calls it destructive", true, meant
		}
		return "its risk is " + d.Risk.String(), true, meant
	}
	if d.Disposition != profiles.Ask || d.Manual || slices.ContainsFunc(d.Reasons, func(r profiles.Reason) bool {
		return r.Disposition == profiles.Ask && r.Kind != profiles.KindDefault
	}) {
		return "the template decides about it", true, meant
	}
	if !plainName.MatchString(c.Tool) {
		return "its name is unusual", true, meant
	}
	if ok {
		return reaches(tool, meant), true, meant
	}
	for _, word := range nameWord.FindAllString(c.Tool, -1) {
		if word = strings.ToLower(word); slices.Contains(gone, word) || slices.Contains(gone, strings.TrimSuffix(word, "s")) {
			return fmt.Sprintf("%q is in its name", word), true, meant
		}
	}
	return "", true, meant
}

// hintedAlone reports whether it is only the server's own hint that makes a call's risk
// more than medium.
func hintedAlone(c profiles.Call, profile *profiles.Profile) bool {
	if c.Annotations.Destructive == nil || !*c.Annotations.Destructive {
		return false
	}
	c.Annotations.Destructive = new(false)
	return profile.Decide(c).Risk <= profiles.Medium
}

// reaches says why a tool of which it is known what it does is not offered: with some
// arguments it does more than change what can be changed back, or reaches what calls
// name.
func reaches(tool known.Tool, accepted bool) string {
	changes := []known.Change{{Effects: tool.Effects, Net: tool.Net, Args: tool.Args}}
	for _, name := range slices.Sorted(maps.Keys(tool.Adds)) {
		changes = append(changes, tool.Adds[name])
	}
	for _, name := range slices.Sorted(maps.Keys(tool.When)) {
		changes = slices.AppendSeq(changes, maps.Values(tool.When[name]))
	}
	for _, c := range changes {
		if slices.ContainsFunc(c.Effects, func(e known.Effect) bool { return e != known.Read && e != known.Write }) {
			return "it can do more than read and write"
		}
		if c.Net == known.NetChosen {
			return "it reaches hosts that calls name"
		}
		for _, role := range c.Args {
			switch role {
			case known.Content, known.Plain, known.Place:
			case known.Path:
				if !accepted {
					return "nobody has accepted what the bridge knows of its paths"
				}
			default:
				return "calls name whom or what it reaches"
			}
		}
	}
	return ""
}

// Offered is how many tools are offered.
func (i *Import) Offered() (n int) {
	for _, o := range i.Offers {
		n += len(o.Tools)
	}
	return n
}

// OfferWords shows each tool that clients may call without asking.
func (i *Import) OfferWords() (lines []string) {
	for _, o := range i.Offers {
		if len(o.Tools) > 0 {
			lines = append(lines, o.Client+" may call these without asking you, which scripts have to ask for:")
		}
		for _, name := range o.Tools {
			if slices.Contains(o.meant, name) {
				name += "  (no more than what it is known to do)"
			}
			lines = append(lines, "  "+name)
		}
		if len(o.LeftOut) > 0 {
			lines = append(lines, o.Client+" may call these as well, which are still asked about:")
		}
		for _, line := range o.LeftOut {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

// OfferLimits says, at the end of a question, whether arguments limit what is offered.
func (i *Import) OfferLimits() string {
	offered, meant := i.Offered(), 0
	for _, o := range i.Offers {
		meant += len(o.meant)
	}
	switch meant {
	case offered:
		return ""
	case 0:
		return ", whatever the arguments"
	default:
		return ", whatever the arguments where nothing else is said"
	}
}

// TakeOffers marks what is offered as taken, and returns the rules that allow it. Where
// it is known what a tool does, its rule holds for no more than that.
func (i *Import) TakeOffers() (rules []profiles.RuleSpec) {
	for _, o := range i.Offers {
		guessed := slices.DeleteFunc(slices.Clone(o.Tools), func(name string) bool { return slices.Contains(o.meant, name) })
		rule := profiles.RuleSpec{Action: new("allow"), Reason: new("you had allowed it in " + o.Client)}
		if len(guessed) > 0 {
			rule.Name, rule.Tools, rule.Known = new("allowed in "+o.Client), guessed, new(false)
			rules = append(rules, rule)
		}
		if len(o.meant) > 0 {
			rule.Name, rule.Tools, rule.Known = new("allowed in "+o.Client+", as known"), o.meant, new(true)
			rule.Effects, rule.Where, rule.Net = []string{"read", "write"}, []string{"workspace", "local", "remote"}, []string{"none", "fixed"}
			rules = append(rules, rule)
		}
		o.Taken = len(o.Tools) > 0
	}
	return rules
}

// Offer finds what the client may call without asking, of the servers that move, that the
// profile asks about, once their tools are Listed. What another client forbids for a server
// of that name is not offered.
func (in *Installation) Offer(profile *profiles.Profile) *Import {
	i := in.found
	for _, s := range in.Moving {
		for _, c := range clients.All() {
			i.called = append(i.called, called{c.Name, in.Place.Scope != clients.Project, s.Name, s.As})
		}
	}
	i.offerOf(in.Moving, []string{in.Place.Client.Name}, profile)
	return i
}

// Allow adds rules to a profile of the bridge's configuration. Parse reads its text.
func (in *Installation) Allow(profile string, rules []profiles.RuleSpec, parse func(text []byte) (*config.Config, error)) error {
	after := in.After
	for _, rule := range rules {
		var err error
		if after, err = AddRule(after, profile, rule); err != nil {
			return err
		}
	}
	if _, err := parse(after); err != nil {
		return err
	}
	in.After = after
	return nil
}

// flatRule is a rule on one line, as people write JSON.
func flatRule(rule profiles.RuleSpec) string {
	members := []string{`"name": ` + flatJSON(*rule.Name), `"tools": ` + flatJSON(rule.Tools)}
	for _, list := range []struct {
		key    string
		values []string
	}{{"effects", rule.Effects}, {"where", rule.Where}, {"net", rule.Net}} {
		if len(list.values) > 0 {
			members = append(members, flatJSON(list.key)+": "+flatJSON(list.values))
		}
	}
	if rule.Known != nil {
		members = append(members, fmt.Sprintf(`"known": %t`, *rule.Known))
	}
	return "{ " + strings.Join(append(members, `"action": `+flatJSON(*rule.Action), `"reason": `+flatJSON(*rule.Reason)), ", ") + " }"
}
