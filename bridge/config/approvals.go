package config

import (
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Approvals says who, besides the person at the client, may answer questions,
// where they do it, and how much may be asked.
type Approvals struct {
	// Listen is the address where the approval page and its API are: those of `serve`
	// and, once there are approvers, of `run`. "off" means nowhere.
	Listen Value `json:"listen"`
	// AllowedHosts are accepted besides the listen address.
	AllowedHosts []Value `json:"allowedHosts,omitempty"`
	TLS          TLS     `json:"tls,omitzero" expand:"no"` // as of HTTP
	// Approvers prove who they are by a token or a login of their own.
	Approvers   []Approver   `json:"approvers,omitempty"`
	Delegations []Delegation `json:"delegations,omitempty"`
	// SeparateApprover keeps people from approving what they asked for themselves.
	SeparateApprover bool      `json:"separateApprover,omitempty"`
	Webhooks         []Webhook `json:"webhooks,omitempty"`
	// OIDC signs approvers in on the page; its zero value turns that off.
	OIDC OIDC `json:"oidc,omitzero"`
	// Desktop shows a notification on the desktop when somebody is needed.
	Desktop bool `json:"desktop,omitempty"`
	// Summaries lets a client's own model summarise long arguments; people see both.
	Summaries bool `json:"summaries,omitempty"`

	PerRun     int      `json:"perRun" range:"1..100"`       // open requests of one run
	PerSession int      `json:"perSession" range:"1..1000"`  // of one session
	PerBridge  int      `json:"perBridge" range:"1..100000"` // in all; further ones queue
	Overflow   Overflow `json:"overflow"`                    // what becomes of those
	Budget     int      `json:"budget" range:"1..10000"`     // new questions of a session in BudgetTime
	BudgetTime Duration `json:"budgetTime" range:"1s..24h"`
	Flood      int      `json:"flood" range:"1..10000"` // refused questions after which a run is stopped
}

// An Overflow says what becomes of questions beyond those that may be open.
type Overflow string

// What becomes of them.
const (
	OverflowQueue  Overflow = "queue"  // they wait their turn
	OverflowRefuse Overflow = "refuse" // their calls are refused
)

// UnmarshalText reads one of the words.
func (o *Overflow) UnmarshalText(text []byte) error {
	return choose(o, text, OverflowQueue, OverflowRefuse)
}

// An Approver is somebody who may answer questions.
type Approver struct {
	Name string       `json:"name" expand:"no"`
	Role ApproverRole `json:"role"`
	// Risk is the highest risk that they may approve; if the file does not say,
	// critical for an admin and high for an approver.
	Risk   RiskLevel `json:"risk,omitempty"`
	Groups []string  `json:"groups,omitempty" expand:"no"`
	SHA256 Value     `json:"sha256,omitzero" show:"never"`
	Token  Value     `json:"token,omitzero" show:"never"`
	// Login is the value of OIDC.Claim that identifies them.
	Login string `json:"login,omitempty" expand:"no"`
	// Principal is who they are to HTTP.Auth; empty if that is not known.
	Principal string `json:"principal,omitempty" expand:"no"`
	// Digest is the SHA-256 of the token, whichever way it was given; zero if
	// they have none.
	Digest Digest `json:"-"`
}

// An OIDC is an OpenID Connect provider, and the page as the provider knows it.
type OIDC struct {
	Issuer   Value `json:"issuer,omitzero"`
	ClientID Value `json:"clientId,omitzero"`
	// ClientSecret is empty for a public client.
	ClientSecret Value `json:"clientSecret,omitzero" show:"never"`
	// RedirectURL is the page's /login/done, as browsers reach it; empty means at
	// the address that the page listens on.
	RedirectURL Value `json:"redirectURL,omitzero"`
	// Claim names the claim of an ID token that holds an approver's Login.
	Claim string `json:"claim,omitempty" expand:"no"`
}

// IsZero reports whether there is no provider.
func (o OIDC) IsZero() bool { return o == OIDC{} }

// A Delegation lets To decide in the name of From for a while.
type Delegation struct {
	From  string `json:"from" expand:"no"`
	To    string `json:"to" expand:"no"`
	Until Moment `json:"until"`
}

// A Webhook is told that somebody is needed.
type Webhook struct {
	URL Value `json:"url" show:"url"`
	// Secret signs what is sent.
	Secret Value `json:"secret" show:"never"`
}

// An ApproverRole is what an approver may do.
type ApproverRole string

// The roles.
const (
	RoleViewer   ApproverRole = "viewer"
	RoleApprover ApproverRole = "approver"
	RoleAdmin    ApproverRole = "admin"
)

// UnmarshalText reads the word.
func (r *ApproverRole) UnmarshalText(text []byte) error {
	return choose(r, text, RoleViewer, RoleApprover, RoleAdmin)
}

// A RiskLevel names a risk.
type RiskLevel string

// The risks.
const (
	RiskLow      RiskLevel = "low"
	RiskMedium   RiskLevel = "medium"
	RiskHigh     RiskLevel = "high"
	RiskCritical RiskLevel = "critical"
)

// UnmarshalText reads the word.
func (r *RiskLevel) UnmarshalText(text []byte) error {
	return choose(r, text, RiskLow, RiskMedium, RiskHigh, RiskCritical)
}

// A Moment is a date, which means its end, or a time with its zone.
type Moment string

// UnmarshalText reads "2026-12-31" or "2026-12-31T18:00:00Z".
func (m *Moment) UnmarshalText(text []byte) error {
	if *m = Moment(text); m.Time().IsZero() {
		return fmt.Errorf("%q is neither a date such as 2026-12-31 nor a time such as 2026-12-31T18:00:00Z", text)
	}
	return nil
}

// Time returns the moment, of a date the end of its day, or zero if there is none.
func (m Moment) Time() time.Time {
	if day, err := time.ParseInLocation(time.DateOnly, string(m), time.Local); err == nil {
		return day.AddDate(0, 0, 1)
	}
	at, err := time.Parse(time.RFC3339, string(m))
	if err != nil {
		return time.Time{}
	}
	return at
}

func (a *Approvals) setDefaults() {
	*a = Approvals{
		Listen: newValue("127.0.0.1:7421", "127.0.0.1:7421"),
		PerRun: 5, PerSession: 20, PerBridge: 200, Overflow: OverflowQueue, Budget: 20, BudgetTime: duration("10m"), Flood: 50,
	}
}

// ListenOff is the address that means none.
const ListenOff = "off"

func (c *checker) approvals() {
	a := &c.config.Approvals
	people := c.approvers(a)
	c.delegations(a, people)
	c.webhooks(a)
	c.oidc(a)
	c.hosts("/approvals/allowedHosts", a.AllowedHosts, "7421")
	if c.unusable["/approvals/listen"] || a.Listen.Reveal() == ListenOff {
		return
	}
	host, ok := c.address("/approvals/listen", a.Listen, "127.0.0.1:7421")
	if ok && !loopback(host) && len(a.Approvers) == 0 && !c.unusable["/approvals/approvers"] {
		c.at("/approvals/listen", "a page beyond this machine needs approvers", `add one with: codemode-bridge approvers add NAME, or listen on 127.0.0.1`)
	}
}

// approvers checks the approvers, fills in their roles, and returns them.
func (c *checker) approvers(a *Approvals) *bearers {
	people := newBearers(c.findings, "approver", "to be seen in the audit log")
	for i := range a.Approvers {
		one := &a.Approvers[i]
		at := fmt.Sprintf("/approvals/approvers/%d", i)
		if c.has(at+"/login") && !c.has(at+"/sha256") && !c.has(at+"/token") {
			people.name(at, one.Name)
		} else {
			people.check(at, one.Name, one.SHA256, one.Token, &one.Digest)
		}
		if !c.has(at + "/role") {
			one.Role = RoleApprover
		}
		if c.sound(at+"/principal") && !principalForm.MatchString(one.Principal) {
			c.at(at+"/principal", `"principal" is an issuer, "#" and a subject`, `write "https://login.example.com#00u1abcd", as the audit log shows it`)
		}
		if one.Name == "owner" {
			c.at(at+"/name", `"owner" is who starts the bridge`, "choose another name")
		}
		if isRole(one.Name) {
			c.at(at+"/name", fmt.Sprintf("%q is a role", one.Name), "choose another name: a quorum names people, groups and roles alike")
		}
	}
	for i, one := range a.Approvers {
		for j, group := range one.Groups {
			at := fmt.Sprintf("/approvals/approvers/%d/groups/%d", i, j)
			switch {
			case group == "":
				c.at(at, "a group has no name", "")
			case people.names[group], isRole(group):
				c.at(at, fmt.Sprintf("%q is an approver or a role, not a group", group), "choose another name: a quorum names people, groups and roles alike")
			}
		}
	}
	for i, token := range c.config.HTTP.Tokens { // whoever may call must not approve as well
		if token.Digest != (Digest{}) && people.digests[token.Digest] {
			c.at(fmt.Sprintf("/http/tokens/%d", i), "an approver has the same token", "give the client one of its own, or it could allow its own calls")
		}
	}
	return people
}

func isRole(name string) bool {
	return slices.Contains([]ApproverRole{RoleViewer, RoleApprover, RoleAdmin}, ApproverRole(name))
}

func (c *checker) delegations(a *Approvals, people *bearers) {
	for i, one := range a.Delegations {
		at := fmt.Sprintf("/approvals/delegations/%d", i)
		switch {
		case !people.names[one.From] || one.From == "":
			c.at(at, fmt.Sprintf(`"from" names no approver: %q`, one.From), "")
		case !people.names[one.To] || one.To == "":
			c.at(at, fmt.Sprintf(`"to" names no approver: %q`, one.To), "")
		case one.From == one.To:
			c.at(at, "nobody delegates to themselves", "")
		case !c.has(at + "/until"):
			c.at(at, "a delegation has no end", `add "until": "2026-12-31"`)
		}
	}
}

func (c *checker) webhooks(a *Approvals) {
	for i, hook := range a.Webhooks {
		checkWebhook(c, fmt.Sprintf("/approvals/webhooks/%d", i), hook)
	}
}

func checkWebhook(c *checker, at string, hook Webhook) {
	switch {
	case !c.has(at + "/url"):
		c.at(at, "a webhook has no address", `add "url": "https://..."`)
	case c.sound(at+"/url") && !httpsOrLocal(hook.URL.Reveal()):
		c.at(at+"/url", "a webhook's address starts with https://", "http:// is for this machine alone")
	}
	if !c.unusable[at+"/secret"] && len(hook.Secret.Reveal()) < minToken {
		c.at(at, fmt.Sprintf("a webhook needs a secret of at least %d characters, which signs what is sent", minToken), `add "secret": "${HOOK_SECRET}"`)
	}
}

// oidc checks the provider and the approvers' logins.
func (c *checker) oidc(a *Approvals) {
	const at = "/approvals/oidc"
	there := c.has(at)
	logins := map[string]bool{}
	for i, one := range a.Approvers {
		path := fmt.Sprintf("/approvals/approvers/%d/login", i)
		switch {
		case !c.has(path):
		case one.Login == "":
			c.at(path, "a login is what the provider calls somebody, and cannot be empty", "")
		case logins[one.Login]:
			c.at(path, fmt.Sprintf("two approvers have the login %q", one.Login), "")
		case !there:
			c.at(path, `a login means nothing without "oidc"`, `add "oidc": {"issuer": "https://...", "clientId": "..."} to "approvals"`)
		}
		logins[one.Login] = true
	}
	if !there || c.unusable[at] {
		return
	}
	o := &a.OIDC
	if !c.has(at + "/claim") {
		o.Claim = "email"
	} else if c.sound(at+"/claim") && o.Claim == "" {
		c.at(at+"/claim", `"claim" is empty`, `write the name of a claim of the ID token, such as "email" or "sub"`)
	}
	for _, one := range []struct {
		key   string
		value Value
		path  string // that it ends with
	}{{"issuer", o.Issuer, ""}, {"redirectURL", o.RedirectURL, "/login/done"}} {
		key := at + "/" + one.key
		u, _ := url.Parse(one.value.Reveal())
		switch {
		case !c.has(key) && one.key == "issuer":
			c.at(at, "a provider has no issuer", `add "issuer": "https://..."`)
		case !c.has(key), !c.sound(key):
		case !httpsOrLocal(one.value.Reveal()): // or not a URL at all
			c.at(key, fmt.Sprintf("%q starts with https://", one.key), "http:// is for this machine alone")
		case one.path != "" && u.Path != one.path, u.RawQuery != "", u.Fragment != "":
			c.at(key, fmt.Sprintf("%q is the page's address and /login/done", one.key), `write "https://approve.example.com/login/done"`)
		}
	}
	if !c.has(at+"/clientId") || c.sound(at+"/clientId") && o.ClientID.Reveal() == "" {
		c.at(at, "a provider needs the client ID that it knows this page by", `add "clientId": "..."`)
	}
}
