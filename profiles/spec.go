package profiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"
)

// A Spec is the `evaluation` section of the configuration, decoded but not yet
// checked. Its zero value is a configuration without that section.
//
// The types below are plain: a pointer is an optional value, a nil list is an
// absent one (an empty allowlist is not absent: it lets nothing through), and words
// of a closed set (`action`, `risk`, ...) are strings, so that [Parse] can
// report all mistakes at once, each with a hint. What a strict decoder can
// see by reflection alone (unknown keys, wrong case, duplicates, null) is the
// decoder's business; the types that are not plain ([When], [Patience],
// [Observe], [Duration], [Size]) decode themselves, as strictly.
//
// A [Problem] names the value at fault by a JSON pointer that starts at this
// section, so a reader of the file puts the section's own pointer in front
// and looks the position up.
type Spec struct {
	// Enabled is the master switch, on unless it is false.
	Enabled *bool `json:"enabled,omitempty"`
	// DefaultProfile binds the base eval tool; without it that tool is
	// unrestricted.
	DefaultProfile *string `json:"defaultProfile,omitempty"`
	// Timeout is how long a person may take, unless something more specific sets
	// it; 300 s unless set.
	Timeout *Duration `json:"timeout,omitempty"`
	// PausedFor replaces the time-outs once a run is paused; 168 h unless set.
	PausedFor *Duration `json:"pausedFor,omitempty"`
	// ClientPatience is how long a call may wait before it is answered with the
	// paused run's id; 50 s unless set.
	ClientPatience *Patience `json:"clientPatience,omitempty"`
	// Risk says what a risk means.
	Risk *RiskSpec `json:"risk,omitempty"`
	// Profiles are the profiles by name.
	Profiles map[string]*ProfileSpec `json:"profiles,omitempty"`
}

// A ProfileSpec is one profile as written.
type ProfileSpec struct {
	// Extends names the profile that this one adds to.
	Extends *string `json:"extends,omitempty"`
	// Allowlist, Denylist and Asklist are globs over server__tool.
	Allowlist []string `json:"allowlist,omitempty"`
	Denylist  []string `json:"denylist,omitempty"`
	Asklist   []string `json:"asklist,omitempty"`
	// Default is what happens to a call that no list and no rule names: allow
	// (unless set), ask, deny, or risk.
	Default *string `json:"default,omitempty"`
	// ElicitationFallback is what becomes of a question that the client cannot
	// ask: deny (unless set), allow, or queue.
	ElicitationFallback *string `json:"elicitationFallback,omitempty"`
	// Rules match tools and arguments; their order has no meaning.
	Rules []RuleSpec `json:"rules,omitempty"`
	// Flows say what was read where may not go where; their order has no meaning.
	Flows []FlowSpec `json:"flows,omitempty"`
	// Timeout is the profile's own time to answer.
	Timeout *Duration `json:"timeout,omitempty"`
	// Risk overrides the table of the section for this profile.
	Risk *RiskTable `json:"risk,omitempty"`
	// Limits tighten the limits of the configuration.
	Limits *Limits `json:"limits,omitempty"`
	// Observe puts the profile on trial, or some of its lists.
	Observe *Observe `json:"observe,omitempty"`
}

