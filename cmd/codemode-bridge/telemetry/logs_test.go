package telemetry

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/memstore"
	"codemode-bridge/bridge/otlptest"

	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"
)

// rows are those of a log with some records.
func rows(t *testing.T) (store string, all []ledger.Link) {
	t.Helper()
	log := memstore.New(nil)
	for _, r := range []ledger.Record{
		{Event: ledger.Intent, Time: time.Unix(1700000000, 5).UTC(), Run: "r1", Call: 2, Server: "mail", Tool: "send", Profile: "work", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"},
		{Event: ledger.Refusal, Outcome: ledger.Refused, TraceID: "not hexadecimal"},
		{Event: ledger.RunStarted, Script: strings.Repeat("é", 40_000)},
	} {
		if err := log.Record(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	store, all, err := log.LinksAfter(t.Context(), 0, 10, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return store, all
}

// What a collector gets of the audit log, over both protocols.
func TestCollector(t *testing.T) {
	t.Parallel()
	store, links := rows(t)
	for _, byGRPC := range []bool{false, true} {
		at := otlptest.New(t)
		address := at.HTTP
		if byGRPC {
			address = at.GRPC
		}
		c, err := NewCollector(address, byGRPC, map[string]string{"authorization": "Bearer t"}, "1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Try(t.Context()); err != nil {
			t.Errorf("gRPC %t: %v", byGRPC, err)
		}
		if err := c.Send(t.Context(), store, links); err != nil {
			t.Fatal(err)
		}
		got := at.Records(t, 3)
		for i, r := range got {
			if body := r.Body.GetStringValue(); body != string(links[i].Body) {
				t.Errorf("the body is\n%s\nwant\n%s", body, links[i].Body)
			}
		}
		attributes := map[string]string{}
		for _, a := range got[0].Attributes {
			if attributes[a.Key] = a.Value.GetStringValue(); attributes[a.Key] == "" {
				attributes[a.Key] = fmt.Sprint(a.Value.GetIntValue())
			}
		}
		for key, want := range map[string]string{"codemode.audit.seq": "1", "codemode.audit.hash": hex.EncodeToString(links[0].Hash[:]), "codemode.audit.store": store,
			"codemode.run": "r1", "codemode.call": "2", "codemode.server": "mail", "codemode.profile": "work"} {
			if attributes[key] != want {
				t.Errorf("%s is %q, want %q", key, attributes[key], want)
			}
		}
		first, second := got[0], got[1]
		if first.TimeUnixNano != 1700000000_000000005 || first.EventName != "codemode.audit.intent" || hex.EncodeToString(first.TraceId) != "4bf92f3577b34da6a3ce929d0e0e4736" || first.SeverityText != "INFO" {
			t.Errorf("the first record is %v", first)
		}
		if second.SeverityText != "WARN" || second.TraceId != nil {
			t.Errorf("the second record is %v", second)
		}
		if at.About("service.name") != "codemode-bridge" || !byGRPC && at.Headers().Get("Authorization") != "Bearer t" {
			t.Errorf("it is %q with the headers %v", at.About("service.name"), at.Headers())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What a collector does not take in whole is not acknowledged.
func TestCollectorRefuses(t *testing.T) {
	t.Parallel()
	store, links := rows(t)
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	var status int
	var answer []byte
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", other.URL)
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	defer at.Close()
	part, err := proto.Marshal(&collector.ExportLogsServiceResponse{PartialSuccess: &collector.ExportLogsPartialSuccess{RejectedLogRecords: 2, ErrorMessage: "too old"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCollector(at.URL+"/hidden/v1/logs", false, nil, "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		status int
		answer []byte
		want   string
	}{
		{200, nil, ""}, {200, part, `refused 2 of 3 records: "too old"`}, {200, []byte("<html>"), "no collector"}, {302, nil, "redirects, which is not followed"}, {429, nil, "answered 429"}, {503, nil, "answered 503"},
	} {
		status, answer = row.status, row.answer
		err := c.Send(t.Context(), store, links)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%d %q: %v, want %q", row.status, row.answer, err, row.want)
		}
	}
	if elsewhere != 0 {
		t.Error("a redirect was followed")
	}
}

// A body that is too long for a collector is cut between characters, and says so.
func TestLongRecordIsCut(t *testing.T) {
	t.Parallel()
	long := ledger.Link{Seq: 1, Body: []byte(`{"event":"run_started","script":"` + strings.Repeat("é", most) + `"}`)}
	got := record("s", long)
	if body := got.Body.GetStringValue(); len(body) > most || len(body) < most-4 || strings.ContainsRune(body, '\uFFFD') || !strings.HasPrefix(string(long.Body), body) {
		t.Errorf("the body has %d bytes", len(body))
	}
	said := false
	for _, a := range got.Attributes {
		said = said || a.Key == "codemode.audit.bytes" && a.Value.GetIntValue() == int64(len(long.Body))
	}
	if !said || got.EventName != "codemode.audit.run_started" {
		t.Errorf("it is %s with %v", got.EventName, got.Attributes)
	}
}

// doctor's span is taken or not, and without variables there is none.
func TestTry(t *testing.T) {
	c := otlptest.New(t)
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.HTTP}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.HTTP)
	getenv := func(name string) string { return env[name] }
	if wanted, err := Try(t.Context(), getenv); !wanted || err != nil || c.Spans(t, 1)[0].Name != "doctor" {
		t.Errorf("wanted %t, %v", wanted, err)
	}
	c.Answers(http.StatusUnauthorized)
	if wanted, err := Try(t.Context(), getenv); !wanted || err == nil {
		t.Errorf("a collector that refuses: %t, %v", wanted, err)
	}
	env = nil
	if wanted, err := Try(t.Context(), getenv); wanted || err != nil {
		t.Errorf("without variables: %t, %v", wanted, err)
	}
}
