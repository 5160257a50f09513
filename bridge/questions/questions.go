// Package questions carries the questions of an enrolled laptop up to the approvers at its
// centre, and their verdicts down.
//
// A laptop whose configuration has approvers shows its open requests to the centre, in the
// channel of package enrolment: each of its requests is signed, and each answer is for one
// request alone. The centre keeps them in its own store of requests, as those of another
// configuration, so that its page, its terminal and its API show and answer them; an answer
// is relayed to the laptop, which judges it like any other that was given elsewhere:
//
//	laptop: approval.Store ── Asking ──▶ Desk ──▶ approval.Store at the centre
//	   ◀── judge ── RelayedVerdict ◀── Answer ◀──── Settle by an approver there
//
// An Asking has the whole state: every open question, and what became of those that ended
// and of the verdicts that came down. What it does not name any more is withdrawn. The
// centre holds its answer back until there is a verdict, or for Asking.Wait.
//
// Neither side trusts what it reads. The centre shows a request only as [Lift] leaves it:
// without anything unseen, in the laptop's name, and bound to it. The laptop takes a verdict
// only on a request that it has shown, about the very calls that it has now, and from
// somebody whom its own configuration knows by the credential that they gave at the centre.
package questions

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
)

// Bounds of what a laptop may show.
const (
	MaxOpen   = 50          // questions at once, of one configuration
	maxLaptop = 4 * MaxOpen // of all of its configurations, of which it can name any number
	maxItems  = 1000        // calls of one question
	maxLeft   = 31 * 24 * time.Hour
	// MaxWait is how long the centre holds an answer back at most.
	MaxWait = 20 * time.Second
	maxText = 4000 // bytes of what somebody wrote
)

// An Asking is what a laptop says of its questions.
type Asking struct {
	Configuration string     `json:"configuration"` // the id of the one that asks
	Questions     []Question `json:"questions"`     // all that are open
	Ended         []Ended    `json:"ended,omitempty"`
	Judged        []Judged   `json:"judged,omitempty"`
	// Have are the verdicts that the laptop has and has not judged yet.
	Have []string      `json:"have,omitempty"`
	Wait time.Duration `json:"wait,omitempty"` // for a verdict, at most
}

// A Question is an open request.
type Question struct {
	ID   string        `json:"id"`
	Left time.Duration `json:"left"` // until it is denied for want of an answer
	// Request and Votes are left out if the centre has them as they are.
	Request *approval.Request  `json:"request,omitempty"`
	Votes   []approval.Verdict `json:"votes,omitempty"`
}

// An Ended is a request that is no longer open, with its verdict as others may see it.
type Ended struct {
	ID      string            `json:"id"`
	Verdict *approval.Verdict `json:"verdict,omitempty"`
}

// A Judged says what became of a verdict that came down.
type Judged struct {
	ID        string             `json:"id"`      // of the request
	Relayed   string             `json:"relayed"` // see Given
	Judgement approval.Judgement `json:"judgement"`
	Why       string             `json:"why,omitempty"`
}

// An Answer is what the centre says to an Asking.
type Answer struct {
	// Missing are the questions of which the centre wants to have the request.
	Missing  []string `json:"missing,omitempty"`
	Verdicts []Given  `json:"verdicts,omitempty"`
}

// A Given is a verdict that somebody gave at the centre.
type Given struct {
	ID      string       `json:"id"`      // of the request at the laptop
	Relayed string       `json:"relayed"` // names this verdict
	About   canon.Digest `json:"about"`   // of the request as the centre showed it
	Said    Said         `json:"verdict"`
}

// Said is what somebody may say of a request, and who they are: the fields of an
// [approval.Verdict] that are theirs to set.
type Said struct {
	Approve    bool                `json:"approve"`
	Scope      approval.Scope      `json:"scope,omitempty"`
	Count      int                 `json:"count,omitempty"`
	Forget     bool                `json:"forget,omitempty"`
	Stop       bool                `json:"stop,omitempty"`
	NoMore     bool                `json:"no_more,omitempty"`
	List       bool                `json:"list,omitempty"`
	Rows       []int               `json:"rows,omitempty"`
	Args       json.RawMessage     `json:"args,omitempty"`
	Typed      string              `json:"typed,omitempty"`
	Text       string              `json:"text,omitempty"`
	By         string              `json:"by"`
	Credential approval.Credential `json:"credential"`
	Channel    string              `json:"channel"`
}

