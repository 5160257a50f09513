package approval

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"codemode-bridge/analysis"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// A Key identifies a call: an approval of one call holds for any call with an
// equal key.
type Key struct {
	// Configuration is the id of the configuration that asks. Identity says what
	// the server is, beyond its name there.
	Configuration string       `json:"configuration,omitempty"`
	Identity      string       `json:"identity,omitempty"`
	Session       string       `json:"session"`
	Profile       string       `json:"profile"`
	Server        string       `json:"server"`
	Tool          string       `json:"tool"`       // the raw name
	Definition    string       `json:"definition"` // digest of the tool's definition
	Revision      string       `json:"revision"`   // of the policy
	Args          canon.Digest `json:"args"`
}

// A Request is a question put to people, made only from frozen calls. It is
// about one call, or about calls of one run that wait together, perhaps of several
// tools.
type Request struct {
	ID  string `json:"id"`
	Run string `json:"run"`
	// Configuration is the name, for people, of the configuration that asks.
	// Verdicts are judged by that configuration's approvers alone.
	Configuration string `json:"configuration,omitempty"`
	// Folder is the working directory of those of the run's servers that have
	// none of their own; empty if all have one.
	Folder string `json:"folder,omitempty"`
	Client string `json:"client"` // the client's own name for itself, untrusted
	// Requester is who makes the call, as far as the bridge knows: the name of
	// the client's token, empty if it has none.
	Requester string `json:"requester,omitempty"`
	// Server, Tool and Script are those of the first item; see [Request.Calls].
	Server string `json:"server"`
	Tool   string `json:"tool"`   // the raw name
	Script string `json:"script"` // the tool's name in scripts
	// Summary is one line about it, if it is not ours: see [Options.Summarise].
	Summary string `json:"summary,omitempty"`
	// Says is the model summary of long arguments, once there is one: see
	// [Broker.SetModelSummary]. An approval does not cover it.
	Says string `json:"says,omitempty"`
	// ToolSays is the first tool's description as its server gave it at the time of
	// the request, unchecked and cut if it is long. An approval does not cover it; it
	// covers the digest of the definition.
	ToolSays string `json:"tool_says,omitempty"`
	// Hides are the argument names that any rule for the run hides, each with what
	// is shown instead. Decision has only those of the rules that the call matched;
	// edited arguments may match others. An approval does not cover it.
	Hides map[string]string `json:"hides,omitempty"`
	// Items are the calls, in the order they were made. There is at least one.
	Items []Item `json:"items"`
	// Decision says why people are asked, with the risk and the time they have to
	// answer: of several decisions, the strictest of each part.
	Decision profiles.Decision `json:"decision"`
	// Checks are the safety checks that run after an approval.
	Checks []string `json:"checks,omitempty"`
	// Difference is how the tool's definition differs from the accepted one, in
	// lines that a person may see; empty if it does not.
	Difference []string `json:"difference,omitempty"`
	// Preview is what could be read from the script before it ran. A model wrote
	// the script.
	Preview analysis.Report `json:"preview"`
	// Done counts the calls that the run had already sent.
	Done int `json:"done"`
	Number
	// Separate reports that the requester's own approval does not count.
	Separate      bool `json:"separate,omitempty"`
	Circumstances `json:"-"`
	// Asked is when the request was opened, Grown when the last call joined it,
	// and Until when it is denied for want of an answer.
	Asked time.Time `json:"asked"`
	Grown time.Time `json:"grown"`
	Until time.Time `json:"until"`
}

// A Number says how many requests there were before, and how many calls there may be.
type Number struct {
	// MostCalls is how many calls the run may make in all; 0: nobody said.
	MostCalls int `json:"most_calls,omitempty"`
	// Before counts the requests that the run put to people before this one. Spent,
	// if above zero, counts those of the session, which are all that it may put
	// without asking how to go on: see Verdict.List.
	Before int `json:"before,omitempty"`
	Spent  int `json:"spent,omitempty"`
}

// Circumstances are what whoever makes a call knows besides. Nobody stores them.
type Circumstances struct {
	// Again says that the run may have asked about this call before it was
	// suspended; if so, that request is reused.
	Again bool
	// Plan are the other calls that the script makes, as its preview has them, if all
	// that people would be asked about are known. Their numbers do not count.
	Plan []Item
	// Idle, if not nil, says how many calls of the run have no answer and are not
	// under way at a server, once the script can do nothing more before one of them
	// is answered; before that it is 0, and below if nobody knows. The channel is
	// closed when that changes. People are asked only then, or after a short time,
	// about all calls that wait; if nobody knows, or Idle is nil, at once.
	Idle func() (int, <-chan struct{})
	// Lease is the one under which the run is this process's; see StoredRequest.Lease.
	Lease int64
	// MostOpen is how many questions of its requester may be open; 0: any number. Beyond
	// that the call is refused.
	MostOpen int
}

