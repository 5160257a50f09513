package pending

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/policydoc"
	"codemode-bridge/profiles"
)

// Which rights a changed configuration gives and takes, as plain functions of the
// old one and the new one. pending.go decides what follows from it.

// looserBeside says how a configuration may be looser than another apart from its
// profiles, and whether it changes who may answer, or where.
func looserBeside(old, cfg *config.Config) (why []string) {
	for _, name := range cfg.ServerNames() {
		is := cfg.Servers[name]
		if is.Disabled {
			continue
		}
		var all []string
		if was, ok := old.Servers[name]; !ok || was.Disabled {
			all = append(addedServer(is), given(cfg, name)...)
		} else {
			all = looserServer(was, is)
		}
		for _, one := range all {
			why = append(why, "server "+name+": "+one)
		}
	}
	why = append(why, otherWorkspace(old.Evaluation.Workspace, cfg.Evaluation.Workspace)...)
	why = append(why, widened(old.Approvals, cfg.Approvals)...)
	why = append(why, moved(old.Approvals, cfg.Approvals)...)
	why = append(why, asksMore(old.Approvals, cfg.Approvals)...)
	why = append(why, access.Looser(old.Access, cfg.Access, cfg.Profiles.Default().Name())...)
	why = append(why, regrouped(old, cfg)...)
	why = append(why, unrecorded(old.Audit, cfg.Audit)...)
	if old.Centre.Policy != cfg.Centre.Policy {
		why = append(why, "centre: laptops get another policy, or none")
	}
	if old.Centre.SigningKey.Origin() != cfg.Centre.SigningKey.Origin() {
		why = append(why, "centre: laptops know the centre by another key, or are not served any more, or are from now on")
	}
	for _, command := range added(old.Commands(), cfg.Commands()) {
		why = append(why, "secrets: a command is run for one: "+canon.Redact(command))
	}
	for _, doc := range cfg.Include {
		if ref := doc.Ref(); doc.URL != "" && !slices.ContainsFunc(old.Include, func(had policydoc.Include) bool { return had.Ref() == ref }) {
			why = append(why, "include: policy is taken from "+ref)
		}
	}
	for _, doc := range old.Include {
		if ref := doc.Ref(); !slices.ContainsFunc(cfg.Include, func(is policydoc.Include) bool { return is.Ref() == ref }) {
			why = append(why, "include: what "+ref+" says does not hold any more")
		}
	}
	if old.ID != cfg.ID {
		why = append(why, fmt.Sprintf("id: it is %q, no longer %q, and so other runs and questions belong to it", cfg.ID, old.ID))
	}
	why = append(why, counts(old.Metrics, cfg.Metrics)...)
	return append(why, lets(old.HTTP, cfg.HTTP)...)
}

// regrouped says whose groups are others, if access counts them: which entry holds for them may
// be another one.
func regrouped(old, cfg *config.Config) (why []string) {
	for _, token := range cfg.HTTP.Tokens {
		for _, had := range old.HTTP.Tokens {
			if had.Name == token.Name && cfg.Access != nil && old.Access != nil && !slices.Equal(had.Groups, token.Groups) {
				why = append(why, fmt.Sprintf("http: the token of %s is in the groups %s, no longer %s", token.Name, strings.Join(token.Groups, ", "), strings.Join(had.Groups, ", ")))
			}
		}
	}
	return why
}

// addedServer says why a new server must be confirmed. Built-in servers are our own
// and need not be.
func addedServer(is *config.Server) (why []string) {
	if is.Type == config.KindBuiltin {
		return nil
	}
	if is.TrustAnnotations {
		why = append(why, "it is new, and what it says of its own tools is trusted")
	}
	if is.NewTools != config.ReactionQuarantine {
		why = append(why, fmt.Sprintf("it is new, and its tools are not quarantined: newTools is %s", is.NewTools))
	}
	if is.ChangedTools == config.ReactionAllow {
		why = append(why, "it is new, and its tools may change: changedTools is allow")
	}
	if is.Known != "" {
		why = append(why, "it is new, and what is known of "+is.Known+" is accepted for it")
	}
	if is.Sampling != config.SamplingDeny {
		why = append(why, "it is new, and may use the clients' models: sampling "+string(is.Sampling))
	}
	return why
}

