// Package telemetry exports the spans of package trace by OTLP, with the OpenTelemetry SDK,
// which nothing else imports. The variables of OpenTelemetry's specification say where to and
// how; without them there is no tracer.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"codemode-bridge/bridge/trace"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// Options say what is exported.
type Options struct {
	Getenv  func(string) string // of the process: the SDK reads its environment itself
	Version string              // of the program
	Logger  *slog.Logger
	// Passes is as in [trace.Options].
	Passes func(server string) bool
}

// The protocols of OTLP that there are.
const (
	overHTTP = "http/protobuf"
	overGRPC = "grpc"
)

// Wanted reports over which protocol the environment wants spans exported; empty if it does
// not. The error says what of it is not understood.
func Wanted(getenv func(string) string) (protocol string, err error) {
	exporter := strings.TrimSpace(getenv("OTEL_TRACES_EXPORTER"))
	switch {
	case strings.EqualFold(strings.TrimSpace(getenv("OTEL_SDK_DISABLED")), "true"), exporter == "none":
		return "", nil
	case exporter == "" && Endpoint(getenv) == "":
		return "", nil
	case exporter != "" && exporter != "otlp":
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER is %q; there are otlp and none", exporter)
	}
	if at := Endpoint(getenv); at != "" {
		if u, err := url.Parse(at); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", errors.New("the endpoint in OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no address with http:// or https://")
		}
	}
	switch protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), overHTTP); protocol {
	case overHTTP, overGRPC:
		return protocol, nil
	default:
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; there are %s and %s", protocol, overHTTP, overGRPC)
	}
}

// Endpoint is the collector that the environment names; empty if it names none.
func Endpoint(getenv func(string) string) string {
	return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

// An Export exports spans in the background until it is closed. A nil Export does nothing.
type Export struct {
	provider *sdk.TracerProvider
	tracer   api.Tracer
	log      *slog.Logger
}

// Open begins to export. It returns nil where the environment does not want that. A collector
// that cannot be reached is no error: the log says so, and spans are dropped.
func Open(ctx context.Context, o Options) (*Export, *trace.Tracer, error) {
	protocol, err := Wanted(o.Getenv)
	if protocol == "" || err != nil {
		return nil, nil, err
	}
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Debug("exporting traces", "err", err) }))
	exporter, err := exporterBy(ctx, protocol)
	if err != nil {
		return nil, nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "codemode-bridge"), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		o.Logger.Warn("OTEL_RESOURCE_ATTRIBUTES is not all understood", "err", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(&telling{SpanExporter: exporter, log: o.Logger}))
	e := &Export{provider: provider, tracer: provider.Tracer("codemode-bridge", api.WithInstrumentationVersion(o.Version)), log: o.Logger}
	o.Logger.Info("runs are traced", "protocol", protocol)
	return e, trace.New(trace.Options{Exporter: e, Passes: o.Passes}), nil
}

func exporterBy(ctx context.Context, protocol string) (exporter *otlptrace.Exporter, err error) {
	if protocol == overGRPC {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up the export of traces: %w", err)
	}
	return exporter, nil
}

// Try exports one span, named "doctor", if the environment wants spans exported. It returns
// whether it does, and why the collector did not take the span.
func Try(ctx context.Context, getenv func(string) string) (wanted bool, err error) {
	protocol, err := Wanted(getenv)
	if protocol == "" || err != nil {
		return err != nil, err
	}
	exporter, err := exporterBy(ctx, protocol)
	if err != nil {
		return true, err
	}
	one := &trying{SpanExporter: exporter}
	provider := sdk.NewTracerProvider(sdk.WithSyncer(one), sdk.WithSampler(sdk.AlwaysSample()))
	_, made := provider.Tracer("codemode-bridge").Start(ctx, "doctor")
	made.End()
	_ = provider.Shutdown(ctx)
	return true, one.err
}

// A trying exporter gives up soon, and keeps why.
type trying struct {
	sdk.SpanExporter
	err error
}

func (t *trying) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	t.err = t.SpanExporter.ExportSpans(ctx, spans)
	return nil
}

// drain bounds how long the end of the program waits for the last spans.
const drain = 2 * time.Second

// Close exports what has not been exported yet, for a short time.
func (e *Export) Close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		e.log.Warn("the last spans were not exported", "err", err)
	}
}

// Start begins a span.
func (e *Export) Start(s trace.Start) trace.Span {
	ctx := context.Background()
	if s.Parent != (trace.Context{}) {
		ctx = api.ContextWithSpanContext(ctx, contextOf(s.Parent, s.Remote))
	}
	kind := map[trace.Kind]api.SpanKind{trace.Internal: api.SpanKindInternal, trace.Server: api.SpanKindServer, trace.Client: api.SpanKindClient}[s.Kind]
	options := []api.SpanStartOption{api.WithSpanKind(kind), api.WithAttributes(attributes(s.Attributes)...)}
	if !s.At.IsZero() {
		options = append(options, api.WithTimestamp(s.At))
	}
	if s.Link != (trace.Context{}) {
		options = append(options, api.WithLinks(api.Link{SpanContext: contextOf(s.Link, true)}))
	}
	_, made := e.tracer.Start(ctx, s.Name, options...)
	return span{made}
}

// contextOf reads a context.
func contextOf(c trace.Context, remote bool) api.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": c.Parent, "tracestate": c.State}
	of := api.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	return of.WithRemote(remote)
}

func attributes(all []trace.Attribute) []attribute.KeyValue {
	out := make([]attribute.KeyValue, len(all))
	for i, a := range all {
		if out[i] = attribute.String(a.Key, a.Text); a.Text == "" {
			out[i] = attribute.Int(a.Key, a.Number)
		}
	}
	return out
}

// A span is one of the SDK's.
type span struct{ api.Span }

// Context says how others name the span as a parent.
func (s span) Context() trace.Context {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(api.ContextWithSpan(context.Background(), s.Span), carrier)
	return trace.Parse(carrier["traceparent"], carrier["tracestate"])
}

// End ends the span.
func (s span) End(failed string, more ...trace.Attribute) {
	s.SetAttributes(attributes(more)...)
	if failed != "" {
		s.SetAttributes(attribute.String("error.type", failed))
		s.SetStatus(codes.Error, "")
	}
	s.Span.End()
}

// A telling exporter logs that the collector takes no spans, once, and when it does again.
type telling struct {
	sdk.SpanExporter
	log *slog.Logger

	mu     sync.Mutex
	failed bool
}

// ExportSpans exports spans, or drops them.
func (t *telling) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	t.mu.Lock()
	was := t.failed
	t.failed = err != nil
	t.mu.Unlock()
	switch {
	case err != nil && !was:
		t.log.Warn("traces cannot be exported, and are dropped; everything else works", "err", err)
	case err == nil && was:
		t.log.Info("traces are exported again")
	}
	return nil // it was told
}