// An Item is one call of a Request.
type Item struct {
	Call int `json:"call"` // its number in its run
	// Server, Tool, Script and Decision are as in Request, for this call alone. They
	// are empty in requests that older releases stored: see [Request.Calls].
	Server   string            `json:"server,omitempty"`
	Tool     string            `json:"tool,omitempty"`
	Script   string            `json:"script,omitempty"`
	Decision profiles.Decision `json:"decision,omitzero"`
	Key      Key               `json:"key"`
	// Shown are the arguments as a person may see them.
	Shown canon.Shown `json:"shown"`
	// Position is where in the script the call was made; calls of one loop
	// share it.
	Position analysis.Position `json:"position"`
	// Planned says that the call had not been made when people were asked, but was
	// known from the preview; Call then says only where it comes in the request, and
	// Taken, once the run has made the call, is its number there.
	Planned bool `json:"planned,omitempty"`
	Taken   int  `json:"taken,omitempty"`
	// Loop reports whether, as the preview has it, the call is in a loop.
	Loop bool `json:"loop,omitempty"`
	// Sources say in words which bytes of the arguments the run has read before,
	// and where.
	Sources []string `json:"sources,omitempty"`
	// Reads are such bytes where Sources does not have them; older releases stored
	// them there.
	Reads []Read `json:"reads,omitempty"`
	// About is what is known of the call's meaning, and Order has the names of its
	// arguments in the order of the tool's schema.
	About About    `json:"about,omitzero"`
	Order []string `json:"order,omitempty"`
	// Cover says what a wider approval would cover.
	Cover Cover `json:"cover,omitzero"`
	// AtClient reports that the person at the client can be asked, unless an approver must
	// answer: see [Request.NeedsApprover].
	AtClient bool `json:"at_client,omitempty"`
	// Always is the rule that would allow calls like this one in every run to come; nil
	// if none is proposed. It takes somebody who may edit the configuration.
	Always *profiles.RuleSpec `json:"always,omitempty"`
}

// A Read says that bytes of an argument are in an answer that the run has read.
type Read struct {
	Param      string `json:"param"` // dotted path, in display form
	Characters int    `json:"characters"`
	Whole      bool   `json:"whole,omitempty"` // they are the whole argument
	Call       int    `json:"call"`
	From       string `json:"from"` // the tool and what it was asked for, in display form
}

// An About is what is known of a call beyond its arguments, for the person who is
// asked about it: the question is made of it. The zero value is nothing at all. It
// changes nothing of what an approval covers.
type About struct {
	// Accepted reports that the person who runs the bridge accepted what the file of
	// the server says. Otherwise it only puts the arguments in order.
	Accepted bool     `json:"accepted,omitempty"`
	Effects  []string `json:"effects,omitempty"`
	// Roles are the roles of arguments by their names, as package known has them.
	Roles map[string]string `json:"roles,omitempty"`
	// Facts are what the gate found out about single values.
	Facts []Fact `json:"facts,omitempty"`
	// Box is what the system kept the server's program to when people were asked, in
	// words; empty if it runs elsewhere.
	Box string `json:"box,omitempty"`
}

// A Fact is what is known of one path, host or recipient of a call.
type Fact struct {
	Param string `json:"param"` // dotted, with the index of an element: "paths.0"
	Role  string `json:"role"`  // path, host or recipient
	// Leads is where a path leads, and the host of the page that is open. Param then is
	// "page", which is no argument.
	Leads  string `json:"leads,omitempty"`
	Inside bool   `json:"inside,omitempty"` // the workspace
	// Within is the path from the workspace's folder, if it has just one and the path
	// is inside; "." is the folder itself.
	Within string `json:"within,omitempty"`
	// Secret and RunsLater say what kind of file a path names, and Doubt why programs
	// could take the value for another; empty if not.
	Secret    string `json:"secret,omitempty"`
	RunsLater string `json:"runs_later,omitempty"`
	Doubt     string `json:"doubt,omitempty"`
	// New reports that nothing went to this host or recipient before.
	New bool `json:"new,omitempty"`
}