// traced ranks what a configuration says of telling a server of traces.
func traced(s *config.Server) int {
	switch {
	case s.Trace == nil:
		return 1
	case *s.Trace:
		return 2
	}
	return 0
}

// given says which secrets a new server gets: whoever may only write the file must not
// have them sent to an address of their own.
func given(cfg *config.Config, name string) (why []string) {
	for _, r := range cfg.References("/servers/"+name, "/mcpServers/"+name) {
		why = append(why, "it is new, and is given the secret "+canon.Redact(r.String()))
	}
	return why
}

// looserServer says how a server is looser than it was.
func looserServer(was, is *config.Server) (why []string) {
	if !sameServer(was, is) {
		why = append(why, "it runs or reaches something else, or in another way")
	}
	why = append(why, is.Confine.Looser(was.Confine)...)
	if is.TrustAnnotations && !was.TrustAnnotations {
		why = append(why, "what it says of its own tools is trusted")
	}
	switch {
	case is.Known != "" && is.Known != was.Known:
		why = append(why, "what is known of "+is.Known+" is accepted for it")
	case is.Known != was.Known: // a rule may deny what is known
		why = append(why, "what is known of "+was.Known+" is not accepted for it any more")
	}
	if is.NewTools.Looser(was.NewTools) {
		why = append(why, fmt.Sprintf("newTools is %s, no longer %s", is.NewTools, was.NewTools))
	}
	if is.ChangedTools.Looser(was.ChangedTools) {
		why = append(why, fmt.Sprintf("changedTools is %s, no longer %s", is.ChangedTools, was.ChangedTools))
	}
	if modelRights(is.Sampling) > modelRights(was.Sampling) {
		why = append(why, "sampling "+string(is.Sampling)+" instead of "+string(was.Sampling))
	}
	if traced(is) > traced(was) {
		why = append(why, "it may be told which trace its calls belong to")
	}
	if is.Elicitation == config.ElicitationAsk && was.Elicitation == config.ElicitationDeny {
		why = append(why, "it may ask people something")
	}
	if was.PerSession && !is.PerSession {
		why = append(why, "sessions share it, and had one each")
	}
	if was.Auth.Per == config.AuthPrincipal && is.Auth.Per != config.AuthPrincipal {
		why = append(why, "everybody uses one login, and each person had an account of their own")
	}
	if showsMore(was.Tools, is.Tools) {
		why = append(why, "more of its tools may be seen")
	}
	if otherLabels(was, is) {
		why = append(why, "its tools have other labels, by which rules say where data may flow")
	}
	if more := added(was.Rotating, is.Rotating); len(more) > 0 {
		why = append(why, fmt.Sprintf("it stays the same server whatever %s holds", strings.Join(more, ", ")))
	}
	if more := added(was.Roots, is.Roots); len(more) > 0 {
		why = append(why, "it is told of more folders: "+strings.Join(more, ", "))
	}
	if more := added(was.Auth.Scopes, is.Auth.Scopes); len(more) > 0 {
		why = append(why, "its login asks for more: "+strings.Join(more, ", "))
	} else if was.Auth.Scopes != nil && is.Auth.Scopes == nil {
		why = append(why, "its login asks for whatever the server names")
	}
	return why
}

// otherLabels reports whether labels are gone, or it is said of tools that were not labelled
// which they have: what nobody has said may be any.
func otherLabels(was, is *config.Server) bool {
	if was.Labels == nil && is.Labels != nil || len(added(is.Labels, was.Labels)) > 0 {
		return true
	}
	for pattern, labels := range was.Tools.Labels {
		if len(added(is.Tools.Labels[pattern], labels)) > 0 {
			return true
		}
	}
	for pattern := range is.Tools.Labels {
		if _, had := was.Tools.Labels[pattern]; !had && is.Labels == nil {
			return true // what it matches has no other labels than these
		}
	}
	return false
}

