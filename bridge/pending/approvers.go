package pending

import (
	"slices"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
)

// Approvers makes the approvers that a configuration names.
func Approvers(cfg *config.Config, realm approval.Realm) (*approval.Approvers, error) {
	var people []approval.Approver
	for _, a := range cfg.Approvals.Approvers {
		one := approval.Approver{Name: a.Name, Role: approval.Role(a.Role), Groups: a.Groups, Login: a.Login, Principal: a.Principal, Token: a.Digest}
		if a.Risk != "" {
			if err := one.Risk.UnmarshalText([]byte(a.Risk)); err != nil {
				return nil, err
			}
		}
		people = append(people, one)
	}
	return approval.NewApprovers(realm, people, delegations(cfg))
}

func delegations(cfg *config.Config) []approval.Delegation {
	var lent []approval.Delegation
	for _, d := range cfg.Approvals.Delegations {
		lent = append(lent, approval.Delegation{From: d.From, To: d.To, Until: d.Until.Time()})
	}
	return lent
}

// AnyoneMay reports whether some approver who can prove who they are may do
// something.
func AnyoneMay(v approval.Verb, a config.Approvals) bool {
	return slices.ContainsFunc(a.Approvers, func(one config.Approver) bool {
		return (one.Login != "" || one.Digest != config.Digest{}) && approval.Approver{Role: approval.Role(one.Role)}.May(v)
	})
}
