package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/metrics"
)

// counts makes metrics of a bridge with two profiles and two servers.
func counts(state metrics.State, tools int) *metrics.Metrics {
	return metrics.New(metrics.Options{
		Version: "1.2.3", Commit: "abc", Go: "go1", Tools: tools,
		Profiles: func() []string { return []string{"default", "strict"} },
		Servers:  func() []string { return []string{"files", "mail"} },
		State:    func(context.Context) metrics.State { return state },
	})
}

// scrape serves metrics and reads them, with a header or none.
func scrape(t *testing.T, at, token, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	if host != "" {
		r.Host = host
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func read(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	site, err := m.Serve(metrics.SiteOptions{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	status, text := scrape(t, site.Address, "", "")
	if status != http.StatusOK {
		t.Fatalf("the answer is %d: %s", status, text)
	}
	return text
}

func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !slices.Contains(strings.Split(text, "\n"), line) {
			name, _, _ := strings.Cut(line, "{")
			name, _, _ = strings.Cut(name, " ")
			t.Errorf("there is no %s, but\n%s", line, strings.Join(regexp.MustCompile(`(?m)^`+name+`.*`).FindAllString(text, -1), "\n"))
		}
	}
}

// What happens to runs, calls and questions is counted from the records of it.
func TestCountsFromRecords(t *testing.T) {
	t.Parallel()
	m := counts(metrics.State{Writable: true}, 1)
	call := func(event ledger.Event, server, tool, disposition, outcome string) ledger.Record {
		return ledger.Record{Event: event, Profile: "strict", Server: server, Tool: tool, Disposition: disposition, Outcome: outcome, Duration: 20 * time.Millisecond}
	}
	m.Recorded([]ledger.Record{
		{Event: ledger.RunStarted, Profile: "strict"},
		call(ledger.Intent, "files", "read", "allow", ""),
		call(ledger.Outcome, "files", "read", "allow", ledger.Done),
		call(ledger.Outcome, "files", "write", "ask", ledger.Failed),
		call(ledger.Outcome, "gone", "read", "allow", ledger.Unknown),
		call(ledger.Refusal, "files", "write", "deny", ledger.Refused),
		call(ledger.Refusal, "", "invented", "", ledger.Refused),
		{Event: ledger.Asked, Profile: "strict"},
		{Event: ledger.Verdict, Channel: "page", Answer: "yes, once", Wait: 10 * time.Second},
		{Event: ledger.Verdict, Channel: "elicitation", Answer: "no, declined", Wait: time.Second},
		{Event: ledger.Verdict, Channel: "page", Answer: "yes, once", Outcome: ledger.Refused},
		{Event: ledger.Verdict, Channel: "api", Answer: "yes, once", Outcome: ledger.Vote},
		{Event: ledger.Verdict, Channel: "limit", Answer: "no, rate_limited"},
	}, 2*time.Millisecond, nil)
	m.Recorded([]ledger.Record{{Event: ledger.RunEnded, Profile: "strict", Outcome: ledger.Stopped, Duration: 2 * time.Second,
		Error: "the script could not begin within 30 s: the total memory limit of 1 GB is taken up by other scripts"}}, 30*time.Millisecond, nil)
	m.Recorded([]ledger.Record{call(ledger.Intent, "files", "read", "allow", "")}, time.Second, errors.New("no space"))
	m.Decisions()(70 * time.Microsecond)
	has(t, read(t, m),
		`codemode_build_info{commit="abc",go_version="go1",version="1.2.3"} 1`,
		`codemode_runs_started_total{profile="strict"} 1`,
		`codemode_runs_ended_total{end="stopped",profile="strict"} 1`,
		`codemode_run_duration_seconds_bucket{profile="strict",le="1"} 0`,
		`codemode_run_duration_seconds_bucket{profile="strict",le="5"} 1`,
		`codemode_calls_total{disposition="allow",outcome="done",profile="strict",server="files"} 1`,
		`codemode_calls_total{disposition="ask",outcome="failed",profile="strict",server="files"} 1`,
		`codemode_calls_total{disposition="allow",outcome="unknown",profile="strict",server="other"} 1`,
		`codemode_calls_total{disposition="deny",outcome="refused",profile="strict",server="files"} 1`,
		`codemode_calls_total{disposition="none",outcome="refused",profile="strict",server="none"} 1`,
		`codemode_call_duration_seconds_count{server="files"} 2`,
		`codemode_call_duration_seconds_bucket{server="files",le="0.01"} 0`,
		`codemode_tool_calls_total{outcome="done",server="files",tool="read"} 1`,
		`codemode_tool_calls_total{outcome="failed",server="files",tool="other"} 1`,
		`codemode_tool_calls_total{outcome="unknown",server="other",tool="other"} 1`,
		`codemode_decision_duration_seconds_bucket{le="5e-05"} 0`,
		`codemode_decision_duration_seconds_bucket{le="0.0001"} 1`,
		`codemode_calls_asked_total{profile="strict"} 1`,
		`codemode_verdicts_total{channel="page",verdict="approved"} 1`,
		`codemode_verdicts_total{channel="elicitation",verdict="denied"} 1`,
		`codemode_verdicts_total{channel="page",verdict="refused"} 1`,
		`codemode_verdicts_total{channel="api",verdict="vote"} 1`,
		`codemode_question_wait_seconds_sum{channel="page",verdict="approved"} 10`,
		`codemode_question_wait_seconds_count{channel="elicitation",verdict="denied"} 1`,
		`codemode_limit_refusals_total{limit="questions"} 1`,
		`codemode_limit_refusals_total{limit="workers"} 1`,
		`codemode_store_commit_duration_seconds_count 2`,
		`codemode_store_records_total{event="outcome"} 3`,
		`codemode_store_errors_total 1`,
		`codemode_store_writable 1`,
	)
}

// Where no records are kept, what they say is counted all the same.
func TestCountsWithoutAStore(t *testing.T) {
	t.Parallel()
	m := counts(metrics.State{}, 0)
	m.Recorded([]ledger.Record{{Event: ledger.RunStarted, Profile: "default"}}, 0, nil)
	text := read(t, m)
	has(t, text, `codemode_runs_started_total{profile="default"} 1`, `codemode_store_commit_duration_seconds_count 0`)
	if strings.Contains(text, "codemode_store_records_total{") || strings.Contains(text, "codemode_tool_calls_total") {
		t.Errorf("what is not wanted is counted:\n%s", text)
	}
}

// How the bridge is at the moment is read at each scrape.
func TestState(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := metrics.State{
		Servers: []metrics.Server{{Name: "files", State: "connected", Connected: true, Since: began, Tools: 7}, {Name: "mail", State: "suspended", Failures: 5}, {Name: "removed", State: "failed"}},
		Runs:    3, Sessions: 2, Questions: &metrics.Questions{Waiting: 4, Oldest: time.Minute}, Open: 2, Queued: 1, Backlog: 6, Unpushed: map[string]int64{"webhook": 7, "a secret": 8},
		Workers: metrics.Workers{Live: 9, Warm: 2, Idle: 1, Busy: 3, Queued: 5, Started: 11, Killed: map[string]uint64{"memory": 2, "never heard of": 3}},
	}
	m := metrics.New(metrics.Options{Profiles: func() []string { return nil }, Servers: func() []string { return []string{"files", "mail"} }, State: func(context.Context) metrics.State { return s }})
	text := read(t, m)
	has(t, text,
		`codemode_server_up{server="files"} 1`, `codemode_server_up{server="mail"} 0`, `codemode_server_state{server="mail",state="suspended"} 1`, `codemode_server_state{server="mail",state="connected"} 0`,
		`codemode_server_failures{server="mail"} 5`, `codemode_server_tools{server="files"} 7`, `codemode_server_connections_total{server="files"} 1`, `codemode_server_connections_total{server="mail"} 0`,
		`codemode_runs_active 3`, `codemode_sessions 2`, `codemode_questions_waiting 4`, `codemode_question_oldest_seconds 60`, `codemode_calls_waiting{state="asked"} 2`, `codemode_calls_waiting{state="queued"} 1`,
		`codemode_workers{state="warm"} 2`, `codemode_workers{state="idle"} 1`, `codemode_workers{state="busy"} 3`, `codemode_workers{state="changing"} 3`, `codemode_runs_queued 5`,
		`codemode_workers_started_total 11`, `codemode_workers_killed_total{reason="memory"} 2`, `codemode_workers_killed_total{reason="cpu time"} 0`, `codemode_workers_killed_total{reason="other"} 3`,
		`codemode_store_writable 0`, `codemode_store_backlog_records 6`, `codemode_push_waiting_records{to="webhook"} 7`, `codemode_push_waiting_records{to="other"} 8`,
	)
	if strings.Contains(text, "removed") {
		t.Error("a server that the configuration has no more is shown")
	}
	s.Servers = []metrics.Server{{Name: "files", State: "connecting", Since: began.Add(time.Second)}}
	s.Questions = nil
	has(t, read(t, m), `codemode_server_up{server="files"} 0`, `codemode_server_connections_total{server="files"} 1`)
	s.Servers = []metrics.Server{{Name: "files", State: "connected", Since: began.Add(2 * time.Second)}}
	text = read(t, m)
	has(t, text, `codemode_server_connections_total{server="files"} 2`)
	if strings.Contains(text, "codemode_questions_waiting ") {
		t.Error("questions that could not be read are counted")
	}
}

// Whatever a record says, nothing of it is in a label but what the configuration or this
// program has a word for, and there are so many series at most.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := counts(metrics.State{}, 3)
	const planted = "planted-canary"
	for _, event := range []ledger.Event{ledger.RunStarted, ledger.RunEnded, ledger.Intent, ledger.Outcome, ledger.Refusal, ledger.Asked, ledger.Answered, ledger.Verdict, planted} {
		for i := range 500 {
			var r ledger.Record
			for f, v := range reflect.ValueOf(&r).Elem().Fields() {
				text := fmt.Sprintf("%s-%s-%d", planted, f.Name, i)
				switch v.Interface().(type) {
				case string:
					v.SetString(text)
				case json.RawMessage:
					v.SetBytes([]byte(`"` + text + `"`))
				case []string:
					v.Set(reflect.ValueOf([]string{text}))
				case time.Duration:
					v.SetInt(int64(i))
				}
			}
			r.Event = event
			m.Recorded([]ledger.Record{r}, time.Millisecond, nil)
			// A server lists ever new tools, one of them with a name without end.
			r.Server, r.Tool = "files", fmt.Sprintf("tool%d", i)
			if i == 0 {
				r.Tool = strings.Repeat("tool", 1000)
			}
			m.Recorded([]ledger.Record{r}, time.Millisecond, nil)
		}
	}
	text := read(t, m)
	if strings.Contains(text, planted) {
		t.Errorf("a label has what a record says:\n%s", text)
	}
	tools := regexp.MustCompile(`(?m)^codemode_tool_calls_total.*tool="([^"]*)"`).FindAllStringSubmatch(text, -1)
	var names []string
	for _, found := range tools {
		names = append(names, found[1])
	}
	slices.Sort(names)
	if names = slices.Compact(names); !slices.Equal(names, []string{"other", "tool1", "tool2", "tool3"}) {
		t.Errorf("the tools are %q", names)
	}
	if n := strings.Count(text, "\ncodemode_"); n > 300 {
		t.Errorf("there are %d series", n)
	}
}

// Edits of the configuration bring ever new profiles: from some number on they share a
// label.
func TestNamesAreBoundedOverTime(t *testing.T) {
	t.Parallel()
	now := ""
	m := metrics.New(metrics.Options{Profiles: func() []string { return []string{now} }, Servers: func() []string { return nil }, State: func(context.Context) metrics.State { return metrics.State{} }})
	for i := range 1500 {
		now = fmt.Sprintf("p%d", i)
		m.Recorded([]ledger.Record{{Event: ledger.RunStarted, Profile: now}}, time.Millisecond, nil)
	}
	text := read(t, m)
	if n := strings.Count(text, "\ncodemode_runs_started_total{"); n != 1001 {
		t.Errorf("there are %d profiles", n)
	}
	has(t, text, `codemode_runs_started_total{profile="other"} 500`)
}

// Metrics are for those who have the token, at the names of this endpoint.
func TestSite(t *testing.T) {
	t.Parallel()
	m := counts(metrics.State{}, 0)
	site, err := m.Serve(metrics.SiteOptions{Listen: "127.0.0.1:0", Token: "s3cret", Hosts: []string{"metrics.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	for _, c := range []struct {
		name, token, host, at string
		want                  int
		says                  string
	}{
		{"right", "Bearer s3cret", "", "", 200, "codemode_build_info"},
		{"lower case", "bearer s3cret", "", "", 200, "codemode_build_info"},
		{"an allowed host", "Bearer s3cret", "metrics.example.com", "", 200, "codemode_build_info"},
		{"no token", "", "", "", 401, "metrics.token"},
		{"another token", "Bearer s3cret2", "", "", 401, "metrics.token"},
		{"an empty token", "Bearer ", "", "", 401, "metrics.token"},
		{"another scheme", "Basic s3cret", "", "", 401, "metrics.token"},
		{"a name that was rebound", "Bearer s3cret", "evil.example.com", "", 403, "metrics.allowedHosts"},
		{"another path", "Bearer s3cret", "", "/debug", 404, "not found"},
	} {
		status, text := scrape(t, site.Address+c.at, c.token, c.host)
		if status != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %.200s", c.name, status, text)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.Address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer s3cret")
	r.Header.Set("Origin", "https://evil.example.com")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another site is answered with %s", answer.Status)
	}
}

// An address that is taken, that others reach, or that is none, is an error.
func TestSiteRefuses(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for at, says := range map[string]string{
		l.Addr().String():   "in use",
		"0.0.0.0:0":         "there is no token: set metrics.token",
		":0":                "there is no token: set metrics.token",
		"metrics.example:0": "there is no token: set metrics.token",
		"7422":              "reading the address of the metrics",
	} {
		site, err := counts(metrics.State{}, 0).Serve(metrics.SiteOptions{Listen: at})
		if err == nil {
			site.Close()
			t.Errorf("it listens on %s", at)
		} else if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", at, err)
		}
	}
	site, err := counts(metrics.State{}, 0).Serve(metrics.SiteOptions{Listen: "0.0.0.0:0", Token: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	site.Close()
}