// added returns those of is that was does not have.
func added(was, is []string) []string {
	return slices.DeleteFunc(slices.Clone(is), func(one string) bool { return slices.Contains(was, one) })
}

// otherWorkspace says how the folders that rules allow more in, or less, are others. A
// folder within an old one counts too: a link there may lead anywhere.
func otherWorkspace(was, is []string) (why []string) {
	switch more, gone := added(was, is), added(is, was); {
	case len(more) > 0:
		why = append(why, "evaluation.workspace: scripts work on other folders: "+strings.Join(more, ", "))
	case len(is) > 0 && len(gone) > 0:
		why = append(why, "evaluation.workspace: rules about it do not hold any more in "+strings.Join(gone, ", "))
	case len(was) > 0 && len(is) == 0:
		why = append(why, "evaluation.workspace: scripts work on whatever folders the client has")
	}
	return why
}

// sameServer reports whether two servers are the same program or address,
// reached with the same credentials. Of secrets, what they are called counts, because
// nobody asks for them before the configuration may be taken over.
func sameServer(was, is *config.Server) bool {
	same := func(get func(*config.Server) config.Value) bool { return get(was).Origin() == get(is).Origin() }
	sameAll := func(get func(*config.Server) map[string]config.Value) bool {
		return maps.Equal(config.OriginMap(get(was)), config.OriginMap(get(is)))
	}
	return was.Type == is.Type && was.Builtin == is.Builtin && was.Auth.Type == is.Auth.Type &&
		same(func(s *config.Server) config.Value { return s.Command }) &&
		slices.Equal(config.Origins(was.Args), config.Origins(is.Args)) &&
		sameAll(func(s *config.Server) map[string]config.Value { return s.Env }) &&
		slices.Equal(was.PassEnv, is.PassEnv) &&
		same(func(s *config.Server) config.Value { return s.Cwd }) &&
		same(func(s *config.Server) config.Value { return s.URL }) &&
		sameAll(func(s *config.Server) map[string]config.Value { return s.Headers }) &&
		same(func(s *config.Server) config.Value { return s.OpenAPI }) &&
		sameAll(func(s *config.Server) map[string]config.Value { return s.Credentials }) &&
		same(func(s *config.Server) config.Value { return s.Auth.ClientID }) &&
		same(func(s *config.Server) config.Value { return s.Auth.ClientSecret }) &&
		same(func(s *config.Server) config.Value { return s.Auth.Issuer })
}

// showsMore reports whether scripts may see tools that they could not see before.
func showsMore(was, is config.Tools) bool {
	missing := func(from []string, glob string) bool { return !slices.Contains(from, glob) }
	return slices.ContainsFunc(was.Deny, func(glob string) bool { return missing(is.Deny, glob) }) ||
		was.Allow != nil && (is.Allow == nil || slices.ContainsFunc(is.Allow, func(glob string) bool { return missing(was.Allow, glob) }))
}

// certified says what has changed about the certificate of an endpoint: who has the key
// reads the tokens that are sent to it.
func certified(what string, was, is config.TLS) []string {
	switch {
	case was == is || was == (config.TLS{}):
		return nil
	case is == (config.TLS{}):
		return []string{what + " has no certificate any more: tokens would travel in the clear"}
	}
	return []string{fmt.Sprintf("%s has the certificate in %s with the key in %s, instead of %s and %s", what, is.Cert, is.Key, was.Cert, was.Key)}
}

