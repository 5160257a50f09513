// Package otlptest is a collector of OpenTelemetry, for tests: it takes traces and logs over
// HTTP and gRPC, and keeps them.
package otlptest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// A Collector keeps what it is sent.
type Collector struct {
	HTTP, GRPC string // its addresses, without a path

	mu      sync.Mutex
	spans   []*trace.Span
	records []*logs.LogRecord
	about   map[string]string // attributes of the resource that was sent last
	headers http.Header       // of the last request over HTTP
	answer  int               // unless 0, the status that requests over HTTP get
	changed chan struct{}
}

// New starts a collector that ends with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{about: map[string]string{}, changed: make(chan struct{})}
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	tracepb.RegisterTraceServiceServer(server, traces{Collector: c})
	logspb.RegisterLogsServiceServer(server, logRecords{Collector: c})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { server.Stop(); <-served })
	c.HTTP, c.GRPC = web.URL, "http://"+l.Addr().String()
	return c
}

// Answers has requests over HTTP refused with a status from now on; 0 has them taken.
func (c *Collector) Answers(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = status
}

// ServeHTTP takes OTLP in its binary form.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	status := c.answer
	c.headers = r.Header.Clone()
	c.mu.Unlock()
	var answer proto.Message
	switch {
	case err != nil || r.Header.Get("Content-Type") != "application/x-protobuf":
		status = http.StatusBadRequest
	case status != 0:
		c.note(func() {})
	case r.URL.Path == "/v1/traces":
		in := new(tracepb.ExportTraceServiceRequest)
		if err = proto.Unmarshal(body, in); err == nil {
			answer, err = traces{Collector: c}.Export(r.Context(), in)
		}
	case r.URL.Path == "/v1/logs":
		in := new(logspb.ExportLogsServiceRequest)
		if err = proto.Unmarshal(body, in); err == nil {
			answer, err = logRecords{Collector: c}.Export(r.Context(), in)
		}
	default:
		status = http.StatusNotFound
	}
	if status != 0 || err != nil {
		http.Error(w, "refused", max(status, http.StatusBadRequest))
		return
	}
	out, _ := proto.Marshal(answer)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(out)
}

func (c *Collector) note(what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what()
	close(c.changed)
	c.changed = make(chan struct{})
}

type traces struct {
	*Collector
	tracepb.UnimplementedTraceServiceServer
}

func (c traces) Export(_ context.Context, in *tracepb.ExportTraceServiceRequest) (*tracepb.ExportTraceServiceResponse, error) {
	c.note(func() {
		for _, of := range in.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				c.about[a.Key] = a.Value.GetStringValue()
			}
			for _, s := range of.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	})
	return new(tracepb.ExportTraceServiceResponse), nil
}

type logRecords struct {
	*Collector
	logspb.UnimplementedLogsServiceServer
}

func (c logRecords) Export(_ context.Context, in *logspb.ExportLogsServiceRequest) (*logspb.ExportLogsServiceResponse, error) {
	c.note(func() {
		for _, of := range in.ResourceLogs {
			for _, a := range of.Resource.Attributes {
				c.about[a.Key] = a.Value.GetStringValue()
			}
			for _, s := range of.ScopeLogs {
				c.records = append(c.records, s.LogRecords...)
			}
		}
	})
	return new(logspb.ExportLogsServiceResponse), nil
}

// About is an attribute of what has sent something last.
func (c *Collector) About(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.about[key]
}

// Headers are those of the last request over HTTP.
func (c *Collector) Headers() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers
}

// Spans waits until so many spans have come, and returns all.
func (c *Collector) Spans(t testing.TB, n int) []*trace.Span {
	t.Helper()
	return await(t, c, n, func() []*trace.Span { return c.spans })
}

// Records waits until so many records of logs have come, and returns all.
func (c *Collector) Records(t testing.TB, n int) []*logs.LogRecord {
	t.Helper()
	return await(t, c, n, func() []*logs.LogRecord { return c.records })
}

func await[T any](t testing.TB, c *Collector, n int, of func() []T) []T {
	t.Helper()
	for {
		c.mu.Lock()
		all, changed := append([]T(nil), of()...), c.changed
		c.mu.Unlock()
		if len(all) >= n {
			return all
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("%d have come, not %d", len(all), n)
		}
	}
}
