package approval

import "codemode-bridge/profiles"

// Proposed returns the rule that all calls of the request propose; nil if they propose
// none, or several.
func (r Request) Proposed() *profiles.RuleSpec {
	var rule *profiles.RuleSpec
	for _, i := range r.Items {
		if i.Always == nil || i.Always.Name == nil || rule != nil && *rule.Name != *i.Always.Name {
			return nil
		}
		rule = i.Always
	}
	return rule
}