// moved says what has changed about where approvers answer, and about who vouches
// for them. Such a change cannot be shown to be tighter, so every one counts.
func moved(was, is config.Approvals) (why []string) {
	if was.Listen.Origin() != is.Listen.Origin() {
		why = append(why, fmt.Sprintf("approvals: the page listens on %s instead of %s", is.Listen, was.Listen))
	}
	why = append(why, certified("approvals: the page", was.TLS, is.TLS)...)
	if !slices.Equal(config.Origins(was.AllowedHosts), config.Origins(is.AllowedHosts)) {
		why = append(why, fmt.Sprintf("approvals: the page answers to the hosts %s instead of %s", is.AllowedHosts, was.AllowedHosts))
	}
	if a, b := was.OIDC, is.OIDC; a.Claim != b.Claim || a.Issuer.Origin() != b.Issuer.Origin() || a.ClientID.Origin() != b.ClientID.Origin() ||
		a.ClientSecret.Origin() != b.ClientSecret.Origin() || a.RedirectURL.Origin() != b.RedirectURL.Origin() {
		why = append(why, fmt.Sprintf("approvals: single sign-on is changed: %s instead of %s", provider(b), provider(a)))
	}
	return why
}

func provider(o config.OIDC) string {
	if o.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%s of %s for the client %s", o.Claim, o.Issuer, o.ClientID)
}

// asksMore says who else learns of questions, and how many more there may be.
func asksMore(was, is config.Approvals) (why []string) {
	for _, hook := range is.Webhooks {
		if !slices.ContainsFunc(was.Webhooks, func(had config.Webhook) bool { return had.URL.Origin() == hook.URL.Origin() }) {
			why = append(why, fmt.Sprintf("approvals: the webhook %s is told of questions", hook.URL))
		}
	}
	if is.Summaries && !was.Summaries {
		why = append(why, "approvals: the client's model says what long arguments are")
	}
	if is.Budget > was.Budget || is.BudgetTime < was.BudgetTime {
		why = append(why, fmt.Sprintf("approvals: a session may ask %d questions in %s, no longer %d in %s", is.Budget, is.BudgetTime, was.Budget, was.BudgetTime))
	}
	if is.Flood > was.Flood {
		why = append(why, fmt.Sprintf("approvals: a run goes on for %d refused questions, no longer %d", is.Flood, was.Flood))
	}
	return why
}

// pushed says who else gets the records, or gets them no more.
func pushed(was, is config.Push) (why []string) {
	for _, to := range []struct {
		was, is config.Value
		what    string
	}{{was.OTLP.URL, is.OTLP.URL, "collector"}, {was.Webhook.URL, is.Webhook.URL, "webhook"}} {
		switch {
		case to.is.Origin() == to.was.Origin():
		case to.is.IsZero():
			why = append(why, fmt.Sprintf("audit: the records are no longer pushed to the %s %s", to.what, to.was))
		default:
			why = append(why, fmt.Sprintf("audit: the records are pushed to the %s %s", to.what, to.is))
		}
	}
	if !maps.EqualFunc(was.OTLP.Headers, is.OTLP.Headers, func(a, b config.Value) bool { return a.Origin() == b.Origin() }) {
		why = append(why, "audit: the collector gets other headers, which may hold secrets")
	}
	if was.Webhook.Secret.Origin() != is.Webhook.Secret.Origin() {
		why = append(why, "audit: what is pushed to the webhook is signed with another secret")
	}
	return why
}

// unrecorded says how records could be lost.
func unrecorded(was, is config.Audit) (why []string) {
	switch {
	case was.Enabled && !is.Enabled:
		why = append(why, "audit: no records are kept")
	case was.Path != is.Path, database(was.Store) != database(is.Store), was.StoreKey.Origin() != is.StoreKey.Origin(), was.Checkpoint != "" && was.Checkpoint != is.Checkpoint:
		why = append(why, "audit: the records, or their checkpoints, are kept in another place")
	}
	why = append(why, pushed(was.Push, is.Push)...)
	shorter := func(was, is int64) bool { return is != 0 && (was == 0 || is < was) } // 0 means forever
	if shorter(int64(was.Keep), int64(is.Keep)) {
		why = append(why, fmt.Sprintf("audit: records are kept for %s", is.Keep))
	}
	if shorter(int64(was.KeepRows), int64(is.KeepRows)) {
		why = append(why, fmt.Sprintf("audit: %d records are kept", is.KeepRows))
	}
	if was.Durability == config.DurabilityAll && is.Durability != config.DurabilityAll {
		why = append(why, fmt.Sprintf("audit: the durability is %s, no longer %s", is.Durability, was.Durability))
	}
	return why
}

