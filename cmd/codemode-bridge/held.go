package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"
)

// Where there are approvers, a configuration that loosens what holds is not
// taken over before one of them who may edit profiles has confirmed it:
//
//	file changes ── reloaded ──┬── nothing looser ──────────▶ take
//	                           └── hold ── lookAtHeld ── confirmed ──▶ take
//
// What is held is in the store of requests, so that a confirmation in one
// process counts in every bridge with the file. A bridge that starts takes the
// file as it is.

// A heldConfig is a configuration that waits to be confirmed.
type heldConfig struct {
	cfg *config.Config
	why []string
}

// row is what the store keeps of it.
func (h *heldConfig) row(old *config.Config) approval.Held {
	row := approval.Held{File: heldKey(h.cfg), Digest: textDigest(h.cfg), Since: time.Now(), Why: h.why, Diff: profileDiff(old.Profiles, h.cfg.Profiles)}
	less := *old
	less.Approvals = meanwhile(old.Approvals, h.cfg.Approvals)
	if people, err := approversOf(&less); err == nil { // less than was in force, so it is right
		row.Approvers = people.All()
	}
	row.Delegations = delegationsOf(&less)
	return row
}

// heldKey names the file whose change is held: the overlay, where there is one.
func heldKey(cfg *config.Config) string {
	if cfg.Overlay != "" {
		return cfg.Overlay
	}
	return cfg.File
}

// textDigest is of the exact text of a configuration.
func textDigest(cfg *config.Config) string {
	if cfg.Overlay != "" {
		return cfg.Digest.String() + "+" + cfg.OverlayDigest.String()
	}
	return cfg.Digest.String()
}

// looser says in what a configuration may be looser than the one in force, and
// whether it changes who may answer; empty if it need not be confirmed.
func looser(old, cfg *config.Config) []string {
	why := profiles.Looser(old.Profiles, cfg.Profiles)
	for _, name := range cfg.ServerNames() {
		was, ok := old.Servers[name]
		is := cfg.Servers[name]
		if ok && is.TrustAnnotations && !was.TrustAnnotations {
			why = append(why, "server "+name+": what it says of its own tools is trusted")
		}
		if ok && was.Quarantine && !is.Quarantine {
			why = append(why, "server "+name+": its new and changed tools are not held back any more")
		}
	}
	return append(why, widened(old.Approvals, cfg.Approvals)...)
}

// widened says who may allow more by a change of the section approvals. What
// only takes away is not held: who loses a right loses it at once.
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
	return why
}

// rights are what an approver may do, in words.
func rights(one *config.Approver) string {
	text := string(one.Role)
	if one.Risk != "" {
		text += ", up to " + string(one.Risk) + " risk"
	}
	if len(one.Groups) > 0 {
		text += ", in " + strings.Join(one.Groups, ", ")
	}
	return text + ", token " + one.Digest.String()[:8] + "..."
}

// lends reports whether one delegation covers another.
func lends(had, d config.Delegation) bool {
	return had.From == d.From && had.To == d.To && !d.Until.Time().After(had.Until.Time())
}

var (
	roleOrder = []config.ApproverRole{config.RoleViewer, config.RoleApprover, config.RoleAdmin}
	riskOrder = []config.RiskLevel{config.RiskLow, config.RiskMedium, config.RiskHigh, config.RiskCritical}
)

// highest is the risk that an approver may allow.
func highest(one config.Approver) config.RiskLevel {
	switch {
	case one.Risk != "":
		return one.Risk
	case one.Role == config.RoleAdmin:
		return config.RiskCritical
	}
	return config.RiskHigh
}

// narrowed is what an approver may do both before and after a change. One with
// another token may do nothing: nobody knows who has it.
func narrowed(before, after config.Approver) config.Approver {
	both := after
	if slices.Index(roleOrder, before.Role) < slices.Index(roleOrder, after.Role) {
		both.Role = before.Role
	}
	if before.Digest != after.Digest {
		both.Role, both.Digest = config.RoleViewer, before.Digest
	}
	if slices.Index(riskOrder, highest(before)) < slices.Index(riskOrder, highest(after)) {
		both.Risk = highest(before)
	}
	both.Groups = slices.DeleteFunc(slices.Clone(after.Groups), func(g string) bool { return !slices.Contains(before.Groups, g) })
	if len(both.Groups) == len(after.Groups) {
		both.Groups = after.Groups
	}
	return both
}

