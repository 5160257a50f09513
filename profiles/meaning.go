package profiles

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A Meaning is what a call means: what it does, where, and to whom. The file of a
// known server says so for each tool, and the gate adds what it knows of this
// machine. Package profiles decides from these facts and finds none itself.
type Meaning struct {
	// Accepted reports that somebody verified the facts and that the person who
	// runs the bridge accepted them for this server. Facts that nobody accepted can
	// raise the risk, and do nothing else.
	Accepted bool
	// Effects are what the call does: words of the file, such as read and send.
	Effects []string
	// Where is the place of the tool: workspace (where its paths say), local (a store
	// of the server's own) or remote.
	Where string
	// Net is none, fixed (the server's own endpoint) or chosen.
	Net        string
	Paths      []PathFact
	Hosts      []HostFact
	Recipients []RecipientFact
	Commands   []string
	// Spends reports whether an amount of money is among the arguments.
	Spends bool
	// Within reports that the system keeps its server to the workspace, whatever it tries:
	// it reads and changes nothing else on this machine.
	Within bool
	// Here reports that the system keeps its server from reaching any other machine.
	Here bool
	// Orders reports that what is pressed on a page says that something is bought or
	// booked by it.
	Orders bool
	// Carries are the arguments with something that should not leave this machine
	// unseen: a secret, or what another server answered.
	Carries []CarriedFact
	// Unknown are the arguments whose role nobody knows.
	Unknown []string
	// Repeatable reports that the call may be made twice.
	Repeatable bool
	// Triggers reports that the code which the call runs is what somebody has set up to
	// run at such a change, such as the hooks of a repository and the CI of what is
	// pushed to it: the call brings none that would run, and goes nowhere new.
	Triggers bool
}

// A PathFact is where one path of a call leads.
type PathFact struct {
	Param string // where it stands in the arguments
	// Path is absolute with links followed; as the call has it if that is not known.
	Path string
	// Inside reports that it is in the workspace. What is secret or runs later is
	// never taken for inside.
	Inside bool
	// Secret and RunsLater say what kind of file it names; empty if neither.
	Secret, RunsLater string
	// Doubt says why programs could take it for another path; empty if not.
	Doubt string
}

// outside reports whether the path counts as outside the workspace for a call with
// these effects.
func (p PathFact) outside(effects []string) bool {
	return !p.Inside || p.Secret != "" || p.Doubt != "" || p.RunsLater != "" && changes(effects)
}

// A HostFact is one host that a call names.
type HostFact struct {
	Param string
	// Name is the host in lower case; empty if programs could take the address for
	// another one, as Doubt says.
	Name  string
	Doubt string
	// New reports that no person approved a call to it before, in this session.
	New bool
	// Bare reports that the address says where, and nothing else that could matter there
	// or be carried away in it, and looks like no other: see [HostNamed].
	Bare bool
	// Beyond reports that the call may reach more than this host, as a page in a
	// browser does, or that another machine looks the name up: it is not localhost,
	// whatever its name.
	Beyond bool
}

// local reports whether the host is this machine, and the call reaches nothing else.
func (h HostFact) local() bool { return !h.Beyond && local(h.Name) }

// A RecipientFact is one recipient that a call names. New is as of a [HostFact].
type RecipientFact struct {
	Param, Name string
	New         bool
	// Member reports that what the call changes is only given to them where they work
	// already, as an issue is to whom it is assigned: no message goes to them.
	Member bool
}

// A CarriedFact is one argument that carries something out.
type CarriedFact struct {
	Param  string
	What   string // "a secret", or "what mail answered"
	Secret bool
}

// known reports whether it is known what the call means: the rules about meaning can
// be decided.
func (c *Call) known() bool {
	return c.Meaning != nil && c.Meaning.Accepted && len(c.Meaning.Unknown) == 0 && c.Changed == ""
}

// Leaves reports whether what the call is given leaves this machine.
func (m *Meaning) Leaves() bool { return m.Where == "remote" || m.Net == "fixed" || m.Net == "chosen" }

// carriesOut says what the call carries away from this machine, and whether that is a
// secret; empty if nothing.
func (m *Meaning) carriesOut() (out string, secret bool) {
	if m == nil || !m.Leaves() {
		return "", false
	}
	for _, c := range m.Carries {
		if out == "" || c.Secret {
			out, secret = c.Param+" carries "+c.What, c.Secret
		}
	}
	return out, secret
}

// changes reports whether effects are more than reading.
func changes(effects []string) bool {
	return len(effects) == 0 || slices.ContainsFunc(effects, func(e string) bool { return e != "read" })
}

// The words of rules about meaning.
var (
	effectWords = []string{"read", "write", "delete", "execute", "send", "spend"}
	whereWords  = []string{"workspace", "outside", "local", "remote"}
	netWords    = []string{"none", "fixed", "chosen"}
	pathWords   = []string{"workspace", "outside", "secret", "runs-later"}
	hostWords   = []string{"new", "localhost", "beyond"}
)

