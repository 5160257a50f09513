package surface

import (
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/upstream"
)

// A BridgeStatus is how the bridge is, at one moment.
type BridgeStatus struct {
	Servers  []ServerStatus  `json:"servers"`
	Sandbox  any             `json:"sandbox"`
	Profiles []string        `json:"profiles"`
	Policy   string          `json:"policy_revision"`
	Catalog  string          `json:"catalog_revision"`
	Runs     int             `json:"runs"`
	Asking   approval.Counts `json:"asking"` // of all sessions
	Paused   int             `json:"paused"` // runs that wait without a bridge
	// Requests are the asking session's own that wait for a person. Their
	// arguments are for the person alone.
	Requests []string `json:"requests,omitempty"`
	Problem  string   `json:"config_problem,omitempty"`
	Held     string   `json:"config_held,omitempty"`
	Audit    string   `json:"audit_problem,omitempty"`
}

// A ServerStatus is one upstream server in a BridgeStatus.
type ServerStatus struct {
	Name     string              `json:"name"`
	State    string              `json:"state"`
	Why      string              `json:"why,omitempty"`
	Tools    int                 `json:"tools"`
	Since    time.Time           `json:"since"`              // of the state
	Until    time.Time           `json:"until,omitzero"`     // when a server that fails is tried again
	Failures int                 `json:"failures,omitempty"` // in a row, to connect or of calls
	Answered time.Time           `json:"answered,omitzero"`  // when it last answered a call or a listing
	Box      *upstream.BoxStatus `json:"box,omitempty"`
}

// ServersOf are upstream servers as a BridgeStatus has them.
func ServersOf(all []upstream.Status) (servers []ServerStatus) {
	for _, st := range all {
		servers = append(servers, ServerStatus{
			Name: st.Name, State: string(st.State), Why: st.Why(), Tools: st.Tools,
			Since: st.Since, Until: st.Until, Failures: st.Failures, Answered: st.Answered, Box: st.BoxStatus(),
		})
	}
	return servers
}
