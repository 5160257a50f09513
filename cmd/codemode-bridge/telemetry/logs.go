package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"codemode-bridge/bridge/ledger"

	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// A Collector takes the rows of the audit log as records of OpenTelemetry's logs. The body of
// a record is the row's text; see [record] for the rest. The SDK's exporter drops what a
// collector does not take in time, so this speaks OTLP itself.
type Collector struct {
	version string
	headers map[string]string
	address string           // over HTTP
	conn    *grpc.ClientConn // nil: over HTTP
}

// NewCollector returns the collector at an address, which is spoken to by gRPC or HTTP. Close
// releases it.
func NewCollector(address string, byGRPC bool, headers map[string]string, version string) (*Collector, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, errors.New("the collector's address is not one")
	}
	c := &Collector{version: version, headers: headers}
	if !byGRPC {
		if !strings.HasSuffix(at.Path, "/v1/logs") {
			at = at.JoinPath("v1", "logs")
		}
		c.address = at.String()
		return c, nil
	}
	secure := insecure.NewCredentials()
	if at.Scheme == "https" {
		secure = credentials.NewTLS(nil)
	}
	c.conn, err = grpc.NewClient(at.Host, grpc.WithTransportCredentials(secure), grpc.WithUserAgent("codemode-bridge/"+version))
	if err != nil {
		return nil, fmt.Errorf("setting up the way to the collector: %w", err)
	}
	return c, nil
}

// Close ends its connections.
func (c *Collector) Close() error {
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

// Try sends no records: it says whether the collector answers.
func (c *Collector) Try(ctx context.Context) error { return c.Send(ctx, "", nil) }

// Send sends rows of a store. A collector that takes a part of them has taken none: what it
// refused must not be lost, so all come again.
func (c *Collector) Send(ctx context.Context, store string, rows []ledger.Link) error {
	in := &collector.ExportLogsServiceRequest{}
	if len(rows) > 0 {
		of := &otlp.ScopeLogs{Scope: &common.InstrumentationScope{Name: "codemode-bridge", Version: c.version}}
		for _, l := range rows {
			of.LogRecords = append(of.LogRecords, record(store, l))
		}
		in.ResourceLogs = []*otlp.ResourceLogs{{ScopeLogs: []*otlp.ScopeLogs{of},
			Resource: &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "codemode-bridge"), text("service.version", c.version)}}}}
	}
	out, err := c.export(ctx, in)
	if err != nil {
		return err
	}
	if part := out.GetPartialSuccess(); part.GetRejectedLogRecords() > 0 {
		return fmt.Errorf("the collector refused %d of %d records: %.200q", part.GetRejectedLogRecords(), len(rows), part.GetErrorMessage())
	}
	return nil
}

func (c *Collector) export(ctx context.Context, in *collector.ExportLogsServiceRequest) (*collector.ExportLogsServiceResponse, error) {
	if c.conn != nil {
		out, err := collector.NewLogsServiceClient(c.conn).Export(metadata.NewOutgoingContext(ctx, metadata.New(c.headers)), in)
		if err != nil {
			return nil, fmt.Errorf("sending to the collector: %w", err)
		}
		return out, nil
	}
	body, err := proto.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("writing records for the collector: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the collector's address is not one")
	}
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "codemode-bridge/"+c.version)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer from %s", req.URL.Host)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	switch code := res.StatusCode; {
	case code >= 300 && code <= 399:
		return nil, fmt.Errorf("%s redirects, which is not followed", req.URL.Host)
	case code < 200 || code > 299:
		return nil, fmt.Errorf("%s answered %d", req.URL.Host, code)
	case err != nil:
		return nil, fmt.Errorf("reading what %s answered: %w", req.URL.Host, err)
	}
	out := new(collector.ExportLogsServiceResponse)
	if err := proto.Unmarshal(answer, out); err != nil {
		return nil, fmt.Errorf("%s is no collector: its answer is not OTLP", req.URL.Host)
	}
	return out, nil
}

// most bounds the body of a record: many collectors take no message above 4 MB.
const most = 1 << 20

// record is a row as a log record. Its time, its event and its trace are those of the row, its
// attributes say where in the log it is: its number, its hash and the id of the log, and which
// run and call it is about. A body that is too long is cut, which an attribute says; the log
// has all of it.
func record(store string, l ledger.Link) *otlp.LogRecord {
	out := &otlp.LogRecord{ObservedTimeUnixNano: uint64(time.Now().UnixNano()), SeverityNumber: otlp.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO",
		Attributes: []*common.KeyValue{number("codemode.audit.seq", l.Seq), text("codemode.audit.hash", hex.EncodeToString(l.Hash[:])), text("codemode.audit.store", store)}}
	body := string(l.Body)
	if len(body) > most {
		end := most
		for !utf8.RuneStart(body[end]) {
			end--
		}
		body = body[:end]
		out.Attributes = append(out.Attributes, number("codemode.audit.bytes", int64(len(l.Body))))
	}
	out.Body = &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(body, "\uFFFD")}}
	r, err := ledger.Decode(l.Body)
	if err != nil {
		return out // a later release wrote it: its text says all
	}
	out.TimeUnixNano, out.EventName = uint64(r.Time.UnixNano()), "codemode.audit."+string(r.Event)
	if r.Event == ledger.Refusal || r.Outcome == ledger.Failed || r.Outcome == ledger.Unknown {
		out.SeverityNumber, out.SeverityText = otlp.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
	}
	for key, value := range map[string]string{"codemode.run": r.Run, "codemode.profile": r.Profile, "codemode.server": r.Server, "codemode.outcome": r.Outcome} {
		if value != "" {
			out.Attributes = append(out.Attributes, text(key, value))
		}
	}
	if r.Call > 0 {
		out.Attributes = append(out.Attributes, number("codemode.call", int64(r.Call)))
	}
	if id, err := hex.DecodeString(r.TraceID); err == nil && len(id) == 16 {
		out.TraceId = id
	}
	return out
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(value, "\uFFFD")}}}
}

func number(key string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}