// A meaningTest is one key of a rule about meaning, such as "effects": the call
// has several values there, or one, or none.
type meaningTest struct {
	key   string
	words []string
	globs []pattern // for keys that take patterns
}

// eval decides the test. If all values fit it is true, if none does it is false, and
// if only some do it is undecided, so that "any" is enough to deny and only "all"
// allows. A call without such a value does not match; one of which too little is
// known is undecided.
func (m *meaningTest) eval(f *facts) (truth, string) {
	is := f.call.Meaning
	if is == nil || !is.Accepted {
		return undecided, "nobody has said what calls of this tool mean"
	}
	values, about := m.values(is)
	result, why := no, ""
	for i, v := range values {
		t := m.fits(v)
		if i == 0 {
			result = t
			continue
		}
		if result = result.agree(t); result == undecided {
			why = "its " + about + " differ"
		}
	}
	if result == undecided && why == "" {
		why = "programs could disagree on its " + about
	}
	if result != undecided && len(is.Unknown) > 0 {
		return undecided, "nobody has said what the argument " + is.Unknown[0] + " means"
	}
	return result, why
}

func (m *meaningTest) reads() []nameRead { return nil }

func (m *meaningTest) needs() []string { return nil }

// open reports whether nothing but what is missing keeps the meaning of a call from being
// known.
func (g *gaps) open(call *Call) bool {
	m := call.Meaning
	switch {
	case g == nil:
		return false
	case m == nil || !m.Accepted:
		return g.Tool
	case g.Args:
		return true
	}
	return len(m.Unknown) > 0 && !slices.ContainsFunc(m.Unknown, func(param string) bool { return !slices.Contains(g.masked, param) })
}

// A knownTest is the key "known" of a rule.
type knownTest bool

func (k knownTest) eval(f *facts) (truth, string) {
	if f.call.gaps.open(f.call) {
		return undecided, maskedText
	}
	if f.call.known() == bool(k) {
		return yes, ""
	}
	return no, ""
}

func (k knownTest) reads() []nameRead { return nil }

func (k knownTest) needs() []string { return nil }

// A meaningValue is one value that a test looks at: the words that fit it, and the text
// that patterns are held against. Doubtful values fit no pattern for certain.
type meaningValue struct {
	words    []string
	text     string
	doubtful bool
}

func (m *meaningTest) values(is *Meaning) (all []meaningValue, about string) {
	switch m.key {
	case "effects":
		for _, e := range is.Effects {
			all = append(all, meaningValue{words: []string{e}})
		}
		return all, "effects"
	case "where":
		if is.Where != "workspace" {
			return []meaningValue{{words: []string{is.Where}}}, "places"
		}
		for _, p := range is.Paths {
			all = append(all, meaningValue{words: []string{side(p, is.Effects)}})
		}
		if len(all) == 0 && is.Within && !changes(is.Effects) { // what is changed may run later
			all = []meaningValue{{words: []string{"workspace"}}}
		}
		return all, "places"
	case "net":
		return []meaningValue{{words: []string{is.Net}}}, "hosts"
	case "paths":
		for _, p := range is.Paths {
			v := meaningValue{words: []string{side(p, is.Effects)}, text: p.Path, doubtful: p.Doubt != ""}
			if p.Secret != "" {
				v.words = append(v.words, "secret")
			}
			if p.RunsLater != "" {
				v.words = append(v.words, "runs-later")
			}
			all = append(all, v)
		}
		return all, "paths"
	case "hosts":
		for _, h := range is.Hosts {
			v := meaningValue{text: h.Name, doubtful: h.Doubt != ""}
			if h.New {
				v.words = append(v.words, "new")
			}
			if h.local() {
				v.words = append(v.words, "localhost")
			} else {
				v.words = append(v.words, "beyond")
			}
			all = append(all, v)
		}
		return all, "hosts"
	case "recipients":
		for _, r := range is.Recipients {
			v := meaningValue{text: strings.ToLower(r.Name)}
			if r.New {
				v.words = append(v.words, "new")
			}
			all = append(all, v)
		}
		return all, "recipients"
	default: // commands
		for _, c := range is.Commands {
			all = append(all, meaningValue{text: c, doubtful: strings.ContainsAny(c, ";|&`$<>\n\r(){}\\")})
		}
		return all, "commands"
	}
}

// side says on which side of the workspace's border a path is.
func side(p PathFact, effects []string) string {
	if p.outside(effects) {
		return "outside"
	}
	return "workspace"
}

// local reports whether a host is this machine, whoever looks it up.
func local(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback()
	}
	return host == "localhost"
}

// fits reports whether one value is among the words and patterns.
func (m *meaningTest) fits(v meaningValue) truth {
	for _, w := range v.words {
		if slices.Contains(m.words, w) {
			return yes
		}
	}
	if len(m.globs) == 0 {
		return no
	}
	if v.doubtful || len(v.text) > maxPath {
		return undecided
	}
	for i := range m.globs {
		if m.globs[i].match(v.text) {
			return yes
		}
	}
	return no
}