// A RuleSpec is one rule as written.
type RuleSpec struct {
	// Name is the rule's name in reasons; its place in the list unless set.
	Name *string `json:"name,omitempty"`
	// Tools are globs over server__tool; at least one, unless the rule says what its
	// calls mean.
	Tools []string `json:"tools,omitempty"`
	// Effects, Where, Paths, Hosts, Recipients, Commands and Net say what the calls
	// mean, each as a list of words (and of globs, for the four in the middle) of
	// which one must fit every value of the call. They are undecided for a tool
	// that nobody has said this of. See [Meaning].
	Effects    []string `json:"effects,omitempty"`
	Where      []string `json:"where,omitempty"`
	Paths      []string `json:"paths,omitempty"`
	Hosts      []string `json:"hosts,omitempty"`
	Recipients []string `json:"recipients,omitempty"`
	Commands   []string `json:"commands,omitempty"`
	Net        []string `json:"net,omitempty"`
	// Known says whether what the calls mean must be known, so that the keys above can
	// be decided, or must not be.
	Known *bool `json:"known,omitempty"`
	// When is the condition over the call; without one the rule matches
	// every call of its tools.
	When *When `json:"when,omitempty"`
	// Action is one of allow, notify, ask, manual, deny. A rule without one decides
	// nothing and only contributes the settings below.
	Action *string `json:"action,omitempty"`
	// Risk is one of low, medium, high, critical.
	Risk *string `json:"risk,omitempty"`
	// Repeatable says whether a call may be made twice without harm. One rule that
	// says no is enough to make it unrepeatable.
	Repeatable *bool `json:"repeatable,omitempty"`
	// Reason is a sentence for the person who is asked and for the script
	// that is refused.
	Reason *string `json:"reason,omitempty"`
	// Timeout, Remember, RequireReason and Quorum override the settings of the risk.
	Timeout       *Duration   `json:"timeout,omitempty"`
	Remember      *bool       `json:"remember,omitempty"`
	RequireReason *bool       `json:"requireReason,omitempty"`
	Quorum        *QuorumSpec `json:"quorum,omitempty"`
	// Check are expressions that must hold before the call is sent.
	Check []string `json:"check,omitempty"`
	// Hidden are argument keys to hide on display, besides the default ones.
	Hidden Hidden `json:"hidden,omitempty"`
	// Display cuts the arguments shorter on display than is usual.
	Display *DisplaySpec `json:"display,omitempty"`
	// Examples are run when the configuration is loaded.
	Examples *ExamplesSpec `json:"examples,omitempty"`
	// Observe puts the rule on trial: see [Observe].
	Observe *bool `json:"observe,omitempty"`
}

// A DisplaySpec bounds how much of the arguments a person is shown; each bound is
// above zero if set.
type DisplaySpec struct {
	MaxString *int `json:"maxString,omitempty"`
	MaxArray  *int `json:"maxArray,omitempty"`
	MaxObject *int `json:"maxObject,omitempty"`
	MaxDepth  *int `json:"maxDepth,omitempty"`
}

// An ExamplesSpec lists calls that a rule must, and must not, apply to.
type ExamplesSpec struct {
	Match   []ExampleSpec `json:"match,omitempty"`
	NoMatch []ExampleSpec `json:"noMatch,omitempty"`
}