// database is the address of a store without its password, which may change.
func database(store config.Value) string {
	at, err := url.Parse(store.Origin())
	if err != nil {
		return store.Origin()
	}
	if at.User != nil {
		at.User = url.User(at.User.Username())
	}
	return at.String()
}

// counts says who else may read metrics, and what more of them. Metrics that are gone tell
// nobody anything.
func counts(was, is config.Metrics) (why []string) {
	if is.Listen.IsZero() {
		return nil
	}
	if was.Listen.Origin() != is.Listen.Origin() {
		why = append(why, fmt.Sprintf("metrics: they can be read at %s", is.Listen))
	}
	if was.Token.Origin() != is.Token.Origin() {
		why = append(why, "metrics: they can be read with another token, or without one")
	}
	if len(added(config.Origins(was.AllowedHosts), config.Origins(is.AllowedHosts))) > 0 {
		why = append(why, fmt.Sprintf("metrics: they can be read at the hosts %s", is.AllowedHosts))
	}
	if is.Tools > was.Tools {
		why = append(why, fmt.Sprintf("metrics: %d tools are named, not %d", is.Tools, was.Tools))
	}
	return why
}

// lets says who else may connect over HTTP, and from where. A token with another
// name, or another token under the same name, is somebody else's.
func lets(was, is config.HTTP) (why []string) {
	if was.AsksForTokens() {
		if !is.AsksForTokens() {
			why = append(why, "http: no token is asked for")
		}
		for _, token := range is.Tokens {
			if !slices.ContainsFunc(was.Tokens, func(had config.Token) bool { return had.Name == token.Name && had.Same(token) }) {
				why = append(why, fmt.Sprintf("http: the token of %s is new, or another", token.Name))
			}
		}
		if !is.Auth.IsZero() && !covers(was.Auth, is.Auth) {
			why = append(why, fmt.Sprintf("http: other tokens of issuers count: those of %s, %s", is.Auth.Issuer, strings.Join(append([]string{"for " + is.Auth.Resource.String()}, is.Auth.Audiences...), " or ")))
		}
	}
	if was.Listen.Origin() != is.Listen.Origin() {
		why = append(why, fmt.Sprintf("http: it listens on %s instead of %s", is.Listen, was.Listen))
	}
	why = append(why, certified("http: it", was.TLS, is.TLS)...)
	if len(added(config.Origins(was.AllowedHosts), config.Origins(is.AllowedHosts))) > 0 {
		why = append(why, fmt.Sprintf("http: it answers to the hosts %s instead of %s", is.AllowedHosts, was.AllowedHosts))
	}
	if len(added(config.Origins(was.AllowedOrigins), config.Origins(is.AllowedOrigins))) > 0 {
		why = append(why, fmt.Sprintf("http: it answers pages of %s instead of %s", is.AllowedOrigins, was.AllowedOrigins))
	}
	return why
}

// covers reports whether every token that counts now counted before, for the same
// principal in the same groups.
func covers(was, is config.OAuth) bool {
	same := func(a, b config.Value) bool { return a.Origin() == b.Origin() }
	a, b := was.Introspection, is.Introspection
	return same(was.Issuer, is.Issuer) && same(was.Resource, is.Resource) && was.Groups == is.Groups &&
		len(added(was.Audiences, is.Audiences)) == 0 && len(added(is.Scopes, was.Scopes)) == 0 &&
		(b.IsZero() || same(a.URL, b.URL) && same(a.ClientID, b.ClientID) && same(a.ClientSecret, b.ClientSecret))
}