// meanwhile is who may answer while a change is held: what both allow.
func meanwhile(was, is config.Approvals) config.Approvals {
	both := was
	both.Approvers, both.Delegations = nil, nil
	for _, one := range was.Approvers {
		if after := approverOf(is, one.Name); after != nil && after.Digest == one.Digest {
			both.Approvers = append(both.Approvers, narrowed(one, *after))
		} else if after != nil {
			both.Approvers = append(both.Approvers, one) // another token waits to be confirmed
		}
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

// reloaded takes over what the file says now, or holds it.
func (p *parts) reloaded(ctx context.Context, a *app, cfg *config.Config) error {
	p.reload.Lock()
	defer p.reload.Unlock()
	if _, err := approversOf(cfg); err != nil {
		return err
	}
	p.problem.Store(nil)
	old := p.config()
	h := &heldConfig{cfg, nil}
	if len(old.Approvals.Approvers) > 0 {
		h.why = looser(old, cfg)
	}
	if len(h.why) == 0 {
		p.letGoLocked(ctx)
		return p.takeLocked(ctx, a, cfg, "", "")
	}
	row, err := approval.Hold(ctx, p.desk.store, h.row(old), time.Now())
	switch {
	case err != nil:
		p.log.Error("nobody can confirm the configuration that is held", "err", err)
	case row.By != "": // in another process, or who wrote it on the page
		p.held.Store(nil)
		return p.takeLocked(ctx, a, cfg, row.By, row.Channel)
	}
	p.held.Store(h)
	less := *old // what the change takes from approvers holds at once
	less.Approvals = meanwhile(old.Approvals, cfg.Approvals)
	if err := p.desk.follow(&less); err != nil {
		return err
	}
	p.recorder.owe(context.WithoutCancel(ctx), configHeld(old, cfg, h.why))
	p.log.Warn("the configuration loosens what holds, so it waits for an approver: codemode-bridge config pending shows it, config confirm takes it over", "why", h.why)
	select {
	case p.holding <- struct{}{}:
	default:
	}
	return nil
}

// letGo drops what is held.
func (p *parts) letGo(ctx context.Context) {
	p.reload.Lock()
	defer p.reload.Unlock()
	p.letGoLocked(ctx)
}

func (p *parts) letGoLocked(ctx context.Context) {
	h := p.held.Swap(nil)
	if h == nil {
		return
	}
	p.log.Info("no configuration waits for an approver any more")
	if err := approval.Release(context.WithoutCancel(ctx), p.desk.store, heldKey(h.cfg)); err != nil {
		p.log.Warn("dropping what was held", "err", err)
	}
}

// followHeld takes over what is held once it is confirmed, until ctx ends.
func (p *parts) followHeld(ctx context.Context, a *app) {
	for {
		var told <-chan struct{} // nobody looks while nothing is held
		if p.held.Load() != nil {
			told = p.desk.store.Requested()
			p.lookAtHeld(ctx, a)
		}
		select {
		case <-ctx.Done():
			return
		case <-told:
		case <-p.holding:
		}
	}
}

func (p *parts) lookAtHeld(ctx context.Context, a *app) {
	p.reload.Lock()
	defer p.reload.Unlock()
	h := p.held.Load()
	if h == nil {
		return
	}
	old := p.config()
	row, err := approval.HeldOf(ctx, p.desk.store, heldKey(h.cfg))
	if err == nil && row == nil { // by a bridge that has started since, and had nothing to hold
		_, err = approval.Hold(ctx, p.desk.store, h.row(old), time.Now())
	}
	switch {
	case err != nil:
		p.log.Error("looking whether the configuration is confirmed", "err", err)
	case row != nil && row.By != "" && row.Digest == textDigest(h.cfg):
		p.held.Store(nil)
		if err := p.takeLocked(ctx, a, h.cfg, row.By, row.Channel); err != nil {
			p.log.Error("the confirmed configuration was not taken over", "err", err)
		}
	}
}

// takeAsItIs drops what another bridge may have left behind: this one has just
// started, with the file as it is. A bridge that still holds it says so again.
func (p *parts) takeAsItIs(ctx context.Context, cfg *config.Config) {
	_, err := p.desk.store.ChangeHeld(ctx, heldKey(cfg), func(old *approval.Held) (*approval.Held, error) {
		if old != nil && old.By == "" {
			return nil, nil
		}
		return old, nil
	})
	if err != nil {
		p.log.Warn("looking for a configuration that is held", "err", err)
	}
}

// heldText says for codemode_status what waits to be confirmed.
func (p *parts) heldText() string {
	h := p.held.Load()
	if h == nil {
		return ""
	}
	return "waits for an approver (codemode-bridge config confirm): " + strings.Join(h.why, "; ")
}

// profileDiff are the lines in which the profiles differ, as they apply, with
// two lines around each.
func profileDiff(old, cfg *profiles.Set) []string {
	names := slices.Concat(old.Names(), cfg.Names())
	slices.Sort(names)
	var all []string
	for _, name := range slices.Compact(names) {
		if lines := lineDiff(profileLines(old, name), profileLines(cfg, name), 2); len(lines) > 0 {
			all = append(append(all, "@ profile "+name), lines...)
		}
	}
	if was, is := old.Default().Name(), cfg.Default().Name(); was != is {
		all = append(all, "@ defaultProfile", fmt.Sprintf("-%q", was), fmt.Sprintf("+%q", is))
	}
	return all
}

// profileLines are a profile as it applies; none if there is no such profile.
func profileLines(s *profiles.Set, name string) []string {
	p, ok := s.Profile(name)
	if !ok {
		return nil
	}
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p.Effective()); err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// lineDiff are the lines that differ, marked - and +, with some around them.
func lineDiff(a, b []string, around int) []string {
	// common[i][j] is how many lines a[i:] and b[j:] have in common, in order.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var lines []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, " "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "-"+a[i])
			i++
		default:
			lines = append(lines, "+"+b[j])
			j++
		}
	}
	near := func(at int) bool {
		from, to := max(0, at-around), min(len(lines), at+around+1)
		return slices.ContainsFunc(lines[from:to], func(l string) bool { return l[0] != ' ' })
	}
	var shown []string
	for at, l := range lines {
		if near(at) {
			shown = append(shown, l)
		}
	}
	return shown
}

// inForce is a configuration with the approvers that may answer now: while a
// change of its file is held, those that the bridges go by, whatever the file
// says already.
func inForce(ctx context.Context, store approval.Store, cfg *config.Config) (*config.Config, error) {
	h, err := approval.HeldOf(ctx, store, heldKey(cfg))
	if err != nil || h == nil || h.By != "" || h.Digest != textDigest(cfg) {
		return cfg, err
	}
	c := *cfg
	c.Approvals.Approvers, c.Approvals.Delegations = nil, nil
	for _, one := range h.Approvers {
		risk, err := one.Risk.MarshalText()
		if err != nil {
			return nil, fmt.Errorf("reading the approvers in force: %w", err)
		}
		c.Approvals.Approvers = append(c.Approvals.Approvers, config.Approver{Name: one.Name, Role: config.ApproverRole(one.Role), Groups: one.Groups, Risk: config.RiskLevel(risk), Digest: one.Token})
	}
	for _, d := range h.Delegations {
		c.Approvals.Delegations = append(c.Approvals.Delegations, config.Delegation{From: d.From, To: d.To, Until: config.Moment(d.Until.Format(time.RFC3339))})
	}
	return &c, nil
}

var errNothingHeld = errors.New("no configuration waits for an approver")
