package approval

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
)

// A Cover says what wider answers to a call would cover: which calls are like it.
// The gate makes it; the zero value offers none.
//
// What is bound must be the same in a further call, and what is free may differ. A
// call that has an argument that is neither is not covered.
type Cover struct {
	// Kind says which calls are alike, as in a sentence: "write", or a tool's name,
	// "add_issue_comment". Only calls of one server can be alike, unless they are Shared.
	Kind string `json:"kind,omitempty"`
	// Across reports that Kind is no tool's name: calls of several tools are alike.
	Across bool `json:"across,omitempty"`
	// Shared reports that calls of other servers are alike too if they are Shared
	// and bound to nothing but the folder: both write in the workspace, and nowhere else.
	Shared bool     `json:"shared,omitempty"`
	Bound  []Bound  `json:"bound,omitempty"` // what must be as it is, in order of weight
	Free   []string `json:"free,omitempty"`  // the arguments that may differ
	// RunOnly reports that a wider answer is for the calls of one run, up to a number:
	// what they change is elsewhere.
	RunOnly bool   `json:"run_only,omitempty"`
	None    string `json:"none,omitempty"` // why no wider answer is offered; empty if one is
}

// A Bound is one thing that must be as it is.
type Bound struct {
	Param string    `json:"param"` // the argument or role as a person reads it: "owner", "folder", "host"
	Kind  BoundKind `json:"kind"`
	Value string    `json:"value"` // canonical
}

// A BoundKind says how a value is compared with a bound.
type BoundKind string

// The kinds of bounds.
const (
	Exact       BoundKind = "exact"
	UnderFolder BoundKind = "under_folder" // the folder itself, or what is in it
	AtHost      BoundKind = "at_host"
	ToRecipient BoundKind = "to_recipient"
	// Mentions is a host that a free text of the call names. A further call may name
	// fewer, and no others.
	Mentions BoundKind = "mentions"
)

// Offered reports whether a wider answer is offered.
func (c Cover) Offered() bool { return c.None == "" && c.Kind != "" }

// at returns the parameter with the hosts that c is bound to, and whether there is just
// one. Several hosts of one parameter are those that a further call may name.
func (c Cover) at() (param string, one bool) {
	for _, b := range c.Bound {
		if b.Kind != AtHost {
			continue
		}
		if one && b.Param != param {
			return "", false
		}
		param, one = b.Param, true
	}
	return param, one
}

// elsewhere returns what a yes that covers c covers at other servers: what is bound to
// the same folder, and to nothing else.
func (c Cover) elsewhere() Cover {
	if !c.Shared {
		return Cover{}
	}
	c.Bound = slices.DeleteFunc(slices.Clone(c.Bound), func(b Bound) bool { return b.Kind != UnderFolder })
	return c
}

// covers says why a yes that covers c does not cover the call whose own cover is
// one; empty if it does. Both must be of one server, or c be what it covers elsewhere.
func (c Cover) covers(one Cover) (why string) {
	switch {
	case !c.Offered():
		return "nothing further is covered"
	case !one.Offered():
		return "no yes covers it: " + one.None
	case one.Kind != c.Kind || one.Across != c.Across || one.Shared != c.Shared:
		return "it is another kind of call"
	}
	for _, b := range one.Bound {
		if !slices.ContainsFunc(c.Bound, func(had Bound) bool { return had.holds(b) }) {
			return b.Param + " is another one"
		}
	}
	for _, had := range c.Bound {
		same := had.holds
		if had.Kind == AtHost { // one of the hosts: it is, as was seen above
			same = func(b Bound) bool { return b.Kind == AtHost && b.Param == had.Param }
		}
		if had.Kind != Mentions && !slices.ContainsFunc(one.Bound, same) {
			return had.Param + " is another one"
		}
	}
	for _, name := range one.Free {
		if !slices.Contains(c.Free, name) {
			return name + " is a further argument"
		}
	}
	return ""
}