// leadsLike reports whether a call whose arguments are the same leads where it led when
// a was found out, in the same box. A page of which nobody knew then may be any.
func (a About) leadsLike(now About) bool {
	return (a.Box == "" || a.Box == now.Box) && slices.EqualFunc(a.Facts, now.Facts, func(x, y Fact) bool {
		if x.Role == "host" && x.Doubt != "" && x.Leads == "" {
			y.Leads, y.Doubt = x.Leads, x.Doubt
		}
		x.New, y.New = false, false
		x.Within, y.Within = "", "" // Leads says it, also in what older releases stored
		return x == y
	})
}

// Calls returns the items, each with its own tool and decision. A request that an
// older release stored has these once, for all of its items.
func (r Request) Calls() []Item {
	all := slices.Clone(r.Items)
	for i := range all {
		if all[i].Tool == "" {
			all[i].Server, all[i].Tool, all[i].Script = r.Server, r.Tool, r.Script
		}
		if all[i].Decision.Disposition == 0 {
			all[i].Decision = r.Decision
		}
	}
	return all
}

// Scripts returns the names in scripts of the request's tools, each once, in the
// order of their first calls.
func (r Request) Scripts() []string { return r.each(func(i Item) string { return i.Script }) }

// Servers returns the servers of the request's tools, in the same way.
func (r Request) Servers() []string { return r.each(func(i Item) string { return i.Server }) }

// Paths returns the tools as policy matches them, in the same way.
func (r Request) Paths() []string { return r.each(Item.Path) }

func (r Request) each(of func(Item) string) (all []string) {
	for _, i := range r.Calls() {
		if one := of(i); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// NeedsApprover reports whether only somebody who proves who they are may
// approve: on the page, in the terminal or through the API.
func (r Request) NeedsApprover() bool {
	return r.Decision.Manual || r.NeedsAnother()
}

// NeedsAnother reports whether somebody other than the requester must approve.
func (r Request) NeedsAnother() bool { return r.Separate || len(r.Decision.Quorums) > 0 }

// ConfigurationID is the id of the configuration that asks.
func (r Request) ConfigurationID() string { return r.Items[0].Key.Configuration }

// SameCalls reports whether two requests are about the same calls with the
// same arguments, of whatever run and session.
func (r Request) SameCalls(o Request) bool {
	return slices.EqualFunc(r.Items, o.Items, func(a, b Item) bool {
		x, y := a.Key, b.Key
		x.Session, y.Session = "", ""
		return x == y
	})
}

// session returns the session that the request comes from.
func (r Request) session() string { return r.Items[0].Key.Session }

// Path is the tool's name as policy matches it.
func (i Item) Path() string {
	if i.Server == "" {
		return i.Tool
	}
	return i.Server + "__" + i.Tool
}

// Digest returns the digest of everything that an approval would cover. A
// verdict must carry the digest of the request that the person saw.
func (r Request) Digest() canon.Digest {
	h := sha256.New()
	for _, i := range r.Items {
		fmt.Fprintf(h, "%d %q %q %q %q %q %q %q %q %s\n", i.Call, i.Key.Configuration, i.Key.Identity, i.Key.Session, i.Key.Profile, i.Key.Server, i.Key.Tool, i.Key.Definition, i.Key.Revision, i.Key.Args)
		if i.Cover.Offered() { // a wider yes is for what the person saw of it
			fmt.Fprintf(h, "%q %t %t %t %q\n", i.Cover.Kind, i.Cover.Across, i.Cover.Shared, i.Cover.RunOnly, i.Cover.Free)
			for _, b := range i.Cover.Bound { // not in words, which are cut
				fmt.Fprintf(h, "%q %q %q\n", b.Param, string(b.Kind), b.Value)
			}
		}
	}
	return canon.Digest(h.Sum(nil))
}

// Bounds on how much of the arguments a request holds, unless a rule sets others:
// as much as anybody would read.
const (
	shownBytes   = 128 << 10
	shownString  = 100_000
	shownMembers = 10_000
	shownDepth   = 32
)

// DisplayArgs returns the arguments of a call with decision d, for the person who
// is asked about it.
func DisplayArgs(d profiles.Decision, args canon.Args) canon.Shown {
	o := canon.DisplayOptions{Hidden: d.Hidden, MaxString: shownString, MaxArray: shownMembers, MaxObject: shownMembers, MaxDepth: shownDepth, MaxBytes: shownBytes}
	for _, bound := range []struct {
		field *int
		most  int
	}{{&o.MaxString, d.Display.MaxString}, {&o.MaxArray, d.Display.MaxArray}, {&o.MaxObject, d.Display.MaxObject}, {&o.MaxDepth, d.Display.MaxDepth}} {
		if bound.most != 0 {
			*bound.field = bound.most
		}
	}
	return canon.Display(args, o)
}