// An ExampleSpec is one call. Tool may be left out when the rule names one
// tool without wildcards.
type ExampleSpec struct {
	Tool *string         `json:"tool,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
}

// A RiskSpec is `evaluation.risk`.
type RiskSpec struct {
	// Unknown is the risk of a tool about which nothing is known; high unless set.
	Unknown  *string         `json:"unknown,omitempty"`
	Low      *RiskPolicySpec `json:"low,omitempty"`
	Medium   *RiskPolicySpec `json:"medium,omitempty"`
	High     *RiskPolicySpec `json:"high,omitempty"`
	Critical *RiskPolicySpec `json:"critical,omitempty"`
}

// A RiskTable is `risk` of a profile.
type RiskTable struct {
	Low      *RiskPolicySpec `json:"low,omitempty"`
	Medium   *RiskPolicySpec `json:"medium,omitempty"`
	High     *RiskPolicySpec `json:"high,omitempty"`
	Critical *RiskPolicySpec `json:"critical,omitempty"`
}

// A RiskPolicySpec says how people are asked at one risk.
type RiskPolicySpec struct {
	Timeout       *Duration   `json:"timeout,omitempty"`
	Remember      *bool       `json:"remember,omitempty"`
	RequireReason *bool       `json:"requireReason,omitempty"`
	Quorum        *QuorumSpec `json:"quorum,omitempty"`
}

// A QuorumSpec demands more than one approval.
type QuorumSpec struct {
	// Need is the number of different people who must agree; at least 1.
	Need *int `json:"need,omitempty"`
	// Of are the approvers or roles that count; empty means all.
	Of []string `json:"of,omitempty"`
	// InOrder asks them one after the other, as listed in Of.
	InOrder *bool `json:"inOrder,omitempty"`
}

// Limits are the limits of one run, each nil if the profile does not set it.
// A limit can only tighten what the configuration grants elsewhere.
type Limits struct {
	// CPU is the script's own CPU time.
	CPU *Duration `json:"cpu,omitempty"`
	// Call is the time for one upstream call.
	Call *Duration `json:"call,omitempty"`
	// Heap is the worker's heap.
	Heap *Size `json:"heap,omitempty"`
	// Calls bounds the calls of a run, Parallel those under way at the same time.
	Calls    *int `json:"calls,omitempty"`
	Parallel *int `json:"parallel,omitempty"`
	// Source, Input, Logs and Result are the sizes of the script, its input,
	// its captured console, and what it returns to the model.
	Source *Size `json:"source,omitempty"`
	Input  *Size `json:"input,omitempty"`
	Logs   *Size `json:"logs,omitempty"`
	Result *Size `json:"result,omitempty"`
	// Reply is the size of one upstream reply.
	Reply *Size `json:"reply,omitempty"`
}

// A Duration is written as in Go: "90s", "2m", "1h30m".
type Duration time.Duration

// UnmarshalText reads the written form. Zero and negative values are read,
// and refused by [Parse] where they make no sense.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s, 2m or 1h30m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is the written form.
func (d Duration) String() string { return time.Duration(d).String() }

// A Size is a number of bytes, written "512B", "64KB", "16MB" or "1GB", with
// 1 KB = 1,024 bytes.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}}

// UnmarshalText reads the written form.
func (s *Size) UnmarshalText(text []byte) error {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(string(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n > (1<<62)/u.bytes || n < -(1<<62)/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 64KB or 16MB", text)
}

// MarshalText writes the form that UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is the written form, in the largest unit that needs no fraction.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return "0B"
}

// A When is a rule's condition: an expression (CEL), or a list of plain
// parameter tests which must all hold. Exactly one of the two is set.
type When struct {
	Expr   string
	Params []ParamSpec
}

// A ParamSpec is the plain form of a condition.
type ParamSpec struct {
	// Param is a dotted path into the arguments; a backslash escapes a dot. An array
	// on the way stands for each of its elements.
	Param string `json:"param"`
	// Matches is a regular expression (RE2) over the string found there.
	Matches string `json:"matches"`
}

// UnmarshalJSON reads a string or a list of {"param", "matches"}.
func (w *When) UnmarshalJSON(text []byte) error {
	*w = When{}
	switch d := newStrict(text); first(text) {
	case '"':
		return d.value(&w.Expr)
	case '[':
		w.Params = []ParamSpec{}
		return d.list(func(i int) error {
			var p ParamSpec
			seen := map[string]bool{}
			err := d.object(func(key string) error {
				seen[key] = true
				switch key {
				case "param":
					return d.text(&p.Param)
				case "matches":
					return d.text(&p.Matches)
				}
				return fmt.Errorf("unknown key %q, want param and matches", key)
			})
			for _, key := range []string{"param", "matches"} {
				if err == nil && !seen[key] {
					err = fmt.Errorf("%q is missing", key)
				}
			}
			if err != nil {
				return fmt.Errorf("test %d: %w", i+1, err)
			}
			w.Params = append(w.Params, p)
			return nil
		})
	}
	return errors.New(`want an expression, or a list of {"param": ..., "matches": ...}`)
}

// MarshalJSON writes the form that UnmarshalJSON reads. It leaves it to the encoder around it
// whether "&&" is escaped.
func (w When) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	var err error
	if w.Params != nil {
		err = e.Encode(w.Params)
	} else {
		err = e.Encode(w.Expr)
	}
	return text.Bytes(), err
}

// Hidden are argument keys to hide, each with the text to show instead of the
// value; empty means the default text.
type Hidden map[string]string

// addTo adds h to all. If a key has two texts, the choice between them is always
// the same.
func (h Hidden) addTo(all map[string]string) map[string]string {
	for key, shown := range h {
		if all == nil {
			all = map[string]string{}
		}
		if have, ok := all[key]; !ok || have == "" || shown != "" && shown < have {
			all[key] = shown
		}
	}
	return all
}

// UnmarshalJSON reads a list of keys, or an object of keys and texts.
func (h *Hidden) UnmarshalJSON(text []byte) error {
	*h = Hidden{}
	switch d := newStrict(text); first(text) {
	case '[':
		return d.list(func(int) error {
			var key string
			err := d.text(&key)
			(*h)[key] = ""
			return err
		})
	case '{':
		return d.object(func(key string) error {
			var shown string
			err := d.text(&shown)
			(*h)[key] = shown
			return err
		})
	}
	return errors.New(`want a list of keys, or keys with the text to show such as {"ssn": "[number]"}`)
}

// Patience is how long clients wait for an answer: one duration, or durations
// by client name with "default" for the others.
type Patience struct {
	Default *Duration
	Clients map[string]Duration
}

// UnmarshalJSON reads a string or an object of strings.
func (p *Patience) UnmarshalJSON(text []byte) error {
	*p = Patience{}
	switch d := newStrict(text); first(text) {
	case '"':
		p.Default = new(Duration)
		return d.value(p.Default)
	case '{':
		p.Clients = map[string]Duration{}
		return d.object(func(client string) error {
			var v Duration
			var s string
			if err := d.text(&s); err != nil {
				return fmt.Errorf("%s: %w", client, err)
			}
			if err := v.UnmarshalText([]byte(s)); err != nil {
				return fmt.Errorf("%s: %w", client, err)
			}
			if client == "default" {
				p.Default = &v
			} else {
				p.Clients[client] = v
			}
			return nil
		})
	}
	return errors.New(`want a duration, or durations by client name such as {"default": "50s", "claude-code": "10m"}`)
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (p Patience) MarshalJSON() ([]byte, error) {
	if p.Clients == nil && p.Default != nil {
		return json.Marshal(p.Default)
	}
	all := map[string]Duration{}
	for client, v := range p.Clients {
		all[client] = v
	}
	if p.Default != nil {
		all["default"] = *p.Default
	}
	return json.Marshal(all)
}

// first returns the first byte of a JSON text after white space.
func first(text []byte) byte {
	if t := bytes.TrimLeft(text, " \t\r\n"); len(t) > 0 {
		return t[0]
	}
	return 0
}

// strict reads JSON and refuses two things that encoding/json accepts silently:
// duplicate keys, and null where a value should be.
type strict struct{ *json.Decoder }

func newStrict(text []byte) strict { return strict{json.NewDecoder(bytes.NewReader(text))} }

// value decodes the whole text into v.
func (d strict) value(v any) error {
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}

// text reads a string.
func (d strict) text(s *string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	v, ok := t.(string)
	if !ok {
		return errors.New("want a string")
	}
	*s = v
	return nil
}

// object reads an object, calling f with each key to read its value.
func (d strict) object(f func(key string) error) error {
	if t, err := d.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return errors.New("want an object")
	}
	seen := map[string]bool{}
	for d.More() {
		var key string
		if err := d.text(&key); err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("duplicate key %q", key)
		}
		seen[key] = true
		if err := f(key); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// list reads a list, calling f to read each element.
func (d strict) list(f func(i int) error) error {
	if _, err := d.Token(); err != nil {
		return err
	}
	for i := 0; d.More(); i++ {
		if err := f(i); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