// holds reports whether a bound of a further call is within b.
func (b Bound) holds(one Bound) bool {
	switch {
	case b.Param != one.Param || b.Kind != one.Kind:
		return false
	case b.Kind == UnderFolder:
		return inFolder(b.Value, one.Value)
	case b.Kind == Exact, b.Kind == AtHost, b.Kind == ToRecipient, b.Kind == Mentions:
		return b.Value == one.Value
	default:
		return false // of a newer release
	}
}

// inFolder reports whether a folder is another one or in it. Both are absolute and
// clean, with the separators of this machine.
func inFolder(folder, other string) bool {
	if folder == "" || other == "" {
		return false
	}
	rest, ok := strings.CutPrefix(other, folder)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\' || strings.HasSuffix(folder, "/") || strings.HasSuffix(folder, `\`))
}

// with returns the cover of two calls that are asked about together; false if
// they are not alike. What only one of them leaves free is free, since both are
// shown, and a further call may go to any host of either.
func (c Cover) with(one Cover) (Cover, bool) {
	all := c
	all.Bound, all.Free = slices.Clone(c.Bound), slices.Clone(c.Free)
	had, hosts := c.at()
	its, also := one.at()
	hosts = hosts && also && had == its
	for _, b := range one.Bound {
		switch {
		case slices.Contains(all.Bound, b):
		case b.Kind == Mentions:
			all.Bound = append(all.Bound, b)
		case hosts && b.Kind == AtHost:
			first := slices.IndexFunc(all.Bound, func(b Bound) bool { return b.Kind == AtHost })
			for first < len(all.Bound) && all.Bound[first].Kind == AtHost {
				first++
			}
			all.Bound = slices.Insert(all.Bound, first, b)
		}
	}
	for _, name := range one.Free {
		if !slices.Contains(all.Free, name) {
			all.Free = append(all.Free, name)
		}
	}
	return all, c.Offered() && one.Offered() && c.Kind == one.Kind && c.Across == one.Across && c.Shared == one.Shared && slices.Equal(c.exact(hosts), one.exact(hosts)) && len(all.Bound) <= maxBound
}

// maxBound bounds what the cover of several calls binds: more hosts nobody would read.
const maxBound = 20

// leaves reports whether calls that are covered give something to others, so that none
// is covered that has what another server answered.
func (c Cover) leaves() bool {
	return slices.ContainsFunc(c.Bound, func(b Bound) bool { return b.Kind == AtHost || b.Kind == ToRecipient || b.Kind == Mentions })
}

// exact returns the bounds that every further call must have, but for hosts if it may
// be one of several.
func (c Cover) exact(hosts bool) []Bound {
	return slices.DeleteFunc(slices.Clone(c.Bound), func(b Bound) bool { return b.Kind == Mentions || hosts && b.Kind == AtHost })
}

// maxBoundShown bounds a bound's value in words, in runes. Longer ones are shown as
// arguments anyway.
const maxBoundShown = 60

// plainValue matches what cannot be read as a part of our own sentence, and
// plainInDialog what no reader of Markdown changes besides: a word, or a path of words.
var (
	plainValue    = regexp.MustCompile(`^[A-Za-z0-9._/@:-]+$`)
	plainInDialog = regexp.MustCompile(`^/?[A-Za-z0-9]+([_/-][A-Za-z0-9]+)*$`)
)

// QueryOf begins the role of an address's query in a bound.
const QueryOf = "query of "

// A quoting writes values and names of somebody else in a sentence of ours: in quotes,
// unless they are plain.
type quoting struct {
	dialog bool // for a dialog, whose client may render Markdown: quotes are in code spans
	most   int  // the runes of each, if not 0; what is longer is cut
}

func (q quoting) text(text string) string {
	head, rest := q.cut(text)
	shown, plain := canon.Escape(head), plainValue
	if q.dialog {
		plain = plainInDialog
	}
	if plain.MatchString(shown) {
		return shown + rest
	}
	return q.inQuotes(shown) + rest
}

