package metrics

import (
	"slices"
	"strings"

	"codemode-bridge/bridge/ledger"
)

// The words of labels that records could bring others for.
var (
	events = []string{
		string(ledger.RunStarted), string(ledger.RunEnded), string(ledger.RunPaused), string(ledger.RunResumed), string(ledger.Preview), string(ledger.Intent), string(ledger.Outcome),
		string(ledger.Refusal), string(ledger.Asked), string(ledger.Answered), string(ledger.Verdict), string(ledger.ServerAsked), string(ledger.SavedScript), string(ledger.Granted),
		string(ledger.Revoked), string(ledger.Lapsed), string(ledger.ConfigChanged), string(ledger.BridgeStarted), string(ledger.BridgeEnded), string(ledger.SignedIn), string(ledger.StopAsked),
		string(ledger.ToolChanged), string(ledger.ToolAccepted), string(ledger.ToolBlocked), string(ledger.AccountConnected), string(ledger.AccountDisconnected), string(ledger.Laptop),
		string(ledger.Pruned), string(ledger.Repaired),
	}
	outcomes     = []string{ledger.Done, ledger.Failed, ledger.Refused, ledger.Unknown, ledger.Stopped}
	dispositions = []string{"allow", "notify", "ask", "deny"}
	channels     = []string{"elicitation", "page", "api", "terminal", "grant", "fallback", "timeout", "limit", "run"}
	limits       = []string{limitQuestions, limitWorkers}
)

const (
	limitQuestions = "questions"
	limitWorkers   = "workers"
)

// other is the label of whatever has none of its own.
const other = "other"

// word returns a label's value: one of its words, "none" for nothing.
func word(value string, of []string) string {
	switch {
	case value == "":
		return "none"
	case slices.Contains(of, value):
		return value
	}
	return other
}

// count counts what one record says.
func (m *Metrics) count(r *ledger.Record) {
	switch r.Event {
	case ledger.RunStarted:
		m.runsStarted.WithLabelValues(m.profiles.label(r.Profile)).Inc()
	case ledger.RunEnded:
		profile := m.profiles.label(r.Profile)
		m.runsEnded.WithLabelValues(profile, word(r.Outcome, outcomes)).Inc()
		m.runTime.WithLabelValues(profile).Observe(r.Duration.Seconds())
		if r.Outcome != ledger.Done && strings.HasPrefix(r.Error, noMemory) {
			m.limitRefusals.WithLabelValues(limitWorkers).Inc()
		}
	case ledger.Intent:
		for _, outcome := range []string{ledger.Done, ledger.Failed, ledger.Unknown} { // so that the first one of a kind is an increase
			m.calls.WithLabelValues(m.profiles.label(r.Profile), m.servers.label(r.Server), word(r.Disposition, dispositions), outcome)
		}
	case ledger.Outcome, ledger.Refusal:
		m.countCall(r)
	case ledger.Asked:
		m.asked.WithLabelValues(m.profiles.label(r.Profile)).Inc()
	case ledger.Verdict:
		m.countVerdict(r)
	}
}

// noMemory is how the error of a run begins that found no memory for a worker in time.
const noMemory = "the script could not begin within "

func (m *Metrics) countCall(r *ledger.Record) {
	server, outcome := m.servers.label(r.Server), word(r.Outcome, outcomes)
	m.calls.WithLabelValues(m.profiles.label(r.Profile), server, word(r.Disposition, dispositions), outcome).Inc()
	if r.Event != ledger.Outcome {
		return // it was not sent, perhaps to a tool that a script made up
	}
	m.callTime.WithLabelValues(server).Observe(r.Duration.Seconds())
	if m.toolCalls != nil {
		tool := other
		if server == r.Server {
			tool = m.tools.label(server, r.Tool)
		}
		m.toolCalls.WithLabelValues(server, tool, outcome).Inc()
	}
}

func (m *Metrics) countVerdict(r *ledger.Record) {
	verdict, channel := "denied", word(r.Channel, channels)
	switch {
	case r.Outcome == ledger.Refused:
		verdict = "refused"
	case r.Outcome == ledger.Vote:
		verdict = "vote"
	case strings.HasPrefix(r.Answer, "yes"):
		verdict = "approved"
	}
	m.verdicts.WithLabelValues(channel, verdict).Inc()
	if r.Wait > 0 {
		m.questionWait.WithLabelValues(channel, verdict).Observe(r.Wait.Seconds())
	}
	if channel == "limit" {
		m.limitRefusals.WithLabelValues(limitQuestions).Inc()
	}
}
