package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
)

// An Approver is somebody who is added to a configuration, by the hash of their token.
type Approver struct {
	Name   string `json:"name"`
	Role   string `json:"role"`
	SHA256 string `json:"sha256"`
}

// Queue prepares the bridge's configuration for a client that cannot ask: what its
// scripts ask waits for approvers, a notice on the desktop says so and, if there is no
// approver yet, one is added. Text is the configuration. Added reports whether the
// approver was.
func (in *Installation) Queue(text []byte, parse func(text []byte) (*config.Config, error), approver Approver) (added bool, err error) {
	if in.Before == nil {
		in.Before, in.After = text, text
	}
	cfg, err := parse(in.After)
	if err != nil {
		return false, err
	}
	after := in.After
	set := func(pointer string, value any) {
		if err == nil && cfg.Has(pointer) {
			after, err = jsonc.Remove(after, pointer)
		}
		if err == nil {
			after, err = jsonc.Insert(after, pointer, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Evaluation.Profiles)) {
		spec := cfg.Evaluation.Profiles[name]
		if spec != nil && (spec.ElicitationFallback == nil || *spec.ElicitationFallback == "deny") {
			set("/evaluation/profiles/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)+"/elicitationFallback", "queue")
		}
	}
	if !cfg.Approvals.Desktop {
		set("/approvals/desktop", true)
	}
	if added = len(cfg.Approvals.Approvers) == 0; added {
		set("/approvals/approvers/-", approver)
	}
	if err == nil {
		_, err = parse(after)
	}
	if err != nil {
		return false, fmt.Errorf("having approvers answer for %s: %w", in.Place.Client.Title, err)
	}
	in.After = after
	return added, nil
}