// exact writes a value that is bound as it is. A text that would read as JSON of another
// kind is JSON there, and keeps its quotes.
func (q quoting) exact(value string) string {
	var text string
	if !strings.HasPrefix(value, `"`) || json.Unmarshal([]byte(value), &text) != nil {
		return q.text(value)
	}
	head, rest := q.cut(text)
	return q.inQuotes(canon.Escape(head)) + rest
}

func (q quoting) inQuotes(shown string) string {
	if q.dialog {
		return canon.Span(canon.Literal(shown))
	}
	return canon.Literal(shown)
}

// cut returns the beginning of a text that is too long, and the mark behind it.
func (q quoting) cut(text string) (head, mark string) {
	if q.most > 0 && utf8.RuneCountInString(text) > q.most {
		return string([]rune(text)[:q.most]), "…"
	}
	return text, ""
}

// String says what the bound holds on to, as in "under /work/app" or "owner acme".
func (b Bound) String() string { return b.words(quoting{}) }

func (b Bound) words(write quoting) string {
	value, param := write.text(b.Value), write.text(b.Param)
	if b.Kind == Exact {
		value = write.exact(b.Value)
	}
	if name, ok := strings.CutPrefix(b.Param, QueryOf); ok {
		param = QueryOf + write.text(name)
	}
	if len([]rune(canon.Escape(b.Value))) > maxBoundShown && b.Kind != UnderFolder {
		return param + " as it is"
	}
	switch b.Kind {
	case UnderFolder:
		if b.Param == "folder" {
			return "under " + value
		}
		return param + " under " + value
	case AtHost:
		return "at " + value
	case ToRecipient:
		return "to " + value
	case Mentions:
		return "naming " + value
	default:
		return param + " " + value
	}
}

// Where says in a few words what a wider yes is limited to: "under /work/app", "to
// ann@example.com", "owner acme, repo web".
func (c Cover) Where() string { return c.where(quoting{}) }

func (c Cover) where(write quoting) string {
	var parts []string
	for n, b := range c.Bound {
		switch {
		case b.Kind == Mentions:
		case b.Kind == AtHost && n > 0 && c.Bound[n-1].Kind == AtHost && c.Bound[n-1].Param == b.Param:
			parts[len(parts)-1] += " or " + strings.TrimPrefix(b.words(write), "at ")
		default:
			parts = append(parts, b.words(write))
		}
	}
	where := strings.Join(parts, ", ")
	if c.Shared && len(parts) == 1 {
		where += " by any known server"
	}
	return where
}

// String says what a wider yes binds and what it leaves free, as in
// "add_issue_comment with owner acme, repo web; any body, issue_number".
func (c Cover) String() string { return c.words(quoting{}) }

func (c Cover) words(write quoting) string {
	switch {
	case c.Kind == "":
		return ""
	case c.None != "":
		return "this call only: " + c.None
	}
	text := write.text(c.Kind)
	if where := c.where(write); where != "" && c.exact(false)[0].Kind == Exact {
		text += " with " + where
	} else if where != "" {
		text += " " + where
	}
	var names []string
	for _, b := range c.Bound {
		if b.Kind == Mentions {
			names = append(names, write.text(b.Value))
		}
	}
	free := make([]string, len(c.Free))
	for i, name := range c.Free {
		free[i] = write.text(name)
	}
	folder := slices.ContainsFunc(c.Bound, func(b Bound) bool { return b.Kind == UnderFolder || b.Kind == AtHost })
	switch {
	case c.Across && c.Kind == "read" && !folder:
		text += "; anything in it"
	case c.Across && c.Kind == "read":
		text += "; any path there"
	case len(free) > 0 && len(names) > 0:
		text += fmt.Sprintf("; any %s that names no host but %s", strings.Join(free, ", "), strings.Join(names, ", "))
	case len(free) > 0:
		text += "; any " + strings.Join(free, ", ")
	case folder:
		text += "; any path there"
	default:
		text += "; nothing may differ"
	}
	if others := c.elsewhere(); c.Shared && len(others.Bound) < len(c.Bound) {
		text += "; or " + others.where(write)
	}
	return text
}
