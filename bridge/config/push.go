package config

// A Push says to whom the records of the audit log are sent as well.
type Push struct {
	OTLP    PushOTLP `json:"otlp,omitzero"`
	Webhook Webhook  `json:"webhook,omitzero"`
}

// A PushOTLP is a collector of OpenTelemetry's logs.
type PushOTLP struct {
	URL      Value            `json:"url" show:"url"`
	Protocol OTLPProtocol     `json:"protocol,omitempty"` // empty: OTLPHTTP
	Headers  map[string]Value `json:"headers,omitempty" show:"never" keys:"fold"`
}

// An OTLPProtocol says how a collector is spoken to.
type OTLPProtocol string

// The protocols.
const (
	OTLPHTTP OTLPProtocol = "http/protobuf"
	OTLPGRPC OTLPProtocol = "grpc"
)

func (p *OTLPProtocol) UnmarshalText(text []byte) error { return choose(p, text, OTLPHTTP, OTLPGRPC) }

// IsZero reports whether the file names no collector.
func (p PushOTLP) IsZero() bool { return p.URL.IsZero() && p.Protocol == "" && p.Headers == nil }

// checkPush checks to whom records are sent.
func checkPush(c *checker, p *Push) {
	if at := "/audit/push/webhook"; c.has(at) {
		checkWebhook(c, at, p.Webhook)
	}
	if at := "/audit/push/otlp"; c.has(at) && !c.has(at+"/url") {
		c.at(at, "the collector has no address", `add "url": "https://..."`)
	} else if c.has(at) && c.sound(at+"/url") && !httpsOrLocal(p.OTLP.URL.Reveal()) {
		c.at(at+"/url", "a collector's address starts with https://", "http:// is for this machine alone")
	}
}