// modelRights ranks how freely a server may use the clients' models.
func modelRights(s config.Sampling) int {
	return slices.Index([]config.Sampling{config.SamplingDeny, config.SamplingAsk, config.SamplingAllow}, s)
}

// grave reports whether a change is so serious that confirming it needs a reason:
// somebody may allow more, nobody is asked any more, or a denial is gone.
func grave(old, cfg *config.Config) bool {
	if old.Profiles.Enabled() && !cfg.Profiles.Enabled() || len(widened(old.Approvals, cfg.Approvals)) > 0 || len(moved(old.Approvals, cfg.Approvals)) > 0 {
		return true
	}
	for _, name := range old.Profiles.Names() {
		was, _ := old.Profiles.Profile(name)
		is, ok := cfg.Profiles.Profile(name)
		if ok && lostDenial(was.Effective().ProfileSpec, is.Effective().ProfileSpec) {
			return true
		}
	}
	return lostDenial(old.Profiles.Default().Effective().ProfileSpec, cfg.Profiles.Default().Effective().ProfileSpec)
}

// lostDenial reports whether a profile has lost a glob of its denylist or a rule
// that denies. It compares them as written, not what they match.
func lostDenial(was, is profiles.ProfileSpec) bool {
	denies := func(r profiles.RuleSpec) bool { return r.Action != nil && *r.Action == profiles.Deny.String() }
	return slices.ContainsFunc(was.Denylist, func(glob string) bool { return !slices.Contains(is.Denylist, glob) }) ||
		slices.ContainsFunc(was.Rules, func(r profiles.RuleSpec) bool {
			return denies(r) && !slices.ContainsFunc(is.Rules, func(o profiles.RuleSpec) bool {
				return denies(o) && slices.Equal(r.Tools, o.Tools) && reflect.DeepEqual(r.When, o.When)
			})
		})
}

// widened says who may allow more after a change of the section approvals. A change
// that only takes rights away does not wait, as long as somebody is left who may
// answer and confirm: the rights are lost at once.
func widened(was, is config.Approvals) (why []string) {
	for _, name := range approverNames(was, is) {
		before, after := approverOf(was, name), approverOf(is, name)
		switch {
		case before == nil:
			why = append(why, fmt.Sprintf("approvals: %s is new: %s", name, rights(after)))
		case after != nil && !reflect.DeepEqual(narrowed(*before, *after), *after):
			why = append(why, fmt.Sprintf("approvals: %s is changed: %s", name, rights(after)))
		}
	}
	for _, d := range is.Delegations {
		if !slices.ContainsFunc(was.Delegations, func(had config.Delegation) bool { return lends(had, d) }) {
			why = append(why, fmt.Sprintf("approvals: %s may decide in the name of %s until %s", d.To, d.From, d.Until))
		}
	}
	if was.SeparateApprover && !is.SeparateApprover {
		why = append(why, "approvals: who asks for a call may allow it")
	}
	if AnyoneMay(approval.Answer, was) && !AnyoneMay(approval.Answer, is) {
		why = append(why, "approvals: nobody would be left who may answer")
	}
	if AnyoneMay(approval.ConfirmConfig, was) && !AnyoneMay(approval.ConfirmConfig, is) {
		why = append(why, "approvals: nobody would be left who may confirm a configuration")
	}
	return why
}

// rights says in words what an approver may do.
func rights(one *config.Approver) string {
	text := string(one.Role)
	if one.Risk != "" {
		text += ", up to " + string(one.Risk) + " risk"
	}
	if len(one.Groups) > 0 {
		text += ", in " + strings.Join(one.Groups, ", ")
	}
	if one.Login != "" {
		text += ", login " + one.Login
	}
	if one.Principal != "" {
		text += ", principal " + one.Principal
	}
	if one.Token.Secret() {
		text += ", token " + canon.Redact(one.Token.Origin())
	} else if one.Digest != (config.Digest{}) {
		text += ", token " + one.Digest.String()[:8] + "..."
	}
	return text
}