func saidOf(v approval.Verdict) Said {
	return Said{Approve: v.Approve, Scope: v.Scope, Count: v.Count, Forget: v.Forget, Stop: v.Stop, NoMore: v.NoMore, List: v.List, Rows: v.Rows, Args: v.Args,
		Typed: v.Typed, Text: v.Text, By: v.By, Credential: v.Credential, Channel: v.Channel}
}

// verdict returns what was said as a verdict given at a time. It is always one of somebody
// who has to prove who they are, so that it counts for nothing without a credential.
func (s Said) verdict(now time.Time) approval.Verdict {
	v := approval.Verdict{Approve: s.Approve, Scope: s.Scope, Count: s.Count, Forget: s.Forget, Stop: s.Stop, NoMore: s.NoMore, List: s.List, Rows: s.Rows, Args: s.Args,
		Typed: s.Typed, Text: s.Text, By: s.By, Credential: s.Credential, Channel: s.Channel, Strong: true, Time: now}
	if !v.Approve {
		v.Reason = approval.Declined
	}
	if !slices.Contains([]string{"page", "terminal", "api"}, v.Channel) {
		v.Channel = "api"
	}
	return v
}

// A Sender is who asks: a laptop, as the centre knows it.
type Sender struct {
	Laptop string // the name that the centre gave it
	Person string
}

// bridge names the sender's bridges with one configuration, as the process that asks.
func (s Sender) bridge(configuration string) string {
	sum := sha256.Sum256([]byte(configuration))
	return bridgesOf(s.Laptop) + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// bridgesOf begins the names of all bridges of a laptop.
func bridgesOf(laptop string) string { return approval.Afar + laptop + " " }

// idPattern is what the id of a request may be.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,40}$`)

// idAt is the id at the centre of a request of a bridge: short, since people type it.
func idAt(bridge, id string) string {
	sum := sha256.Sum256([]byte(bridge + "\n" + id))
	return "q" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:12])
}

// Lift returns a laptop's request as the centre shows it. The laptop makes the same of its
// own request, to compare what a verdict is about.
func Lift(r approval.Request, from Sender) (approval.Request, error) {
	text, err := json.Marshal(r)
	if err == nil {
		text, err = visible(text)
	}
	var up approval.Request
	if err == nil {
		err = json.Unmarshal(text, &up)
	}
	if err != nil {
		return up, fmt.Errorf("reading a laptop's request: %w", err)
	}
	if len(up.Items) == 0 || len(up.Items) > maxItems {
		return up, fmt.Errorf("a request has 1 to %d calls, not %d", maxItems, len(up.Items))
	}
	for _, q := range up.Decision.Quorums {
		if q.Need < 1 || q.InOrder && len(q.Of) < q.Need {
			return up, errors.New("the request wants more people than it names")
		}
	}
	configuration := r.ConfigurationID()
	up.Configuration = "laptop " + from.Laptop + " of " + from.Person
	up.Run = from.Laptop + "-" + up.Run // it is none of the centre's
	for i := range up.Items {
		item := &up.Items[i]
		item.Key.Configuration = from.bridge(configuration)
		item.Key.Session = from.Laptop + " " + item.Key.Session
		item.Always = nil // the laptop's configuration cannot be edited from here
	}
	return up, nil
}

// visible makes what is unseen in the strings of JSON text visible, and leaves alone what
// was made visible before. It refuses an object of which two members would then have one
// name: people would see one of them.
func visible(text []byte) ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	v, err := shown(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func shown(v any) (_ any, err error) {
	switch v := v.(type) {
	case string:
		return shownText(v), nil
	case []any:
		for i := range v {
			if v[i], err = shown(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, one := range v {
			name := shownText(key)
			if _, twice := all[name]; twice {
				return nil, fmt.Errorf("two members look the same, as %.100q", name)
			}
			if all[name], err = shown(one); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return v, nil
}

// shownText is [canon.EscapeLines] for text that may have been escaped already: the
// backslash of an escape stays one.
func shownText(text string) string {
	parts := strings.Split(text, `\`)
	for i := range parts {
		parts[i] = canon.EscapeLines(parts[i])
	}
	return strings.Join(parts, `\`)
}

// shownVerdict returns a verdict of a laptop as the centre may show it.
func shownVerdict(v approval.Verdict, now time.Time) approval.Verdict {
	text, err := json.Marshal(v.Shown())
	if err == nil {
		text, err = visible(text)
	}
	var up approval.Verdict
	if err != nil || json.Unmarshal(text, &up) != nil {
		up = approval.Verdict{Reason: approval.Expired, Channel: "run"}
	}
	up.Args, up.Credential, up.Time = nil, "", now
	return up
}
