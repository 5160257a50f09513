package metrics_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/metrics"
)

var metricName = regexp.MustCompile(`\b(?:codemode|process)_[a-z_]*[a-z]\b`)

// Every metric that the dashboard, the alerts and their tests name is there, and every
// one that is there is in the document, which names no other.
func TestDocumentsNameMetrics(t *testing.T) {
	t.Parallel()
	m := counts(metrics.State{Servers: []metrics.Server{{Name: "files"}}, Questions: new(metrics.Questions), Unpushed: map[string]int64{"otlp": 1}}, 1)
	for _, event := range []ledger.Event{ledger.RunStarted, ledger.RunEnded, ledger.Outcome, ledger.Asked, ledger.Verdict} {
		m.Recorded([]ledger.Record{{Event: event, Server: "files", Wait: time.Second}}, time.Second, nil)
	}
	text := read(t, m)
	series := map[string]bool{} // and the metrics that they belong to
	for _, name := range regexp.MustCompile(`(?m)^(?:# TYPE )?([a-z_]+)[{ ]`).FindAllStringSubmatch(text, -1) {
		series[name[1]] = true
	}
	var ours []string
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (codemode_[a-z_]+) `).FindAllStringSubmatch(text, -1) {
		ours = append(ours, name[1])
	}
	if len(ours) < 30 {
		t.Errorf("there are only the metrics %q", ours)
	}
	deploy := filepath.Join("..", "..", "docs", "deploy")
	for _, file := range []string{"metrics.md", "metrics/codemode.rules.yml", "metrics/codemode.test.yml", "metrics/dashboard.json"} {
		content, err := os.ReadFile(filepath.Join(deploy, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		named := metricName.FindAllString(string(content), -1)
		for _, name := range named {
			if !series[name] {
				t.Errorf("%s names %s, which is not there", file, name)
			}
		}
		if file == "metrics.md" {
			for _, name := range ours {
				if !slices.Contains(named, name) {
					t.Errorf("%s does not name %s", file, name)
				}
			}
		}
		if strings.HasSuffix(file, ".json") && (!json.Valid(content) || len(named) < 25) {
			t.Errorf("%s is no dashboard of %d metrics", file, len(named))
		}
	}
}

// Every alert is in the document and has a test.
func TestAlertsAreDocumented(t *testing.T) {
	t.Parallel()
	text := map[string]string{}
	for _, file := range []string{"metrics.md", "metrics/codemode.rules.yml", "metrics/codemode.test.yml"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		text[file] = string(content)
	}
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(text["metrics/codemode.rules.yml"], -1)
	if len(alerts) < 9 {
		t.Errorf("there are only the alerts %q", alerts)
	}
	for _, alert := range alerts {
		if !strings.Contains(text["metrics.md"], "| "+alert[1]+" |") || !strings.Contains(text["metrics/codemode.test.yml"], "alertname: "+alert[1]+"\n") {
			t.Errorf("%s has no line in metrics.md or no test", alert[1])
		}
	}
}