// lends reports whether one delegation covers another.
func lends(had, d config.Delegation) bool {
	return had.From == d.From && had.To == d.To && !d.Until.Time().After(had.Until.Time())
}

var (
	roleOrder = []config.ApproverRole{config.RoleViewer, config.RoleApprover, config.RoleAdmin}
	riskOrder = []config.RiskLevel{config.RiskLow, config.RiskMedium, config.RiskHigh, config.RiskCritical}
)

// highest returns the highest risk that an approver may allow.
func highest(one config.Approver) config.RiskLevel {
	switch {
	case one.Risk != "":
		return one.Risk
	case one.Role == config.RoleAdmin:
		return config.RiskCritical
	}
	return config.RiskHigh
}

// narrowed returns an approver with the rights that they have both before and after
// a change. With a new token they may only look: nobody knows who has it.
func narrowed(before, after config.Approver) config.Approver {
	both := after
	if slices.Index(roleOrder, before.Role) < slices.Index(roleOrder, after.Role) {
		both.Role = before.Role
	}
	if !before.SameToken(after) && after.Digest != (config.Digest{}) {
		both.Role, both.Digest = config.RoleViewer, before.Digest
	}
	if before.Login != after.Login { // only the provider knows whose the new one is
		both.Login = ""
	}
	both.Principal = before.Principal // another one may allow what the first asked for
	if slices.Index(riskOrder, highest(before)) < slices.Index(riskOrder, highest(after)) {
		both.Risk = highest(before)
	}
	both.Groups = slices.DeleteFunc(slices.Clone(after.Groups), func(g string) bool { return !slices.Contains(before.Groups, g) })
	if len(both.Groups) == len(after.Groups) {
		both.Groups = after.Groups
	}
	return both
}

// meanwhile returns who may answer while a change is pending: each right that both
// sections give. If that leaves nobody who may confirm the change, those who could
// before still can, and may otherwise only look.
func meanwhile(was, is config.Approvals) config.Approvals {
	both := was
	both.Approvers, both.Delegations = nil, nil
	for _, one := range was.Approvers {
		after := approverOf(is, one.Name)
		if after == nil {
			continue
		}
		next := *after
		if next.Digest != (config.Digest{}) { // a new token does not count before it is confirmed
			next.Digest, next.SHA256, next.Token = one.Digest, one.SHA256, one.Token
		}
		both.Approvers = append(both.Approvers, narrowed(one, next))
	}
	named := func(name string) bool {
		return slices.ContainsFunc(both.Approvers, func(one config.Approver) bool { return one.Name == name })
	}
	for _, d := range was.Delegations {
		if named(d.From) && named(d.To) && slices.ContainsFunc(is.Delegations, func(now config.Delegation) bool { return now.From == d.From && now.To == d.To }) {
			both.Delegations = append(both.Delegations, d)
		}
	}
	both.SeparateApprover = was.SeparateApprover || is.SeparateApprover
	if !AnyoneMay(approval.ConfirmConfig, both) {
		for _, one := range was.Approvers {
			if one.Role != config.RoleAdmin {
				continue
			}
			both.Approvers = slices.DeleteFunc(both.Approvers, func(o config.Approver) bool { return o.Name == one.Name })
			one.Role, one.Risk = config.ApproverRole(approval.Confirmer), ""
			both.Approvers = append(both.Approvers, one)
			both.Delegations = slices.DeleteFunc(both.Delegations, func(d config.Delegation) bool { return d.To == one.Name })
		}
	}
	return both
}

func approverNames(of ...config.Approvals) []string {
	var names []string
	for _, a := range of {
		for _, one := range a.Approvers {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func approverOf(a config.Approvals, name string) *config.Approver {
	for i := range a.Approvers {
		if a.Approvers[i].Name == name {
			return &a.Approvers[i]
		}
	}
	return nil
}
