package config

import (
	"crypto/sha256"
	"fmt"
)

// A Metrics says where Prometheus reads the numbers of a bridge. Without Listen nothing is
// counted.
type Metrics struct {
	// Listen is host:port. Without Token it is a loopback address.
	Listen Value `json:"listen"`
	// Token is the bearer token that a scrape needs.
	Token Value `json:"token,omitzero" show:"never"`
	// Tools is how many tools are counted by name; 0 is none.
	Tools int `json:"tools,omitempty" range:"0..10000"`
	// AllowedHosts are accepted besides the listen address.
	AllowedHosts []Value `json:"allowedHosts,omitempty"`
}

// IsZero reports whether the file says nothing of it.
func (m Metrics) IsZero() bool {
	return m.Listen.IsZero() && m.Token.IsZero() && m.Tools == 0 && len(m.AllowedHosts) == 0
}

// checkMetrics checks where metrics are read, once tokens and approvers are known. A bad
// token must not open them.
func checkMetrics(c *checker) {
	const at = "/metrics"
	m := &c.config.Metrics
	if m.IsZero() {
		return
	}
	c.hosts(at+"/allowedHosts", m.AllowedHosts, "7422")
	checkMetricsToken(c, at+"/token", m.Token)
	if m.Listen.IsZero() && !c.unusable[at+"/listen"] {
		c.at(at, `"metrics" has no "listen"`, `write "listen": "127.0.0.1:7422"`)
	}
	if m.Listen.IsZero() || !c.sound(at+"/listen") {
		return
	}
	host, ok := c.address(at+"/listen", m.Listen, "127.0.0.1:7422")
	if ok && !loopback(host) && m.Token.IsZero() && !c.unusable[at+"/token"] {
		c.at(at+"/listen", "listening beyond this machine needs a token", `add "token": "${METRICS_TOKEN}", or listen on 127.0.0.1`)
	}
}

// checkMetricsToken checks that the token opens nothing else: who watches a bridge, and
// keeps its token in a file of their own, must not call or approve.
func checkMetricsToken(c *checker, at string, token Value) {
	if token.IsZero() || !c.sound(at) && !token.missing {
		return
	}
	digest := Digest(sha256.Sum256([]byte(token.Reveal())))
	if token.missing {
		digest = Digest(unguessable(token.Origin()))
	}
	const hint = `give Prometheus one of its own: "token": "${METRICS_TOKEN}"`
	for _, t := range c.config.HTTP.Tokens {
		if t.Digest == digest {
			c.at(at, fmt.Sprintf("whoever reads the metrics could call tools: %q of http.tokens has the same token", t.Name), hint)
			return
		}
	}
	for _, a := range c.config.Approvals.Approvers {
		if a.Digest == digest {
			c.at(at, fmt.Sprintf("whoever reads the metrics could approve calls: the approver %q has the same token", a.Name), hint)
			return
		}
	}
}