// anyTool is the pattern of a rule that names no tool.
var anyTool = pattern{text: "*", alternatives: []alternative{{prefix: true}}}

// meaning compiles the keys of a rule that are about meaning.
func (b *builder) meaning(at string, spec *RuleSpec) (c conjunction) {
	for _, k := range spec.meaningKeys() {
		if k.list == nil {
			continue
		}
		if len(k.list) == 0 {
			b.problem(at+"/"+k.key, "an empty list tests nothing", "leave "+k.key+" out to match every call")
			continue
		}
		test := &meaningTest{key: k.key}
		for i, text := range k.list {
			at := fmt.Sprintf("%s/%s/%d", at, k.key, i)
			switch {
			case slices.Contains(k.words, text):
				test.words = append(test.words, text)
			case !k.patterns:
				b.problem(at, fmt.Sprintf("unknown word %q, want one of %s", text, oneOf(k.words)), near(text, k.words))
			default:
				p, err := compilePattern(text)
				if err != nil {
					b.syntax(at, err)
					continue
				}
				if k.key == "paths" && !strings.HasPrefix(text, "/") && !strings.Contains(text, ":") {
					b.problem(at, fmt.Sprintf("%q is neither one of %s nor an absolute path", text, oneOf(k.words)), near(text, k.words))
				}
				test.globs = append(test.globs, p)
			}
		}
		c = append(c, test)
	}
	if spec.Known != nil {
		c = append(c, knownTest(*spec.Known))
	}
	return c
}

// A meaningKey is one of a rule's keys about meaning.
type meaningKey struct {
	key      string
	list     []string
	words    []string
	patterns bool // it also takes patterns
}

func (s *RuleSpec) meaningKeys() []meaningKey {
	return []meaningKey{
		{"effects", s.Effects, effectWords, false},
		{"where", s.Where, whereWords, false},
		{"paths", s.Paths, pathWords, true},
		{"hosts", s.Hosts, hostWords, true},
		{"recipients", s.Recipients, []string{"new"}, true},
		{"commands", s.Commands, nil, true},
		{"net", s.Net, netWords, false},
	}
}

// risk returns what is known of the risk of a call with this meaning, with the
// reason.
//
// High is for what cannot be undone, spends, runs code, names secrets, or goes to
// somebody or somewhere new. A page that is only read is medium, wherever it is, if
// its address carries nothing; and so is what merely sets off what others have set up.
func (m *Meaning) risk() Reason {
	say := func(r Risk, format string, args ...any) Reason {
		return Reason{Kind: KindRisk, Risk: r, Detail: fmt.Sprintf(format, args...)}
	}
	for _, e := range []string{"spend", "execute", "delete"} {
		if slices.Contains(m.Effects, e) && (e != "execute" || !m.Triggers) {
			return say(High, "%s", map[string]string{"spend": "it spends money", "execute": "it runs code", "delete": "what it deletes is gone"}[e])
		}
	}
	if m.Orders && changes(m.Effects) {
		return say(High, "it says that it buys or books something")
	}
	for _, p := range m.Paths {
		switch {
		case p.Secret != "":
			return say(High, "%s names %s", p.Param, p.Secret)
		case p.RunsLater != "" && changes(m.Effects):
			return say(High, "%s: %s", p.Param, p.RunsLater)
		case p.outside(m.Effects) && changes(m.Effects):
			return say(High, "%s is outside the workspace", p.Param)
		}
	}
	out, secret := m.carriesOut()
	bare := !changes(m.Effects) && out == ""
	for _, h := range m.Hosts {
		if m.Triggers {
			break // it goes where somebody has set it up to go
		}
		if h.Doubt != "" || h.New && !h.local() && !(bare && h.Bare) {
			return say(High, "%s names a host that is new here", h.Param)
		}
	}
	for _, r := range m.Recipients {
		if r.New && !r.Member && changes(m.Effects) {
			return say(High, "%s names a recipient who is new here", r.Param)
		}
	}
	switch {
	case secret:
		return say(High, "%s", out)
	case changes(m.Effects):
		return say(Medium, "it changes something")
	case len(m.Unknown) > 0:
		return say(Medium, "nobody knows what %s means here", m.Unknown[0])
	case out != "":
		return say(Medium, "%s", out)
	case slices.ContainsFunc(m.Recipients, func(r RecipientFact) bool { return r.New }):
		return say(Medium, "it reads where nobody has approved a call yet")
	case slices.ContainsFunc(m.Paths, func(p PathFact) bool { return p.outside(m.Effects) }):
		return say(Medium, "it reads outside the workspace")
	case m.Net == "chosen":
		return say(Medium, "it reaches a host that the call names")
	default:
		return say(Low, "it only reads")
	}
}
